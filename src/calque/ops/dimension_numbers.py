"""Parameters that name dimensions and modes: GatherDimensionNumbers, ScatterDimensionNumbers,
GatherScatterMode, ConvDimensionNumbers, RaggedDotDimensionNumbers, Precision, FftType."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from calque.core.config import config
from calque.core.dtypes import asked

Dims = tuple[int, ...]


class GatherDimensionNumbers(NamedTuple):
    """Which dimensions of the operand, the indices and the result of `gather` belong together.

    Args:
        offset_dims: Dimensions of the result that run through the slices.
        collapsed_slice_dims: Dimensions of the operand, of slice size 1, that the result does not
            have.
        start_index_map: The dimension of the operand that each entry of a position points into.
        operand_batching_dims: Dimensions of the operand that are walked together with those of the
            indices.
        start_indices_batching_dims: These dimensions of the indices.

    >>> lax.GatherDimensionNumbers((1,), (0,), (0,)).offset_dims
    (1,)"""

    offset_dims: Dims
    collapsed_slice_dims: Dims
    start_index_map: Dims
    operand_batching_dims: Dims = ()
    start_indices_batching_dims: Dims = ()


class ScatterDimensionNumbers(NamedTuple):
    """Which dimensions of the operand, the indices and the updates of `scatter` belong together.

    Args:
        update_window_dims: Dimensions of the updates that run through the windows.
        inserted_window_dims: Dimensions of the operand, of window size 1, that the updates do not
            have.
        scatter_dims_to_operand_dims: The dimension of the operand that each entry of a position
            points into.
        operand_batching_dims: Dimensions of the operand that are walked together with those of the
            indices.
        scatter_indices_batching_dims: These dimensions of the indices.

    >>> lax.ScatterDimensionNumbers((), (0,), (0,)).inserted_window_dims
    (0,)"""

    update_window_dims: Dims
    inserted_window_dims: Dims
    scatter_dims_to_operand_dims: Dims
    operand_batching_dims: Dims = ()
    scatter_indices_batching_dims: Dims = ()


class GatherScatterMode(enum.Enum):
    """What to do with windows that are not wholly inside the operand.

    CLIP               move them inside
    FILL_OR_DROP       gather gives `fill_value` for them, scatter leaves them out
    PROMISE_IN_BOUNDS  the caller says that there are none; calque then clips in gather and leaves
    out in scatter ONE_HOT            as PROMISE_IN_BOUNDS (a hint for accelerators)"""

    CLIP = enum.auto()
    FILL_OR_DROP = enum.auto()
    PROMISE_IN_BOUNDS = enum.auto()
    ONE_HOT = enum.auto()

    @staticmethod
    def from_any(s: str | GatherScatterMode | None) -> GatherScatterMode:
        """Gives the mode with a name.

        Args:
            s: "clip", "fill", "drop", "promise_in_bounds", or None for "fill"; a mode is given
                back.

        Returns:
            A GatherScatterMode.

        >>> lax.GatherScatterMode.from_any("clip").name
        'CLIP'"""
        if isinstance(s, GatherScatterMode):
            return s
        try:
            return _MODES[s]
        except KeyError:
            raise ValueError(f'Unknown gather mode "{s}"') from None


_MODES: Final[dict[str | None, GatherScatterMode]] = {
    "clip": GatherScatterMode.CLIP,
    None: GatherScatterMode.FILL_OR_DROP,
    "fill": GatherScatterMode.FILL_OR_DROP,
    "drop": GatherScatterMode.FILL_OR_DROP,
    "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
}


class ConvDimensionNumbers(NamedTuple):
    """The layout of a convolution, by the positions of dimensions.

    Args:
        lhs_spec: Of the operand: (batch, feature, *spatial).
        rhs_spec: Of the kernel: (out feature, in feature, *spatial).
        out_spec: Of the result: (batch, feature, *spatial).

    >>> lax.ConvDimensionNumbers((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2)).out_spec
    (0, 3, 1, 2)"""

    lhs_spec: Dims
    rhs_spec: Dims
    out_spec: Dims


class RaggedDotDimensionNumbers(NamedTuple):
    """The dimensions of `ragged_dot_general`.

    Args:
        dot_dimension_numbers: Those of a `dot_general`.
        lhs_ragged_dimensions: The dimension of lhs that is cut into groups.
        rhs_group_dimensions: The dimension of rhs that lists the groups.

    >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    >>> numbers.lhs_ragged_dimensions
    (0,)"""

    dot_dimension_numbers: Any
    lhs_ragged_dimensions: Dims
    rhs_group_dimensions: Dims


class FftType(enum.IntEnum):
    """The kinds of Fourier transform: complex, inverse, real to complex, complex to real."""

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


class Precision(enum.Enum):
    """How exact a product of arrays should be. On this CPU every product has the precision of its
    operands' dtype."""

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithm(NamedTuple):
    """An algorithm for dot products, by the dtypes of its parts. Products add at least so exactly.

    Args:
        lhs_precision_type: What the left operand is rounded to.
        rhs_precision_type: What the right operand is rounded to.
        accumulation_type: What is added in.
        lhs_component_count: Into how many parts the left operand is split.
        rhs_component_count: Into how many parts the right operand is split.
        num_primitive_operations: How many products of parts are added.
        allow_imprecise_accumulation: Whether sums may lose digits.

    >>> lax.DotAlgorithm(np.float32, np.float32, np.float32).num_primitive_operations
    1"""

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(enum.Enum):
    """Named algorithms for dot products. calque accepts them all: its products are at least as
    exact."""

    DEFAULT = enum.auto()
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"{type(self).__name__}.{self.name}"

    def __str__(self) -> str:
        return self.name


# what parameters of the library take
PrecisionLike = (
    str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm
    | DotAlgorithmPreset | None
)  # fmt: skip
DotDimensionNumbers = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None

_PRECISIONS: Final = {
    "highest": Precision.HIGHEST,
    "float32": Precision.HIGHEST,
    "high": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "tensorfloat32": Precision.HIGH,
    "default": Precision.DEFAULT,
    "bfloat16": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
}


def preferred_dtype(preferred_element_type: Any) -> Any:
    """The dtype that a product was asked to have, None where that of its operands decides."""
    return None if preferred_element_type is None else asked(preferred_element_type)


def canonical_precision(precision: Any) -> Any:
    """A `precision=` argument in the form that equations carry: None, a pair of Precision, or an
    algorithm."""
    if precision is None:
        precision = config.default_matmul_precision
        if precision is None:
            return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str) and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    pair = precision if isinstance(precision, (tuple, list)) else (precision, precision)
    if len(pair) == 2 and all(
        isinstance(p, Precision) or p in _PRECISIONS or p is None for p in pair
    ):
        left, right = [
            p if isinstance(p, Precision) else _PRECISIONS.get(p, Precision.DEFAULT) for p in pair
        ]
        return left, right
    raise ValueError(
        f"Precision argument must be None, one of {sorted(_PRECISIONS)}, a lax.Precision value, a"
        " tuple of two of these, a lax.DotAlgorithm, or a lax.DotAlgorithmPreset or its name; got"
        f" {precision!r}"
    )
