"""What is neither an expression nor a stage, and who makes steps of it. That is imported when a
program has such an equation."""

from __future__ import annotations

from typing import Final

from calque.core import lazy
from calque.native.library.names import FACTORS, SORTS, TRANSFORMS
from calque.native.plan.blocks import Emitter, Takes
from calque.native.plan.homes import Copies

_loop: Final = lazy.function("calque.native.control.forms", "emit_loop")

takes: Final[Takes] = lazy.function("calque.native.control.in_place", "takes")
copies_left: Final[Copies] = lazy.function("calque.native.library.products", "copies_left")
EMITTERS: Final[dict[str, Emitter]] = {
    "scan": _loop,
    "while": _loop,
    "cond": lazy.function("calque.native.control.forms", "emit_cond"),
    "let_size": lazy.function("calque.native.control.forms", "emit_let_size"),
    "matmul_tiled": lazy.function("calque.native.library.products", "emit_product"),
    "conv_tiled": lazy.function("calque.native.library.convolution", "emit_conv"),
    **dict.fromkeys(SORTS, lazy.function("calque.native.library.sorting", "emit_sort")),
    **dict.fromkeys(TRANSFORMS, lazy.function("calque.native.library.fourier", "emit_fft")),
    **dict.fromkeys(FACTORS, lazy.function("calque.native.library.linalg", "emit_linalg")),
}
