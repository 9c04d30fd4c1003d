"""Profiles, in JAX's names: timelines of what compiled programs, tracing and compiling do, and
which arrays hold the memory. `calque.profile` gives a table of one function.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder, calque.profiler.trace(folder):
...     with calque.profiler.TraceAnnotation("the product"):
...         y = calque.jit(lambda x: x @ x)(jnp.ones((8, 8)))
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NoReturn

from calque.core.lazy import LazyModule
from calque.machine.spans import span
from calque.machine.state import ProcessValue, process
from calque.transforms.engines.scopes import named_scope

if TYPE_CHECKING:
    from calque.core.generics import P, R

_session: Any = LazyModule("calque.profiling.session")
_traces: Any = LazyModule("calque.profiling.traces")
_xplane: Any = LazyModule("calque.profiling.xplane")
_memory: Any = LazyModule("calque.profiling.memory")
_server: Any = LazyModule("calque.profiling.server")
_perf: Any = LazyModule("calque.profiling.perf")


class TraceAnnotation(contextlib.ContextDecorator):
    """A named part of the work: a bar of the timeline of a trace.

    Equations that are traced meanwhile are named by it, as by `named_scope`.

    Args:
        name: What the bar is called.
        **metadata: What stands beside the name in the timeline.

    Returns:
        A `with` block, which also is a decorator.

    >>> with jax.profiler.TraceAnnotation("loading", files=3):
    ...     x = jnp.ones(3)"""

    _kind = "annotation"

    def __init__(self, name: str, **metadata: Any):
        self.name, self.metadata = name, metadata
        self._open: list[Any] = []

    def __enter__(self) -> TraceAnnotation:
        opened = contextlib.ExitStack()
        opened.enter_context(span(self._kind, self.name, self.metadata))
        opened.enter_context(named_scope(self.name))
        self._open.append(opened)
        return self

    def __exit__(self, *error: Any) -> None:
        self._open.pop().close()


class StepTraceAnnotation(TraceAnnotation):
    """One step of a loop: a bar of the timeline, and a sample of the memory of arrays.

    Args:
        name: What the bar is called.
        **metadata: What stands beside the name; by custom `step_num`.

    Returns:
        A `with` block, which also is a decorator.

    >>> for n in range(2):
    ...     with jax.profiler.StepTraceAnnotation("train", step_num=n):
    ...         x = jnp.ones(3)"""

    _kind = "step"


def annotate_function(
    func: Callable[P, R], name: str | None = None, **decorator_kwargs: Any
) -> Callable[P, R]:
    """A function each call of which is a `TraceAnnotation`.

    Args:
        func: The function.
        name: What the bars are called; None: as the function.
        **decorator_kwargs: What stands beside the name in the timeline.

    Returns:
        The function.

    >>> jax.profiler.annotate_function(jnp.sum, name="the sum")(jnp.ones(3))
    Array(3., dtype=float32)"""

    @functools.wraps(func)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with TraceAnnotation(
            str(name or getattr(func, "__qualname__", repr(func))), **decorator_kwargs
        ):
            return func(*args, **kwargs)

    return call


class ProfileOptions:
    """What a trace records: attributes that are set after it was made.

    Returns:
        Options for `start_trace` and `trace`.

    Differs from JAX:
        `session_id`, the name of the folder of a trace, is read. The other options speak of
        tracers of other machines; they are kept as they are set.

    >>> options = jax.profiler.ProfileOptions()
    >>> options.session_id = "first"
    >>> options.session_id
    'first'"""

    def __init__(self) -> None:
        self.session_id = ""
        self.host_tracer_level = 2
        self.python_tracer_level = 0
        self.duration_ms = 0
        self.start_timestamp_ns = 0
        self.enable_hlo_proto = False
        self.include_dataset_ops = False
        self.raise_error_on_start_failure = False
        self.repository_path = ""
        self.advanced_configuration: dict[str, Any] = {}


class _Trace:
    """The trace that is being taken: where it will be written."""

    def __init__(self, log_dir: Any, perfetto: bool, options: ProfileOptions | None) -> None:
        name = options.session_id if options is not None and options.session_id else None
        name = name or time.strftime("%Y_%m_%d_%H_%M_%S")
        self.folder = os.path.join(os.fspath(log_dir), "plugins", "profile", name)
        self.perfetto = perfetto
        self.session = _session.Session(_session.EVENTS)
        self.session.start()
        self.started = time.time_ns()

    def write(self) -> None:
        self.session.stop()
        os.makedirs(self.folder, exist_ok=True)
        events = list(_traces.events(self.session))
        host = socket.gethostname()
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ns"}).encode()
        names = [f"{host}.trace.json.gz", *(["perfetto_trace.json.gz"] if self.perfetto else [])]
        for name in names:
            with gzip.open(os.path.join(self.folder, name), "wb") as f:
                f.write(text)
        with open(os.path.join(self.folder, f"{host}.xplane.pb"), "wb") as plain:
            plain.write(_xplane.xspace(events, self.started))


_trace: Final[ProcessValue[_Trace | None]] = process.value("trace of the profiler", None)
_serving: Final[ProcessValue[Any]] = process.value("server of the profiler", None)


def start_trace(
    log_dir: Any,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> None:
    """Records from now on what compiled programs do.

    The timeline has calls, kernels by name with the line of the user, on which thread; tracing,
    passes, compiling; annotations; the memory of arrays.

    Args:
        log_dir: The folder below which plugins/profile/TIME is made, with HOST.trace.json.gz for
            Perfetto (https://ui.perfetto.dev) and chrome://tracing, HOST.xplane.pb for TensorBoard.
        create_perfetto_link: Refused: drag the file onto the page instead.
        create_perfetto_trace: Whether to write perfetto_trace.json.gz as well.
        profiler_options: May name the folder TIME by `session_id`; see `ProfileOptions`.

    Returns:
        None.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     jax.profiler.start_trace(folder)
    ...     y = jax.jit(lambda x: x @ x)(jnp.ones((8, 8)))
    ...     jax.profiler.stop_trace()"""
    if _trace.value is not None:
        raise RuntimeError(
            "Profile has already been started. Only one profile may be run at a time."
        )
    if create_perfetto_link:
        raise NotImplementedError(
            "start_trace: create_perfetto_link is not offered. Open HOST.trace.json.gz, which"
            " stop_trace writes, at https://ui.perfetto.dev"
        )
    _trace.value = _Trace(log_dir, create_perfetto_trace, profiler_options)


def stop_trace() -> None:
    """Records no more, and writes what was recorded since `start_trace`.

    Returns:
        None.

    >>> jax.profiler.stop_trace()
    Traceback (most recent call last):
    RuntimeError: No profile started"""
    taken, _trace.value = _trace.value, None
    if taken is None:
        raise RuntimeError("No profile started")
    taken.write()


@contextlib.contextmanager
def trace(
    log_dir: Any,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: ProfileOptions | None = None,
) -> Iterator[None]:
    """A `with` block that is recorded: `start_trace` before, `stop_trace` after it.

    Args:
        log_dir: The folder below which plugins/profile/TIME is made, with HOST.trace.json.gz for
            Perfetto (https://ui.perfetto.dev) and chrome://tracing, HOST.xplane.pb for TensorBoard.
        create_perfetto_link: Refused: drag the file onto the page instead.
        create_perfetto_trace: Whether to write perfetto_trace.json.gz as well.
        profiler_options: May name the folder TIME by `session_id`; see `ProfileOptions`.

    Returns:
        The `with` block.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, jax.profiler.trace(folder):
    ...     y = jax.jit(lambda x: x @ x)(jnp.ones((8, 8)))"""
    start_trace(log_dir, create_perfetto_link, create_perfetto_trace, profiler_options)
    try:
        yield
    finally:
        stop_trace()


def start_server(port: int, requires_backend: bool = True) -> Any:
    """Serves profiles of this process over HTTP, to this machine alone.

    `curl -o t.json.gz localhost:PORT/trace?seconds=2` is a timeline for Perfetto,
    `localhost:PORT/memory` a profile of the memory for pprof.

    Args:
        port: Where; 0 takes one that is free.
        requires_backend: There always is one: nothing depends on it.

    Returns:
        The server; its attribute `port` says where. `stop_server` ends it.

    Differs from JAX:
        The server speaks HTTP, not the protocol of TensorBoard's capture button.

    >>> jax.profiler.start_server(0).port > 0
    True
    >>> jax.profiler.stop_server()"""
    if _serving.value is not None:
        raise ValueError("Only one profiler server can be active at a time.")
    _serving.value = _server.Server(port)
    return _serving.value


def stop_server() -> None:
    """Ends the server that `start_server` has started.

    Returns:
        None.

    >>> jax.profiler.stop_server()
    Traceback (most recent call last):
    ValueError: No active profiler server."""
    server, _serving.value = _serving.value, None
    if server is None:
        raise ValueError("No active profiler server.")
    server.stop()


def device_memory_profile(backend: str | None = None) -> bytes:
    """The arrays that live, by type and by what holds them, as a profile for `pprof`.

    Args:
        backend: The platform whose memory is asked for: None or "cpu".

    Returns:
        The profile, compressed, as bytes.

    Differs from JAX:
        Arrays are listed by who holds them now, not by who made them.

    >>> len(jax.profiler.device_memory_profile()) > 0
    True"""
    if backend not in (None, "cpu"):
        raise ValueError(f"device_memory_profile: the memory of {backend!r} is not known, only cpu")
    profile: bytes = _memory.memory_profile()
    return profile


def save_device_memory_profile(filename: Any, backend: str | None = None) -> None:
    """Writes `device_memory_profile` to a file: `go tool pprof -top FILE` shows it.

    Args:
        filename: The file.
        backend: The platform whose memory is asked for: None or "cpu".

    Returns:
        None.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as f:
    ...     jax.profiler.save_device_memory_profile(f.name)"""
    with open(filename, "wb") as f:
        f.write(device_memory_profile(backend))


def perf_map(path: str | None = None) -> str:
    """Writes the names of the kernels that are in memory now, for `perf report`.

    Call it when all is compiled that shall have a name.

    Args:
        path: The file; None is /tmp/perf-PID.map, where `perf` looks for the names of code that
            has no file.

    Returns:
        The path.

    Differs from JAX:
        It is calque's own.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as f:
    ...     f.name == jax.profiler.perf_map(f.name)
    True"""
    written: str = _perf.perf_map(path)
    return written


def _no_reader(what: str) -> NoReturn:
    raise NotImplementedError(
        f"profiler.{what}: traces are written, not read back, here. HOST.trace.json.gz is JSON:"
        " json.load(gzip.open(path)) gives its events"
    )


def register_subprocess(pid: int, port: int) -> NoReturn:
    """Would record another process as well, and raises NotImplementedError.

    Args:
        pid: The process.
        port: Of the server in it.

    Returns:
        Nothing: it raises.

    Differs from JAX:
        A trace has one process: call `start_trace` in each of them.

    >>> jax.profiler.register_subprocess(1, 2)
    Traceback (most recent call last):
    NotImplementedError: profiler.register_subprocess: a trace has one process..."""
    raise NotImplementedError(
        "profiler.register_subprocess: a trace has one process. Call start_trace in each of them"
    )


class _OfReading:
    """What exists only with traces that are read back."""

    def __init__(self, *args: Any, **kwargs: Any):
        _no_reader(type(self).__name__)


class ProfileData(_OfReading):
    """Refused: a trace that was read back. Traces are written as JSON too, which any program reads.

    Args:
        *args, **kwargs: anything.

    >>> jax.profiler.ProfileData()
    Traceback (most recent call last):
        ...
    NotImplementedError: profiler.ProfileData: traces are written, not read..."""

    @staticmethod
    def from_file(path: Any) -> NoReturn:
        """Refused: traces are written as JSON too.

        Args:
            path: the path of a trace."""
        _no_reader("ProfileData.from_file")

    @staticmethod
    def from_serialized_xspace(serialized: bytes) -> NoReturn:
        """Refused: traces are written as JSON too.

        Args:
            serialized: a trace as bytes."""
        _no_reader("ProfileData.from_serialized_xspace")

    @staticmethod
    def from_text_proto(text: str) -> NoReturn:
        """Refused: traces are written as JSON too.

        Args:
            text: a trace as text."""
        _no_reader("ProfileData.from_text_proto")


class ProfilePlane(_OfReading):
    """Refused: the events of one device in a trace that was read back.

    Args:
        *args, **kwargs: anything.

    >>> jax.profiler.ProfilePlane()
    Traceback (most recent call last):
        ...
    NotImplementedError: profiler.ProfilePlane: traces are written, not read..."""


class ProfileEvent(_OfReading):
    """Refused: one event of a trace that was read back.

    Args:
        *args, **kwargs: anything.

    >>> jax.profiler.ProfileEvent()
    Traceback (most recent call last):
        ...
    NotImplementedError: profiler.ProfileEvent: traces are written, not read..."""
