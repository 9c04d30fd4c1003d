"""The scalar types: `jnp.float32` is a dtype for functions and makes an array when called."""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

from calque.core import dtypes
from calque.core.arrays import Array
from calque.numpy.conversions import asarray

__all__ = [
    "bfloat16",
    "bool_",
    "cdouble",
    "complex64",
    "complex128",
    "complex_",
    "csingle",
    "double",
    "float4_e2m1fn",
    "float6_e2m3fn",
    "float6_e3m2fn",
    "float8_e3m4",
    "float8_e4m3",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "float64",
    "float_",
    "int1",
    "int2",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "int_",
    "single",
    "uint",
    "uint1",
    "uint2",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]  # fmt: skip


class ScalarType(type):
    """The type of `jnp.float32` and its like. `jnp.float32(x)` is an array; `dtype=jnp.float32`
    names the dtype."""

    dtype: np.dtype

    def __call__(cls, x: Any = 0, /) -> Array:  # type: ignore[override]
        return asarray(x, dtype=cls.dtype)

    def __eq__(cls, other: object) -> bool:
        return cls is other or (
            other is not None
            and not isinstance(other, ScalarType)
            and bool(cls.dtype.type == other)
        )

    def __ne__(cls, other: object) -> bool:
        return not cls == other

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<class 'calque.numpy.{cls.__name__}'>"

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, cls.dtype.type)


def scalar_type(dtype: Any) -> ScalarType:
    return ScalarType(
        dtype.name,
        (),
        {"dtype": dtype, "__doc__": f"The dtype {dtype.name}; called, a 0-d array of it."},
    )


# names of standard types that arrays cannot have yet: calling them says so
_NAMED_ONLY = tuple(
    np.dtype(getattr(ml_dtypes, n)) for n in ("int1", "uint1") if hasattr(ml_dtypes, n)
)
SCALAR_TYPES: Final = {d.name: scalar_type(d) for d in (*dtypes.ALL, *_NAMED_ONLY)}

bfloat16: ScalarType
float16: ScalarType
float32: ScalarType
float64: ScalarType
complex64: ScalarType
complex128: ScalarType
int2: ScalarType
int4: ScalarType
int8: ScalarType
int16: ScalarType
int32: ScalarType
int64: ScalarType
uint2: ScalarType
uint4: ScalarType
uint8: ScalarType
uint16: ScalarType
uint32: ScalarType
uint64: ScalarType
float4_e2m1fn: ScalarType
float8_e3m4: ScalarType
float8_e4m3: ScalarType
float8_e4m3b11fnuz: ScalarType
float8_e4m3fn: ScalarType
float8_e4m3fnuz: ScalarType
float8_e5m2: ScalarType
float8_e5m2fnuz: ScalarType
float8_e8m0fnu: ScalarType
float6_e2m3fn: ScalarType
float6_e3m2fn: ScalarType
int1: ScalarType
uint1: ScalarType
globals().update(SCALAR_TYPES)
bool_ = SCALAR_TYPES["bool"]
single, double = SCALAR_TYPES["float32"], SCALAR_TYPES["float64"]
csingle, cdouble = SCALAR_TYPES["complex64"], SCALAR_TYPES["complex128"]
int_, uint = SCALAR_TYPES["int64"], SCALAR_TYPES["uint64"]
float_, complex_ = SCALAR_TYPES["float64"], SCALAR_TYPES["complex128"]
ABSENT = frozenset(__all__) - globals().keys()  # that this `ml_dtypes` does not know
__all__ = [n for n in __all__ if n not in ABSENT]
