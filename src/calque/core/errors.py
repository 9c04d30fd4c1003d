"""The exceptions that tracing raises. Each message says what was traced, where it came from and
what to write instead."""


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


class StaleCaptureError(RuntimeError):
    """A captured value changed after tracing, and `on_stale` is "error"."""


class StaleCaptureWarning(UserWarning):
    """A captured value changed after the function was traced."""
