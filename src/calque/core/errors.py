"""The exceptions that tracing raises. Each message says what was traced, where it came from and
what to write instead."""

import inspect
import sys
import traceback
from typing import Any, Final

_PAGES: Final = "https://docs.jax.dev/en/latest/errors.html"
_WITH_PAGE: Final = frozenset({  # what JAX explains on that page
    "ConcretizationTypeError", "JAXIndexError", "KeyReuseError", "NonConcreteBooleanIndexError",
    "TracerArrayConversionError", "TracerBoolConversionError", "TracerIntegerConversionError",
    "UnexpectedTracerError",
})  # fmt: skip


class _AboutValue(Exception):
    """Is made from a text, or from the traced value that it is about and more to say of it: then
    its text says what its class means, and where to read on."""

    def __init__(self, *args: Any) -> None:
        if args and not isinstance(args[0], str):
            args = (_text_about(type(self), *args),)
        super().__init__(*args)


def _text_about(kind: type, value: Any, context: str = "") -> str:
    aval = getattr(value, "aval", None)
    what = f"{aval.str_short()} ({type(value).__name__})" if aval else f"{type(value).__name__}"
    said = " ".join((inspect.getdoc(kind) or "").split("\n\n")[0].split())
    text = f"{said} Its type is {what}. {context}".strip()
    named = next((k.__name__ for k in kind.__mro__ if k.__name__ in _WITH_PAGE), None)
    return text if named is None else f"{text}\nSee {_PAGES}#jax.errors.{named}"


class JAXTypeError(_AboutValue, TypeError):
    """What is asked of a traced value is not known while tracing, or not allowed."""


class JAXIndexError(_AboutValue, IndexError):
    """An index that is not known while tracing."""


class ConcretizationTypeError(JAXTypeError):
    """A Python value was needed where only a traced one is known."""


class TracerBoolConversionError(ConcretizationTypeError):
    """The truth value of a traced array was asked for: `if x > 0`, `while`, `and`, `or`, `not`."""


class ControlFlowError(JAXTypeError):
    """Python control flow over traced values that cannot be converted."""


class TracerArrayConversionError(JAXTypeError):
    """A traced array was handed to NumPy."""


class TracerIntegerConversionError(JAXTypeError):
    """A traced array was used as a Python index or size."""


class NonConcreteBooleanIndexError(JAXIndexError):
    """A traced boolean mask was used as an index: the size of the result is not known."""


class DataDependentSizeError(ConcretizationTypeError, NonConcreteBooleanIndexError):
    """The lanes of a batch would get results of different sizes."""


class UnexpectedTracerError(JAXTypeError):
    """A traced value was used after its transformation had ended: it leaked through a side
    effect."""


class CustomVJPException(UnexpectedTracerError):
    """A function with a backward rule was differentiated by what it reads, not by its arguments."""


class InconclusiveDimensionOperation(Exception):
    """A question about a symbolic dimension has no single answer."""


class KeyReuseError(JAXTypeError):
    """A random key was consumed twice."""


class CalqueRuntimeError(RuntimeError):
    """A compiled program failed while it ran."""


def of_callback(error: Exception) -> Exception:
    """What a Python function raised that a program called, as the failure of the program: of the
    function's own class and a CalqueRuntimeError, and its text says the class."""
    kind = type(error)
    stopped = getattr(sys.modules.get("bdb"), "BdbQuit", CalqueRuntimeError)
    if issubclass(kind, (CalqueRuntimeError, stopped)):  # of a program inside, or told to quit
        return error
    said = "".join(traceback.format_exception_only(error)).strip()
    text = f"INTERNAL: CpuCallback error calling callback: {said}"
    names = {"__module__": kind.__module__, "__str__": lambda self: text}
    try:
        both = type(kind.__name__, (kind, CalqueRuntimeError), names)
        made: Exception = both.__new__(both, *error.args)
        made.args = error.args
        vars(made).update(vars(error))
    except TypeError:  # classes that cannot be joined, or not be made so
        made = CalqueRuntimeError(text)
    return made.with_traceback(error.__traceback__)


class InvalidValueError(CalqueRuntimeError, FloatingPointError):
    """A nan or an infinity that `calque_debug_nans` or `calque_debug_infs` forbids."""


class StaleCaptureError(RuntimeError):
    """A captured value changed after tracing, and `on_stale` is "error"."""


class StaleCaptureWarning(UserWarning):
    """A captured value changed after the function was traced."""
