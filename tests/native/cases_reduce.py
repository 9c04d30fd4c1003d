"""Cases of reductions, running folds, positions of extremes, sorting, windows."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from calque.core.primitives import REGISTRY, Primitive, do
from calque.core.trace import trace_to_jaxpr, typeof
from tests.native.cases import (
    Case,
    accepted,
    cases_of,
    is_floating,
    numbers,
    of_sizes,
    specials,
    wild,
)

F32, I32 = np.dtype("float32"), np.dtype("int32")
SHAPES = (
    (1,),
    (0,),
    (7,),
    (33,),
    (64,),
    (65,),
    (130,),
    (1000,),
    (3, 5),
    (17, 33),
    (1, 40),
    (515, 2),
    (2, 70),
    (5, 1, 4),
    (2, 0, 3),
    (4, 17, 20),
)
ADDITIVE = ("reduce_sum", "cumsum", "reduce_window_sum", "add")
LOG2 = 12.0  # errors of a sum grow no faster than this many units of the sum of sizes


def axes_of(n: int) -> list[tuple[int, ...]]:
    some = (
        [(a,) for a in range(n)]
        + ([tuple(range(n))] if n > 1 else [])
        + ([(0, 2), (1, 2)] if n == 3 else [])
        + [()]
    )
    return some


def gentle(dtype: Any, *shape: int, seed: int = 0) -> np.ndarray:
    """Factors near 1, so that long products stay in range."""
    if not is_floating(dtype) and np.dtype(dtype).kind != "c":
        return wild(dtype, *shape, seed=seed)
    return (1 + 0.02 * numbers(F32, *shape, seed=seed)).astype(dtype)


def reduced(p: Primitive, x: np.ndarray, **params: Any) -> Case:
    inexact = is_floating(x.dtype) or x.dtype.kind == "c"
    if p.name == "reduce_sum" and inexact:
        return Case(p, (x,), params, LOG2, of_sizes(p))
    if p.name == "reduce_prod" and inexact:
        return Case(
            p, (x,), params, 4 + 2 * max(x.size, 1) ** 0.5 + (x.size if x.itemsize < 4 else 0)
        )
    return Case(p, (x,), params, 0 if inexact else None)


@cases_of(
    "reduce_sum", "reduce_prod", "reduce_max", "reduce_min", "reduce_and", "reduce_or", "reduce_xor"
)
def reduction(p: Primitive) -> Iterator[Case]:
    more: dict[str, Any] = {"out_sharding": None} if p.name == "reduce_sum" else {}
    takes = accepted(p, [(3,)], axes=(0,), **more)
    make = numbers if p.name == "reduce_sum" else gentle if p.name == "reduce_prod" else wild
    for shape in SHAPES:
        for axes in axes_of(len(shape)):
            for d in (F32, I32) if F32 in takes else (I32, np.dtype("bool")):
                yield reduced(p, make(d, *shape), axes=axes, **more)
    for d in takes:
        for axes in ((0,), (1,), (0, 1)):
            yield reduced(p, make(d, 17, 33), axes=axes, **more)
        if p.name not in ("reduce_prod", "reduce_sum"):
            yield reduced(p, np.tile(specials(d), 3), axes=(0,), **more)
            if is_floating(d):
                yield reduced(p, np.abs(numbers(d, 40, 3)), axes=(0,), **more)
    if p.name == "reduce_sum":
        for extra in (np.inf, -np.inf, np.nan):
            yield reduced(
                p, np.concatenate([numbers(F32, 100), [np.float32(extra)]]), axes=(0,), **more
            )
    yield reduced(p, make(F32 if F32 in takes else I32, 70_000), axes=(0,), **more)


@cases_of("argmax", "argmin")
def positions(p: Primitive) -> Iterator[Case]:
    for d in accepted(p, [(3,)], axes=(0,), index_dtype=I32):
        for shape in ((7,), (65,), (17, 33), (3, 5, 2)) if d in (F32, I32) else ((17, 33),):
            for axis in range(len(shape)):
                for index in (I32, np.dtype("int64"), np.dtype("uint8")) if d == F32 else (I32,):
                    yield Case(p, (wild(d, *shape),), {"axes": (axis,), "index_dtype": index})
        yield Case(p, (numbers(d, 200, low=0, high=1),), {"axes": (0,), "index_dtype": I32})
    yield Case(
        p,
        (np.full((40,), -np.inf if p.name == "argmax" else np.inf, F32),),
        {"axes": (0,), "index_dtype": I32},
    )


@cases_of("cumsum", "cumprod", "cummax", "cummin", "cumlogsumexp")
def running(p: Primitive) -> Iterator[Case]:
    takes = accepted(p, [(3,)], axis=0, reverse=False)
    make = {"cumsum": numbers, "cumprod": gentle, "cumlogsumexp": numbers}.get(p.name, wild)
    for reverse in (False, True):
        for shape in SHAPES:
            for axis in range(len(shape)):
                for d in (F32, I32) if I32 in takes else (F32,):
                    yield run_along(p, make(d, *shape), axis=axis, reverse=reverse)
        for d in takes:
            for axis in (0, 1):
                yield run_along(p, make(d, 17, 33), axis=axis, reverse=reverse)


def run_along(p: Primitive, x: np.ndarray, **params: Any) -> Case:
    if not (is_floating(x.dtype) or x.dtype.kind == "c"):
        return Case(p, (x,), params)
    n = float(x.shape[params["axis"]])
    if p.name == "cumsum":
        return Case(p, (x,), params, 3 + (n if x.itemsize <= 2 else n**0.5 * 4), of_sizes(p))
    if p.name == "cumprod":
        return Case(p, (x,), params, 4 + 2 * n)
    return (
        Case(p, (x,), params, 4 + n, lambda x, **q: np.ones(x.shape))
        if p.name == "cumlogsumexp"
        else Case(p, (x,), params, 0)
    )


@cases_of("sort")
def sort(p: Primitive) -> Iterator[Case]:
    for d in accepted(p, [(3,)], dimension=0, is_stable=True, num_keys=1):
        for shape in SHAPES if d == F32 else ((17, 33),):
            for axis in range(len(shape)):
                yield Case(
                    p, (wild(d, *shape),), {"dimension": axis, "is_stable": True, "num_keys": 1}
                )
        keys, more = numbers(d, 17, 33, low=0, high=3), wild(np.int32, 17, 33)
        yield Case(p, (keys, more), {"dimension": 0, "is_stable": True, "num_keys": 1})
        yield Case(
            p, (keys, more, numbers(d, 17, 33)), {"dimension": 1, "is_stable": True, "num_keys": 2}
        )


@cases_of("top_k")
def top_k(p: Primitive) -> Iterator[Case]:
    for d in accepted(p, [(3,)], k=1, axis=0):
        for shape, k, axis in (
            ((33,), 5, 0),
            ((17, 33), 4, 1),
            ((17, 33), 17, 0),
            ((17, 33), 0, 1),
        ):
            yield Case(p, (wild(d, *shape),), {"k": k, "axis": axis})


@cases_of("approx_top_k")
def approx_top_k(p: Primitive) -> Iterator[Case]:
    for largest in (True, False):
        params = {
            "k": 5,
            "reduction_dimension": 1,
            "is_max_k": largest,
            "recall_target": 0.95,
            "reduction_input_size_override": -1,
            "aggregate_to_topk": True,
        }
        yield Case(p, (numbers(F32, 7, 65),), params)


WINDOWS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    (shape, dict(zip(("window_dimensions", "window_strides", "padding", "base_dilation",
    "window_dilation"), values)))
    for shape, *values in [
        ((20,), (3,), (1,), ((0, 0),), (1,), (1,)), ((20,), (3,), (2,), ((1, 2),), (1,), (1,)),
        ((20,), (3,), (2,), ((1, 2),), (3,), (2,)), ((17, 33), (2, 3), (2, 1), ((0, 1), (1, 1)),
        (1, 1), (1, 1)),
        ((17, 33), (4, 1), (3, 5), ((2, 2), (0, 0)), (1, 2), (2, 1)), ((130,), (130,), (1,),
        ((129, 0),), (1,), (1,)), ((7,), (9,), (1,), ((0, 0),), (1,), (1,)), ((0,), (2,), (1,),
        ((1, 1),), (1,), (1,)),
        ((2, 9, 9, 3), (1, 2, 2, 1), (1, 2, 2, 1), ((0, 0),) * 4, (1,) * 4, (1,) * 4), ((17, 33),
        (1, 1), (1, 1), ((0, 0), (0, 0)), (1, 1), (1, 1)),
    ]
]  # fmt: skip


@cases_of("reduce_window_sum", "reduce_window_max", "reduce_window_min")
def windows(p: Primitive) -> Iterator[Case]:
    for shape, params in WINDOWS:
        takes = [
            d
            for d in accepted(p, [shape], **params)
            if p.name == "reduce_window_sum" or d.kind != "c"
        ]
        for d in takes if shape == (20,) and params["base_dilation"] == (1,) else (F32, I32):
            x = numbers(d, *shape) if p.name == "reduce_window_sum" else wild(d, *shape)
            floating = is_floating(d) or np.dtype(d).kind == "c"
            yield Case(
                p,
                (x,),
                params,
                LOG2 if p.name == "reduce_window_sum" and floating else 0 if floating else None,
                of_sizes(p) if p.name == "reduce_window_sum" else None,
            )


def scalar_program(fun: Any, n: int, dtype: Any = F32) -> Any:
    return trace_to_jaxpr(fun, [typeof(np.zeros((), dtype))] * n)


@cases_of("reduce_window")
def any_window(p: Primitive) -> Iterator[Case]:
    for shape, params in WINDOWS[:5]:
        program = scalar_program(lambda a, b: [do.add(do.mul(a, np.float32(0.5)), b)], 2)
        yield Case(
            p,
            (numbers(F32, *shape), np.float32(1)),
            {**params, "jaxpr": program.jaxpr, "consts": ()},
            LOG2,
            None,
        )


@cases_of("select_and_gather_add", "select_and_scatter_add", "select_and_scatter")
def select_in_windows(p: Primitive) -> Iterator[Case]:
    for shape, params in (WINDOWS[0], WINDOWS[1], WINDOWS[3], WINDOWS[8]):
        x = np.random.default_rng(1).permutation(int(np.prod(shape))).reshape(shape).astype(F32)
        plain = {k: params[k] for k in ("window_dimensions", "window_strides", "padding")}
        out = REGISTRY["reduce_window_max"].shape(typeof(x), **params).shape
        for prim in (REGISTRY["ge"], REGISTRY["le"]):
            if p.name == "select_and_gather_add":
                yield Case(
                    p, (numbers(F32, *shape, seed=1), x), {**params, "select_prim": prim}, LOG2
                )
            elif p.name == "select_and_scatter_add":
                yield Case(p, (numbers(F32, *out), x), {**plain, "select_prim": prim}, LOG2)
            else:
                select, add = (
                    scalar_program(lambda a, b: [prim.bind(a, b)], 2),
                    scalar_program(lambda a, b: [do.add(a, b)], 2),
                )
                more = {
                    "select_jaxpr": select.jaxpr,
                    "select_consts": (),
                    "scatter_jaxpr": add.jaxpr,
                    "scatter_consts": (),
                }
                yield Case(p, (x, numbers(F32, *out), np.float32(0.5)), {**plain, **more}, LOG2)


@cases_of("reduce")
def reduce(p: Primitive) -> Iterator[Case]:
    product = scalar_program(lambda a, b: [do.mul(a, b)], 2)
    both = scalar_program(lambda a, b, c, d: [do.max(a, c), do.add(b, d)], 4)
    for shape, dims in (
        ((17, 33), (0,)),
        ((17, 33), (1,)),
        ((17, 33), (0, 1)),
        ((5, 0), (1,)),
        ((3, 5, 2), (0, 2)),
    ):
        yield Case(
            p, (gentle(F32, *shape), np.float32(1)), {"jaxpr": product, "dimensions": dims}, 64
        )
        operands = (
            numbers(F32, *shape),
            numbers(F32, *shape, seed=1),
            np.float32(-1),
            np.float32(2),
        )
        yield Case(
            p, operands, {"jaxpr": both, "dimensions": dims}, 64, lambda *a, **q: [1.0, 40.0]
        )
