"""What the numbers are of which a Fourier transform is made: the functions are written once, over
double precision, and are made once more over single precision."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypeAlias

from calque.machine.lang.unit import f32, f64, load_f32, load_f64, store_f32, store_f64

if TYPE_CHECKING:  # for type checkers, functions of the language are functions over float
    number: TypeAlias = float
else:
    number = f64
load_number, store_number, ITEM = load_f64, store_f64, 8

LANES: Final = 4  # that are summed at once

SINGLE: Final = "_single"  # the end of the names of what is made over single precision
SINGLE_ITEM: Final = 4
SINGLE_NAMES: Final[dict[str, Any]] = {
    "number": f32,
    "load_number": load_f32,
    "store_number": store_f32,
    "ITEM": SINGLE_ITEM,
    "LANES": 8,
}
