"""Profiles over HTTP: `/trace?seconds=2` a timeline for Perfetto, `/memory` a profile for pprof."""

from __future__ import annotations

import gzip
import json
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from calque.profiling import traces
from calque.profiling.memory import memory_profile
from calque.profiling.session import EVENTS, Session

LONGEST: Final = 600.0  # seconds of a trace
HELP: Final = (
    b"/trace?seconds=2  a timeline, for https://ui.perfetto.dev\n/memory  arrays, for pprof\n"
)


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        """Answer one request."""
        url = urllib.parse.urlsplit(self.path)
        if url.path == "/memory":
            self.answer(200, "application/octet-stream", memory_profile())
        elif url.path == "/trace":
            self.trace(urllib.parse.parse_qs(url.query).get("seconds", ["2"])[0])
        else:
            self.answer(200 if url.path == "/" else 404, "text/plain", HELP)

    def trace(self, text: str) -> None:
        """Record for so many seconds."""
        try:
            seconds = float(text)
        except ValueError:
            seconds = -1.0
        if not 0 <= seconds <= LONGEST:
            message = f"seconds must be a number from 0 to {LONGEST:.0f}, not {text!r}\n"
            self.answer(400, "text/plain", message.encode())
            return
        session = Session(EVENTS)
        try:
            session.start()
        except RuntimeError as error:
            self.answer(409, "text/plain", f"{error}\n".encode())
            return
        try:
            time.sleep(seconds)
        finally:
            session.stop()
        found = json.dumps({"traceEvents": list(traces.events(session))})
        self.answer(200, "application/gzip", gzip.compress(found.encode()))

    def answer(self, status: int, kind: str, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing on the program's own output."""


class Server:
    """A server for this machine alone, on a thread of its own; `port` is where, `stop` ends it."""

    def __init__(self, port: int) -> None:
        self._http = ThreadingHTTPServer(("127.0.0.1", port), _Handler)
        self._http.daemon_threads = True
        self.port = int(self._http.server_address[1])
        self._thread = threading.Thread(
            target=self._http.serve_forever, name="calque profiler", daemon=True
        )
        self._thread.start()

    def stop(self) -> None:
        """Answer no more."""
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()
