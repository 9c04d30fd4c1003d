"""Cases of layout, slicing, joining, gathers and scatters: all exact."""

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from calque.core import dtypes
from calque.core.primitives import Primitive
from calque.ops.dimension_numbers import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
)
from calque.ops.indexing import combiner
from tests.native.cases import BF16, Case, cases_of, numbers, wild

F32, I32 = np.dtype("float32"), np.dtype("int32")
SOME = (
    F32,
    np.dtype("bool"),
    np.dtype("int8"),
    np.dtype("float64"),
    np.dtype("complex64"),
    BF16,
    dtypes.FLOAT8[0],
    np.dtype("complex128"),
)
LAYOUT: dict[str, list[tuple[tuple[int, ...], dict[str, Any]]]] = {
    "broadcast_in_dim": [
        (s, {"shape": t, "broadcast_dimensions": d, "sharding": None})
        for s, t, d in [
            ((), (), ()), ((), (0,), ()), ((), (7,), ()), ((), (3, 5), ()), ((5,), (3, 5), (1,)),
            ((3,), (3, 5), (0,)), ((1, 5), (3, 5), (0, 1)),
            ((3, 1), (3, 5), (0, 1)), ((5,), (2, 5, 3), (1,)), ((17, 33), (17, 2, 33), (0, 2)),
            ((0,), (0, 3), (0,)), ((1,), (0,), (0,)),
            ((1, 1), (65, 130), (0, 1)), ((3, 1, 4), (3, 9, 4), (0, 1, 2)), ((4, 3), (2, 4, 5, 3),
            (1, 3)),
        ]
    ],
    "reshape": [
        (s, {"new_sizes": t, "dimensions": None, "sharding": None})
        for s, t in [
            ((), (1, 1)), ((1,), ()), ((0, 3), (0,)), ((2, 0, 3), (3, 0)), ((12,), (3, 4)), ((3,
            4), (2, 6)), ((17, 33), (33, 17)), ((2, 3, 4), (4, 6)),
            ((5, 1, 4), (20,)), ((130,), (1, 13, 10)), ((64, 65), (4160,)), ((2, 6, 5), (2, 2, 3,
            5)),
        ]
    ],
    "transpose": [
        (s, {"permutation": p})
        for s in [(), (7,), (3, 5), (17, 33), (65, 130), (515, 2), (2, 600), (0, 3), (5, 1, 4),
        (2, 0, 3), (8, 9, 10), (2, 3, 4, 5)]
        for p in itertools.islice(itertools.permutations(range(len(s))), 0, 24,
        5 if len(s) > 3 else 1)
    ],
    "squeeze": [(s, {"dimensions": d}) for s, d in [((1,), (0,)), ((5, 1, 4), (1,)), ((1, 7, 1),
    (0, 2)), ((1, 0), (0,)), ((1, 7, 1), (2,))]],
    "rev": [(s, {"dimensions": d}) for s, d in [((7,), (0,)), ((130,), (0,)), ((17, 33), (0,)),
    ((17, 33), (1,)), ((17, 33), (0, 1)), ((0, 3), (0,)), ((2, 3, 65), (0, 2)), ((3,), ())]],
    "slice": [
        (s, {"start_indices": a, "limit_indices": b, "strides": st})
        for s, a, b, st in [
            ((7,), (2,), (5,), None), ((130,), (1,), (130,), (3,)), ((130,), (5,), (5,), None),
            ((17, 33), (1, 2), (16, 33), None), ((17, 33), (1, 2), (16, 33), (2, 5)),
            ((17, 33), (0, 0), (17, 33), (1, 1)), ((0, 3), (0, 1), (0, 3), None), ((2, 3, 65), (1,
            0, 1), (2, 3, 64), (1, 2, 2)), ((7,), (3,), (4,), (100,)), ((), (), (), None),
        ]
    ],
    "tile": [(s, {"reps": r}) for s, r in [((3,), (4,)), ((3, 5), (2, 1)), ((3, 5), (1, 3)),
    ((1,), (130,)), ((3,), (0,)), ((2, 1, 4), (2, 3, 2)), ((17, 33), (2, 2))]],
    "split": [(s, {"sizes": z, "axis": a}) for s, z, a in [((7,), (3, 4), 0), ((17, 33), (1, 0,
    32), 1), ((17, 33), (5, 12), 0), ((2, 6, 5), (2, 2, 2), 1), ((0, 3), (0, 0), 0)]],
    "unstack": [(s, {"axis": a}) for s, a in [((3, 5), 0), ((3, 5), 1), ((1, 7), 0), ((4, 0), 0),
    ((2, 3, 65), 1)]],
}  # fmt: skip


@cases_of(*LAYOUT)
def layout(p: Primitive) -> Iterator[Case]:
    for k, (shape, params) in enumerate(LAYOUT[p.name]):
        for d in SOME if k in (3, 4) else (F32, SOME[k % len(SOME)]):
            yield Case(p, (wild(d, *shape),), params)


@cases_of("concatenate", "stack")
def joining(p: Primitive) -> Iterator[Case]:
    for shape in ((3,), (0,), (17, 33), (2, 3, 65), (1, 40), (40, 1)):
        for axis in range(len(shape)):
            for d in SOME if shape == (17, 33) else (F32,):
                xs = [wild(d, *shape, seed=i) for i in range(3)]
                if p.name == "stack":
                    yield Case(p, tuple(xs), {"axis": axis})
                    yield Case(p, tuple(xs), {"axis": len(shape)})
                else:
                    odd = [xs[0], np.take(xs[1], range(shape[axis] // 2), axis), xs[2]]
                    yield Case(p, tuple(odd), {"dimension": axis})
                    yield Case(p, (xs[0],), {"dimension": axis})


@cases_of("pad")
def pad(p: Primitive) -> Iterator[Case]:
    for shape, config in [
        ((7,), ((1, 2, 0),)), ((7,), ((-1, -2, 0),)), ((7,), ((0, 0, 3),)), ((7,), ((-2, 5, 2),)),
        ((7,), ((-9, 2, 1),)), ((0,), ((3, 4, 0),)), ((0,), ((0, 0, 5),)),
        ((17, 33), ((1, 2, 1), (-3, 4, 2))), ((17, 33), ((0, 0, 0), (5, -7, 0))), ((17, 33),
        ((-16, 0, 0), (0, -32, 0))), ((2, 3, 65), ((0, 1, 0), (0, 0, 2), (1, 1, 1))), ((), ()),
        ((1,), ((-1, 0, 0),)), ((130,), ((64, 65, 0),)),
    ]:  # fmt: skip
        for d in SOME if shape == (17, 33) else (F32,):
            yield Case(p, (wild(d, *shape), numbers(d, seed=5)), {"padding_config": config})


STARTS = ((0, 0), (3, 5), (-4, 2), (100, 100), (-1000, 30), (14, -1))


@cases_of("dynamic_slice")
def dynamic_slice(p: Primitive) -> Iterator[Case]:
    for k, starts in enumerate(STARTS):
        for d in (SOME[k % len(SOME)], F32):
            for index in (
                I32,
                np.dtype("uint8"),
                np.dtype("int64"),
                np.dtype("uint32"),
                np.dtype("int8"),
            ):
                with np.errstate(all="ignore"):
                    at = [np.asarray(s).astype(index) for s in starts]
                yield Case(p, (wild(d, 17, 33), *at), {"slice_sizes": (3, 7)})
        yield Case(p, (wild(F32, 2, 130), *map(I32.type, starts)), {"slice_sizes": (1, 130)})
        yield Case(p, (wild(F32, 2, 0), *map(I32.type, starts)), {"slice_sizes": (1, 0)})


@cases_of("dynamic_update_slice")
def dynamic_update_slice(p: Primitive) -> Iterator[Case]:
    for k, starts in enumerate(STARTS):
        for d in (SOME[k % len(SOME)], F32):
            for shape in ((3, 7), (1, 1), (17, 33), (17, 1), (0, 3)):
                yield Case(
                    p, (wild(d, 17, 33), wild(d, *shape, seed=1), *map(I32.type, starts)), {}
                )


G = GatherDimensionNumbers
GATHERS: list[tuple[tuple[int, ...], tuple[int, ...], G, tuple[int, ...]]] = [
    # operand, indices, numbers, slice sizes
    ((130,), (7, 1), G((), (0,), (0,)), (1,)),
    ((17, 33), (7, 1), G((1,), (0,), (0,)), (1, 33)),
    ((17, 33), (7, 1), G((0,), (1,), (1,)), (17, 1)),
    ((17, 33), (7, 2), G((), (0, 1), (0, 1)), (1, 1)),
    ((17, 33), (7, 2), G((), (0, 1), (1, 0)), (1, 1)),
    ((17, 33), (3, 5, 2), G((2, 3), (), (0, 1)), (4, 6)),
    ((17, 33), (3, 5, 2), G((0, 3), (), (0, 1)), (4, 6)),
    ((17, 33), (2,), G((0, 1), (), (0, 1)), (4, 6)),
    ((17, 33), (1,), G((0,), (0,), (0,)), (1, 33)),
    ((17, 33), (0, 1), G((1,), (0,), (0,)), (1, 33)),
    ((5, 0), (3, 1), G((1,), (0,), (0,)), (1, 0)),
    ((4, 6, 9), (3, 2), G((1,), (0, 2), (0, 2)), (1, 6, 1)),
    ((4, 6, 9), (3, 2), G((0, 1), (2,), (2, 0)), (2, 6, 1)),
    ((4, 6, 9), (4, 5, 1), G((1,), (2,), (2,), (0,), (0,)), (1, 6, 1)),
    ((4, 6, 9), (6, 4, 1), G((), (2,), (2,), (0, 1), (1, 0)), (1, 1, 1)),
    ((), (5, 0), G((), (), ()), ()),
]  # fmt: skip
MODES = (
    GatherScatterMode.CLIP,
    GatherScatterMode.FILL_OR_DROP,
    GatherScatterMode.PROMISE_IN_BOUNDS,
)


def index_array(shape: tuple[int, ...], bound: int, mode: Any, dtype: Any = I32) -> np.ndarray:
    """Indices, with some out of range unless they are promised to be inside."""
    inside = mode is GatherScatterMode.PROMISE_IN_BOUNDS
    low = 0 if inside or dtype.kind == "u" else -3
    return (
        np.random.default_rng(len(shape))
        .integers(low, bound if inside else bound + 4, shape)
        .astype(dtype)
    )


def bound_of(operand: tuple[int, ...], mapped: tuple[int, ...], sizes: tuple[int, ...]) -> int:
    return min([operand[m] - sizes[m] + 1 for m in mapped], default=1)


@cases_of("gather")
def gather(p: Primitive) -> Iterator[Case]:
    fixed: dict[str, Any] = {"unique_indices": False, "indices_are_sorted": False}
    for k, (operand, indices, dn, sizes) in enumerate(GATHERS):
        for mode in MODES:
            for d, fill in (
                (F32, None),
                (SOME[k % len(SOME)], None),
                (I32, 7),
                (np.dtype("uint8"), None),
                (F32, 2.5),
            ):
                for index in (
                    (I32, np.dtype("uint8"), np.dtype("int64"), np.dtype("uint32"))
                    if d == I32
                    else (I32,)
                ):
                    at = index_array(
                        indices, bound_of(operand, dn.start_index_map, sizes), mode, index
                    )
                    more = {
                        "dimension_numbers": dn,
                        "slice_sizes": sizes,
                        "mode": mode,
                        "fill_value": fill,
                    }
                    yield Case(p, (wild(d, *operand), at), {**fixed, **more})


S = ScatterDimensionNumbers
SCATTERS: list[tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], S]] = [
    # operand, indices, updates, numbers
    ((130,), (40, 1), (40,), S((), (0,), (0,))),
    ((5,), (300, 1), (300,), S((), (0,), (0,))),
    ((17, 33), (7, 1), (7, 33), S((1,), (0,), (0,))),
    ((17, 33), (7, 1), (17, 7), S((0,), (1,), (1,))),
    ((17, 33), (60, 2), (60,), S((), (0, 1), (0, 1))),
    ((17, 33), (60, 2), (60,), S((), (0, 1), (1, 0))),
    ((17, 33), (3, 5, 2), (3, 5, 4, 6), S((2, 3), (), (0, 1))),
    ((17, 33), (3, 5, 2), (4, 3, 5, 6), S((0, 3), (), (0, 1))),
    ((17, 33), (2,), (4, 6), S((0, 1), (), (0, 1))),
    ((17, 33), (1,), (33,), S((0,), (0,), (0,))),
    ((17, 33), (0, 1), (0, 33), S((1,), (0,), (0,))),
    ((17, 33), (0,), (17, 33), S((0, 1), (), ())),
    ((5, 0), (3, 1), (3, 0), S((1,), (0,), (0,))),
    ((4, 6, 9), (3, 2), (3, 6), S((1,), (0, 2), (0, 2))),
    ((4, 6, 9), (4, 5, 1), (4, 6, 5), S((1,), (2,), (2,), (0,), (0,))),
    ((4, 6, 9), (6, 4, 1), (6, 4), S((), (2,), (2,), (0, 1), (1, 0))),
    ((), (0,), (), S((), (), ())),
]  # fmt: skip
COMBINE = {
    "scatter-add": "add",
    "scatter-sub": "sub",
    "scatter-mul": "mul",
    "scatter-min": "min",
    "scatter-max": "max",
    "scatter": None,
}


def scatter_bound(operand: tuple[int, ...], updates: tuple[int, ...], dn: S) -> int:
    kept = [
        d
        for d in range(len(operand))
        if d not in (*dn.inserted_window_dims, *dn.operand_batching_dims)
    ]
    window = dict(zip(kept, [updates[w] for w in dn.update_window_dims]))
    return min(
        [operand[m] - window.get(m, 1) + 1 for m in dn.scatter_dims_to_operand_dims], default=1
    )


@cases_of(*COMBINE)
def scatter(p: Primitive) -> Iterator[Case]:
    op = COMBINE[p.name]
    for k, (operand, indices, updates, dn) in enumerate(SCATTERS):
        for mode in MODES:
            for d in (
                F32,
                I32,
                (
                    np.dtype("float16"),
                    np.dtype("int8"),
                    np.dtype("complex64"),
                    BF16,
                    np.dtype("bool"),
                )[k % 5],
            ):
                if (d.kind == "b" and p.name != "scatter") or (
                    d.kind == "c" and p.name[-3:] in ("min", "max")
                ):
                    continue
                at = index_array(indices, scatter_bound(operand, updates, dn), mode)
                x, u = numbers(d, *operand), numbers(d, *updates, seed=1)
                jaxpr, consts = (None, ()) if op is None else (combiner(op, d), ())
                params = {
                    "dimension_numbers": dn,
                    "mode": mode,
                    "update_jaxpr": jaxpr,
                    "update_consts": consts,
                }
                yield Case(
                    p,
                    (x, at, u),
                    {**params, "unique_indices": False, "indices_are_sorted": False},
                    4,
                )
