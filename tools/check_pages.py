#!/usr/bin/env python3
"""Looks at every page of the built site (`make docs`) in a headless browser, narrow and wide, light
and dark: exits with 1 where a page is wider than the window, where something of its text lies
beyond the edge, or where the browser reports an error.

    python tools/check_pages.py [--site build/site] [--shots folder] [word ...]

Only pages with one of these words in their names, if there are any. `--shots` keeps a picture of
each. Playwright and a Chromium must be installed: `pip install playwright`, and `playwright install
chromium` or a browser of the system.
"""

from __future__ import annotations

import argparse
import functools
import http.server
import pathlib
import shutil
import threading
from collections.abc import Iterator
from typing import Any

from playwright.sync_api import sync_playwright

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTHS = {"narrow": 390, "wide": 1400}
SCHEMES = ("light", "dark")
PATIENCE = 180_000  # milliseconds until a page is there, on a busy machine
# What scrolls by itself may be wider than the window.
BEYOND = """() => {
  const scrolls = 'pre, table, .highlight, .md-typeset__scrollwrap, .arithmatex, svg';
  const found = [...document.querySelectorAll('article *')].filter(e => {
    const box = e.getBoundingClientRect();
    return box.width > 0 && box.right > innerWidth + 1 && !e.closest(scrolls);
  }).map(e => e.tagName.toLowerCase() + ': ' + e.textContent.trim().slice(0, 50));
  const whole = document.documentElement.scrollWidth;
  return (whole > innerWidth ? ['the page: ' + whole + ' pixels'] : []).concat(found.slice(0, 4));
}"""


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args: Any) -> None:
        pass


def served(site: pathlib.Path) -> str:
    """The address at which this process serves the site."""
    handler = functools.partial(Quiet, directory=str(site))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/"


def lost(request: Any) -> list[str]:
    """What a request that failed is worth saying: one that the next page has cut off is not."""
    return [] if request.failure == "net::ERR_ABORTED" else [f"not loaded: {request.url}"]


def complaints(
    browser: Any, address: str, pages: list[str], shots: pathlib.Path | None
) -> Iterator[str]:
    """What is wrong with these pages."""
    for scheme in SCHEMES:
        for form, width in WIDTHS.items():
            size = {"width": width, "height": 1100}
            page = browser.new_page(color_scheme=scheme, viewport=size)
            errors: list[str] = []
            page.on("console", lambda m: errors.append(m.text) if m.type == "error" else None)
            page.on("requestfailed", lambda r: errors.extend(lost(r)))
            for name in pages:
                page.goto(address + name, timeout=PATIENCE)
                page.wait_for_timeout(100)
                for what in [*page.evaluate(BEYOND), *errors]:
                    yield f"{name}, {form}, {scheme}: {what}"
                errors.clear()
                if shots is not None:
                    page.screenshot(
                        path=str(shots / f"{form}-{scheme}-{name.replace('/', '_')}.png")
                    )
            page.close()


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("words", nargs="*", help="parts of the names of the pages to look at")
    parser.add_argument("--site", type=pathlib.Path, default=ROOT / "build" / "site")
    parser.add_argument("--shots", type=pathlib.Path, help="a folder for pictures of the pages")
    given = parser.parse_args()
    pages = sorted(p.relative_to(given.site).as_posix() for p in given.site.rglob("*.html"))
    pages = [p for p in pages if not given.words or any(w in p for w in given.words)]
    if not pages:
        parser.error(f"no pages in {given.site}: `make docs` builds the site")
    if given.shots:
        given.shots.mkdir(parents=True, exist_ok=True)
    found = 0
    with sync_playwright() as playwright:
        path = shutil.which("chromium") or shutil.which("chromium-browser")
        browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        for line in complaints(browser, served(given.site), pages, given.shots):
            found += 1
            print(line, flush=True)
        browser.close()
    print(f"{len(pages)} pages, {len(WIDTHS) * len(SCHEMES)} forms, {found} complaints")
    return 1 if found else 0


if __name__ == "__main__":
    raise SystemExit(main())
