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


_HELP: Final = """\
The dtype {name}: {says}.

It stands wherever a dtype is asked for; called, it makes an array.

Args:
    x: a number, or anything that `jnp.array` takes.
Returns:
    An array of this dtype and of the shape of `x`.
Differs from NumPy:
    The call makes an array, not a scalar of NumPy's.{narrow}

>>> jnp.dtype(jnp.{name}).name
'{name}'"""
_NARROW: Final = "\n    Without x64 values get 32 bits for each 64."
_SAYS: Final = {
    "bool": "truth values",
    "bfloat16": "floats of 16 bits with the range of float32 and 8 bits of precision",
    "float16": "floats of 16 bits with 11 bits of precision, up to 65504",
    "float32": "floats of 32 bits with 24 bits of precision, the default one",
    "float64": "floats of 64 bits with 53 bits of precision",
    "complex64": "complex numbers of two float32",
    "complex128": "complex numbers of two float64",
    "float4_e2m1fn": "floats of 4 bits, 2 of them exponent, 1 mantissa; no infinity and no nan",
    "float6_e2m3fn": "floats of 6 bits, 2 of them exponent, 3 mantissa; no infinity and no nan",
    "float6_e3m2fn": "floats of 6 bits, 3 of them exponent, 2 mantissa; no infinity and no nan",
    "float8_e3m4": "floats of 8 bits, 3 of them exponent, 4 mantissa",
    "float8_e4m3": "floats of 8 bits, 4 of them exponent, 3 mantissa",
    "float8_e4m3b11fnuz": "floats of 8 bits, 4 of them exponent with bias 11, 3 mantissa; one nan,"
    " no\ninfinity and no -0",
    "float8_e4m3fn": "floats of 8 bits, 4 of them exponent, 3 mantissa; no infinity",
    "float8_e4m3fnuz": "floats of 8 bits, 4 of them exponent, 3 mantissa; one nan, no infinity and"
    " no -0",
    "float8_e5m2": "floats of 8 bits, 5 of them exponent, 2 mantissa",
    "float8_e5m2fnuz": "floats of 8 bits, 5 of them exponent, 2 mantissa; one nan, no infinity and"
    " no -0",
    "float8_e8m0fnu": "powers of two in 8 bits, all of them exponent; one nan, no 0 and no sign",
}


def _help(name: str) -> str:
    bits = "".join(c for c in name if c.isdigit())
    sign = "without a sign" if name.startswith("u") else "with a sign"
    says = _SAYS.get(name) or f"integers of {bits} bit{'s' * (bits != '1')}, {sign}"
    return _HELP.format(name=name, says=says, narrow=_NARROW if bits in ("64", "128") else "")


def scalar_type(dtype: Any) -> ScalarType:
    return ScalarType(dtype.name, (), {"dtype": dtype, "__doc__": _help(dtype.name)})


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
