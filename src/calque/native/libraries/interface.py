"""What a library looks like from outside: the names and types of its sizes, arguments and results,
and the messages of its statuses."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from calque.core.avals import ShapedArray
from calque.core.dims import poly_of
from calque.machine.driver.interpreter import DIVIDED_BY_ZERO, NO_MEMORY, OK, TOO_LARGE
from calque.machine.records import record
from calque.native.libraries.sizes import FreeSizes

FIRST_OF_PROGRAM: Final = 10  # statuses from here on depend on the function
WRONG_RESULT, WRONG_PROCESSOR, NOT_FOR_SIZES = 5, 6, 7
_COMMON: Final = {
    OK: "no error",
    NO_MEMORY: "no memory for what the function computes in between",
    TOO_LARGE: "a size that follows from the given ones does not fit in 64 bits, or is negative",
    DIVIDED_BY_ZERO: "a size computed while the function ran was divided by zero",
    WRONG_RESULT: "there is no result of this number, or no place for its sizes",
    WRONG_PROCESSOR: "this processor lacks instructions that the library was made with",
    NOT_FOR_SIZES: "the library has no program for these sizes",
}
_C_TYPES: Final = {
    "bool": ("bool", 1), "int8": ("int8_t", 1), "int16": ("int16_t", 1), "int32": ("int32_t", 1),
    "int64": ("int64_t", 1), "uint8": ("uint8_t", 1), "uint16": ("uint16_t", 1),
    "uint32": ("uint32_t", 1), "uint64": ("uint64_t", 1), "float32": ("float", 1),
    "float64": ("double", 1), "complex64": ("float", 2), "complex128": ("double", 2),
}  # fmt: skip
_BITS: Final = {1: "uint8", 2: "uint16"}  # types that C has not, by their bytes
_C: Final = (
    "auto bool break case char const continue default do double else enum extern false float for"
    " goto if inline int long register restrict return short signed sizeof static struct switch"
    " true typedef union unsigned void volatile while NULL"
)
_CPP: Final = (
    "catch class delete explicit export friend mutable namespace new operator private protected"
    " public template this throw try typename using virtual wchar_t"
)
_C_WORDS: Final = frozenset(f"{_C} {_CPP}".split())


@record
class Value:
    """An argument or a result: `shape` in numbers and texts of sizes, `ctype` for `parts` numbers
    an element, `numpy` the dtype that stands for it in NumPy."""

    name: str
    aval: ShapedArray
    shape: tuple[int | str, ...]
    dtype: str
    ctype: str
    parts: int
    numpy: str


@dataclass
class Interface:
    """The whole of it. `name` is that of the function, with which all other names begin."""

    name: str
    sizes: tuple[str, ...]
    arguments: tuple[Value, ...]
    results: tuple[Value, ...]
    messages: dict[int, str] = field(default_factory=lambda: dict(_COMMON))

    def status(self, message: str) -> int:
        """The status with this message."""
        for number, text in self.messages.items():
            if text == message:
                return number
        number = max(FIRST_OF_PROGRAM, max(self.messages) + 1)
        self.messages[number] = message
        return number


def values(
    names: Sequence[str], avals: Sequence[ShapedArray], sizes: FreeSizes
) -> tuple[Value, ...]:
    return tuple([_value(name, aval, sizes) for name, aval in zip(names, avals, strict=True)])


def _value(name: str, aval: ShapedArray, sizes: FreeSizes) -> Value:
    if not isinstance(aval.dtype, np.dtype):
        raise NotImplementedError(
            f"export_library: {name} is of type {aval.str_short()}, which C does not know: pass"
            " random keys as jax.random.key_data(key), and wrap_key_data them inside"
        )
    dtype = aval.dtype.name
    if dtype in _C_TYPES:
        (ctype, parts), numpy = _C_TYPES[dtype], dtype
    elif aval.dtype.itemsize in _BITS and "int" not in dtype:
        numpy = dtype if dtype == "float16" else _BITS[aval.dtype.itemsize]
        ctype, parts = f"{_BITS[aval.dtype.itemsize]}_t", 1
    else:
        raise NotImplementedError(
            f"export_library: {name} is of type {aval.str_short()}, which has no type in C: convert"
            " it inside the function"
        )
    shape = tuple([d if type(d) is int else sizes.text(poly_of(d) or ()) for d in aval.shape])
    return Value(name, aval, shape, dtype, ctype, parts, numpy)


def identifiers(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """Names of arguments as C may have them, each once."""
    used, out = set(taken), []
    for name in names:
        plain = identifier(name)
        candidate, k = plain, 2
        while candidate in used:
            candidate, k = f"{plain}_{k}", k + 1
        used.add(candidate)
        out.append(candidate)
    return out


def identifier(name: str) -> str:
    plain = re.sub(r"[^0-9A-Za-z]+", "_", name).strip("_") or "x"
    if plain[0].isdigit():
        plain = f"x{plain}"
    return f"{plain}_" if plain in _C_WORDS or keyword.iskeyword(plain) else plain


def is_name(name: str) -> bool:
    """Whether a function may be called so, in C and in Python."""
    plain = re.fullmatch(r"[A-Za-z_][0-9A-Za-z_]*", name) is not None
    return plain and name not in _C_WORDS and not keyword.iskeyword(name)
