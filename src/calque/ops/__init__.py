"""The vocabulary: every primitive with its NumPy meaning and its shape, jvp, transpose and batching
rules side by side.

Importing the package registers all of them: rules name the primitives they use (`do.mul`), which
may be of any file. For users the package has the folds of segments as well
(`calque.ops.segment_sum`), which the library makes: they are declared here, and `calque` offers
them."""

from typing import Protocol

from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.ops import (
    arithmetic,
    associative,
    bits,
    common,
    compare,
    complexes,
    convert,
    creation,
    cumulative,
    dimension_numbers,
    fft,
    gamma_gradients,
    indexing,
    joining,
    kinds,
    layout,
    math,
    padding,
    reduce,
    reductions,
    rounding,
    scalar_programs,
    scatter,
    scatter_functions,
    select_windows,
    sizes,
    slicing,
    sorting,
    special,
    staging,
    windows,
)
from calque.ops.dimension_numbers import GatherScatterMode
from calque.ops.linalg import common as linalg_common
from calque.ops.linalg import factors as linalg
from calque.ops.linalg import orthogonal as linalg_orthogonal
from calque.ops.linalg import spectral as linalg_spectral
from calque.ops.products import convolution as conv
from calque.ops.products import convolution_functions as convolutions
from calque.ops.products import dot, scaled_dot
from calque.ops.random import bits as rng
from calque.ops.random import keys as random_keys
from calque.ops.random import philox, threefry

__all__ = [
    "arithmetic",
    "associative",
    "bits",
    "common",
    "compare",
    "complexes",
    "conv",
    "convert",
    "convolutions",
    "creation",
    "cumulative",
    "dimension_numbers",
    "dot",
    "fft",
    "gamma_gradients",
    "indexing",
    "joining",
    "kinds",
    "layout",
    "linalg",
    "linalg_common",
    "linalg_orthogonal",
    "linalg_spectral",
    "math",
    "padding",
    "philox",
    "random_keys",
    "reduce",
    "reductions",
    "rng",
    "rounding",
    "scalar_programs",
    "scaled_dot",
    "scatter",
    "scatter_functions",
    "select_windows",
    "sizes",
    "slicing",
    "sorting",
    "special",
    "staging",
    "threefry",
    "windows",
]


class SegmentFold(Protocol):
    """A fold of segments, of `calque.numpy.segments`."""

    def __call__(
        self,
        data: Array,
        segment_ids: Array,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: GatherScatterMode | str | None = None,
        out_sharding: object = None,
    ) -> Array: ...


segment_max: SegmentFold
segment_min: SegmentFold
segment_prod: SegmentFold
segment_sum: SegmentFold

_guards.guard_public(globals())
