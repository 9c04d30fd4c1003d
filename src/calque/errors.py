"""The exceptions of calque, in JAX's names."""

from calque.core.errors import (
    CalqueRuntimeError,
    ConcretizationTypeError,
    ControlFlowError,
    DataDependentSizeError,
    InconclusiveDimensionOperation,
    JAXIndexError,
    JAXTypeError,
    KeyReuseError,
    NonConcreteBooleanIndexError,
    StaleCaptureWarning,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)
from calque.core.jaxprs import JaxprTypeError

JaxRuntimeError = CalqueRuntimeError

__all__ = [
    "CalqueRuntimeError",
    "ConcretizationTypeError",
    "ControlFlowError",
    "DataDependentSizeError",
    "InconclusiveDimensionOperation",
    "JAXIndexError",
    "JAXTypeError",
    "JaxRuntimeError",
    "JaxprTypeError",
    "KeyReuseError",
    "NonConcreteBooleanIndexError",
    "StaleCaptureWarning",
    "TracerArrayConversionError",
    "TracerBoolConversionError",
    "TracerIntegerConversionError",
    "UnexpectedTracerError",
]  # fmt: skip
