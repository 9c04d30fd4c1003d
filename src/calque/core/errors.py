"""The exceptions that tracing raises. Each message says what was traced, where it came from and
what to write instead."""

import sys
import traceback


class JAXTypeError(TypeError):
    """What is asked of a traced value is not known while tracing, or not allowed."""


class JAXIndexError(IndexError):
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
