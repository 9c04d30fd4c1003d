"""Marks for profilers, in JAX's names. calque writes no traces: Python's profilers and `perf` see
its calls as they are."""

import contextlib
import functools
from collections.abc import Callable
from typing import Any, NoReturn

from calque.transforms.engines.scopes import named_scope


class TraceAnnotation(contextlib.ContextDecorator):
    """A named part of the work. Equations that are traced meanwhile are named by it, as by
    `named_scope`.

    >>> with calque.profiler.TraceAnnotation("loading"):
    ...     x = jnp.ones(3)"""

    def __init__(self, name: str, **metadata: Any):
        self.metadata = metadata
        self._scope = named_scope(name)

    def __enter__(self) -> "TraceAnnotation":
        self._scope.__enter__()
        return self

    def __exit__(self, *error: Any) -> None:
        self._scope.__exit__(*error)


class StepTraceAnnotation(TraceAnnotation):
    """One step of a loop: `with StepTraceAnnotation("train", step_num=n): ...`"""


def annotate_function(
    func: Callable[..., Any], name: str | None = None, **decorator_kwargs: Any
) -> Callable[..., Any]:
    """`func`, each call of which is a `TraceAnnotation`."""

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        with TraceAnnotation(
            str(name or getattr(func, "__qualname__", repr(func))), **decorator_kwargs
        ):
            return func(*args, **kwargs)

    return call


def _no_traces(what: str) -> NoReturn:
    raise NotImplementedError(
        f"profiler.{what}: calque writes no profiles. Use cProfile for Python, `perf record` for"
        " compiled code, and f.lower(x).compile().cost_analysis() for what a program does"
    )


def start_trace(
    log_dir: Any,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> NoReturn:
    """Refused: there are no traces."""
    _no_traces("start_trace")


def stop_trace() -> NoReturn:
    """Refused: there are no traces."""
    _no_traces("stop_trace")


def trace(
    log_dir: Any,
    create_perfetto_link: bool = False,
    create_perfetto_trace: bool = False,
    profiler_options: Any = None,
) -> NoReturn:
    """Refused: there are no traces."""
    _no_traces("trace")


def start_server(port: int, requires_backend: bool = True) -> NoReturn:
    """Refused: there are no traces."""
    _no_traces("start_server")


def stop_server() -> NoReturn:
    """Refused: there are no traces."""
    _no_traces("stop_server")


def device_memory_profile(backend: str | None = None) -> NoReturn:
    """Refused: memory is not attributed to lines."""
    _no_traces("device_memory_profile")


def save_device_memory_profile(filename: Any, backend: str | None = None) -> NoReturn:
    """Refused: memory is not attributed to lines."""
    _no_traces("save_device_memory_profile")


def register_subprocess(pid: int, port: int) -> NoReturn:
    """Refused: there are no traces."""
    _no_traces("register_subprocess")


class _OfTraces:
    """What exists only with traces."""

    def __init__(self, *args: Any, **kwargs: Any):
        _no_traces(type(self).__name__)


class ProfileOptions(_OfTraces):
    """What a trace would record. Refused: there are no traces."""


class ProfileData(_OfTraces):
    """A trace that was read back. Refused: there are no traces."""

    @staticmethod
    def from_file(path: Any) -> NoReturn:
        """Refused: there are no traces."""
        _no_traces("ProfileData.from_file")

    @staticmethod
    def from_serialized_xspace(serialized: bytes) -> NoReturn:
        """Refused: there are no traces."""
        _no_traces("ProfileData.from_serialized_xspace")

    @staticmethod
    def from_text_proto(text: str) -> NoReturn:
        """Refused: there are no traces."""
        _no_traces("ProfileData.from_text_proto")


class ProfilePlane(_OfTraces):
    """The events of one device in a trace. Refused: there are no traces."""


class ProfileEvent(_OfTraces):
    """One event of a trace. Refused: there are no traces."""
