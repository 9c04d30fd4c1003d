"""Cases of primitives: operands, parameters and how near a result must come to the meaning.

A table file (`cases_*.py`) fills `TABLE`: primitive name -> a function that yields its cases.
`programs` packs cases into programs of some dozens of equations, so that one compilation serves
many of them."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from calque.core import dtypes
from calque.core.arrays import to_numpy
from calque.core.avals import ShapedArray
from calque.core.dtypes import storage
from calque.core.primitives import REGISTRY, Primitive
from calque.core.trace import typeof

SHAPES: tuple[tuple[int, ...], ...] = (
    (), (0,), (1,), (7,), (16,), (17,), (33,), (64,), (65,), (130,), (3, 5), (5, 1, 4), (2, 0, 3),
    (17, 33), (1, 40), (515, 2),
)  # fmt: skip
NORMAL_DTYPES = tuple(
    map(
        np.dtype,
        ("bool", "int8", "int32", "uint8", "int64", "float16", "float32", "float64", "complex64"),
    )
)
BF16 = dtypes.bfloat16


class Case(NamedTuple):
    """One equation: `ulps` None asks for equality, else the error in units of the last place of the
    larger of result and `scale`."""

    prim: Primitive
    args: tuple[Any, ...]
    params: dict[str, Any]
    ulps: float | None = None
    scale: Callable[..., Any] | None = (
        None  # of the operands and the parameters, an array or a list as the results
    )
    check: Callable[..., None] | None = (
        None  # of the case and its results, in place of a comparison
    )

    def __str__(self) -> str:
        shown = {k: v for k, v in self.params.items() if "jaxpr" not in k}
        return f"{self.prim}[{shown}] of {', '.join(typeof(a).str_short() for a in self.args)}"


Maker = Callable[[], Iterable[Case]]
TABLE: dict[str, Maker] = {}


def cases_of(
    *names: str,
) -> Callable[[Callable[[Primitive], Iterable[Case]]], Callable[[Primitive], Iterable[Case]]]:
    """Enter a generator of cases for these primitives."""

    def enter(make: Callable[[Primitive], Iterable[Case]]) -> Callable[[Primitive], Iterable[Case]]:
        for name in names:
            assert name not in TABLE, name
            TABLE[name] = lambda name=name: make(REGISTRY[name])  # type: ignore[misc]
        return make

    return enter


def accepted(
    p: Primitive,
    shapes: Sequence[tuple[int, ...]],
    candidates: Sequence[Any] = dtypes.ALL,
    **params: Any,
) -> list[Any]:
    """The dtypes that the primitive takes for all its operands."""
    out = []
    for d in candidates:
        try:
            p.shape(*[ShapedArray(s, d) for s in shapes], **params)
        except (TypeError, ValueError, NotImplementedError):
            continue
        out.append(d)
    return out


# ---------------------------------------------------------------- operands


def is_floating(dtype: Any) -> bool:
    return dtypes.is_float(np.dtype(dtype))


def numbers(
    dtype: Any, *shape: int, seed: int = 0, low: float = -4.0, high: float = 4.0
) -> np.ndarray:
    """Plain numbers of a dtype, within its range."""
    rng = np.random.default_rng([seed, *shape])
    dtype = np.dtype(dtype)
    if dtype.kind == "b":
        return rng.random(shape) < 0.5
    x = rng.uniform(low, high, shape)
    if dtype.kind == "c":
        return np.asarray(x + 1j * rng.uniform(low, high, shape)).astype(dtype)
    if dtypes.is_integer(dtype):
        info = ml_dtypes.iinfo(dtype)
        x = np.clip(np.rint(x), int(info.min), int(info.max)).astype(np.int64)
    elif dtype.name == "float8_e8m0fnu":  # only powers of two
        x = np.abs(x) + 0.25
    return np.asarray(x).astype(dtype)


def wild(dtype: Any, *shape: int, seed: int = 0) -> np.ndarray:
    """Numbers of every size, with the special values of the dtype strewn in."""
    rng = np.random.default_rng([seed + 1, *shape])
    dtype = np.dtype(dtype)
    if dtype.kind in "bc":
        return numbers(dtype, *shape, seed=seed)
    special = specials(dtype)
    if dtypes.is_integer(dtype):
        info = ml_dtypes.iinfo(dtype)
        x = rng.integers(
            int(info.min),
            int(info.max),
            shape,
            np.uint64 if dtype == np.uint64 else np.int64,
            endpoint=True,
        )
        x = np.asarray(x).astype(dtype)
    else:
        with np.errstate(all="ignore"):
            x = np.asarray(rng.standard_normal(shape) * np.exp(rng.uniform(-6, 6, shape))).astype(
                dtype
            )
    picks = special[rng.integers(0, len(special), shape)]
    return np.where(rng.random(shape) < 0.3, picks, x).astype(dtype)


def specials(dtype: Any) -> np.ndarray:
    """The values where operations go wrong."""
    dtype = np.dtype(dtype)
    if dtypes.is_integer(dtype):
        info = ml_dtypes.iinfo(dtype)
        lo, hi = int(info.min), int(info.max)
        return np.array(
            sorted({lo, lo + 1, 0, 1, min(2, hi), max(-1, lo), hi - 1, hi}),
            np.uint64 if hi > 2**63 else np.int64,
        ).astype(dtype)
    if dtype.kind in "bc":
        return np.array([0, 1], dtype)
    info = ml_dtypes.finfo(dtype)
    parts = [0.0, -0.0, 1.0, -1.0, 0.5, -2.5, 1.5, 3.0, np.inf, -np.inf, np.nan]
    with np.errstate(all="ignore"):
        edges = [info.max, info.tiny, getattr(info, "smallest_subnormal", info.tiny)]
        return np.concatenate(
            [np.array(parts).astype(dtype), np.array([float(e) for e in edges]).astype(dtype)]
        )


# ---------------------------------------------------------------- running


def programs(cases: Sequence[Case], size: int = 24) -> Iterator[Sequence[Case]]:
    for i in range(0, len(cases), size):
        yield cases[i : i + size]


def program(cases: Sequence[Case]) -> tuple[Callable[..., list[Any]], list[Any]]:
    """A flat function that runs all the equations, and its operands."""

    def fun(*xs: Any) -> list[Any]:
        outs: list[Any] = []
        at = 0
        for c in cases:
            out = c.prim.bind(*xs[at : at + len(c.args)], **c.params)
            at += len(c.args)
            outs += out if c.prim.multiple_results else [out]
        return outs

    return fun, [a for c in cases for a in c.args]


def meaning(c: Case, args: Sequence[Any] | None = None) -> list[np.ndarray]:
    from_arrays = [np.asarray(to_numpy(a)) for a in (c.args if args is None else args)]
    with np.errstate(all="ignore"):
        out = c.prim.meaning(*from_arrays, **c.params)
    return [np.asarray(o) for o in (out if c.prim.multiple_results else [out])]


def split_results(cases: Sequence[Case], outs: Sequence[Any]) -> Iterator[tuple[Case, list[Any]]]:
    at = 0
    for c in cases:
        n = len(c.prim.shape(*map(typeof, c.args), **c.params)) if c.prim.multiple_results else 1
        yield c, list(outs[at : at + n])
        at += n
    assert at == len(outs)


# ---------------------------------------------------------------- comparison


def verify(c: Case, got: Sequence[np.ndarray], want: Sequence[np.ndarray], where: str) -> None:
    """Results of a case against those of its meaning."""
    if c.check is not None:
        c.check(c, got)
        return
    scales: Sequence[Any] = [None] * len(want)
    if c.scale is not None:
        with np.errstate(all="ignore"):
            found = c.scale(*c.args, **c.params)
        scales = found if isinstance(found, (list, tuple)) else [found]
    for i, (g, w, s) in enumerate(zip(got, want, scales, strict=True)):
        message = difference(np.asarray(g), w, c.ulps, s)
        assert message is None, f"{where}: {c} result {i}: {message}\noperands {c.args}"


def difference(
    got: np.ndarray, want: np.ndarray, ulps: float | None = None, scale: Any = None
) -> str | None:
    """What is wrong with `got`, or None."""
    if (got.shape, got.dtype) != (want.shape, want.dtype):
        return f"{got.dtype}{got.shape} in place of {want.dtype}{want.shape}"
    if want.dtype.names is not None:
        return None if got.tobytes() == want.tobytes() else f"{got} in place of {want}"
    if not (is_floating(want.dtype) or want.dtype.kind == "c"):
        wrong = got != want
    elif want.dtype.kind == "c":
        wrong = wrong_complex(got, want, ulps, scale)
    else:
        wrong = wrong_floats(got, want, ulps, scale)
        if ulps is not None and want.dtype in (np.float32, np.float64):
            # other libraries of the process may have told the processor to flush what is denormal
            # in the meaning
            tiny = np.finfo(want.dtype).tiny
            wrong = wrong & ~((np.abs(got) < tiny) & (np.abs(want) < tiny))
    if not np.any(wrong):
        return None
    at = tuple(int(i[0]) for i in np.nonzero(np.atleast_1d(wrong)))
    g, w = np.atleast_1d(got)[at], np.atleast_1d(want)[at]
    return (
        f"{np.count_nonzero(wrong)} of {wrong.size} wrong, first at {at}: {g!r} in place of {w!r}"
    )


def wrong_floats(got: np.ndarray, want: np.ndarray, ulps: float | None, scale: Any) -> np.ndarray:
    g, w = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        same = (np.isnan(g) & np.isnan(w)) | ((g == w) & (np.signbit(g) == np.signbit(w)))
        if ulps is None:
            return np.asarray(~same)
        info = ml_dtypes.finfo(want.dtype)
        size = np.maximum(np.abs(w), float(info.tiny))
        if scale is not None:
            size = np.maximum(size, np.abs(np.asarray(scale).astype(np.float64)))
        near = np.abs(g - w) <= ulps * float(info.eps) * size
        top = float(
            info.max
        )  # a result at the end of the range may be rounded to infinity, or back
        edge = (np.abs(w) >= top * (1 - ulps * float(info.eps))) & (
            np.abs(g) >= top * (1 - ulps * float(info.eps))
        )
        return np.asarray(
            ~(
                same
                | near
                | (
                    edge
                    & (np.sign(g) == np.sign(w))
                    & ~np.isinf(scale if scale is not None else 0.0)
                )
                | (g == w)
            )
        )


def wrong_complex(got: np.ndarray, want: np.ndarray, ulps: float | None, scale: Any) -> np.ndarray:
    if ulps is None:
        return wrong_floats(got.real, want.real, None, None) | wrong_floats(
            got.imag, want.imag, None, None
        )
    g, w = got.astype(np.complex128), want.astype(np.complex128)
    size = np.abs(w) if scale is None else np.maximum(np.abs(w), np.abs(np.asarray(scale)))
    info = np.finfo(want.dtype)
    near = np.abs(g - w) <= ulps * float(info.eps) * np.maximum(size, float(info.tiny))
    strange = ~np.isfinite(w) & ~np.isfinite(g)
    return np.asarray(~(near | strange | (g == w)))


def absolute(x: Any) -> Any:
    """|x| of numbers, anything else as it is."""
    x = np.asarray(x)
    return np.abs(x) if is_floating(x.dtype) or x.dtype.kind == "c" else x


def of_sizes(p: Primitive) -> Callable[..., Any]:
    """The scale of a linear primitive: what it gives for the absolute values, in double
    precision."""

    def scale(*args: Any, **params: Any) -> Any:
        wide = [
            absolute(a).astype(np.float64) if is_floating(np.asarray(a).dtype) else absolute(a)
            for a in args
        ]
        return p.meaning(*wide, **params)

    return scale


def key_storage(x: Any) -> Any:
    return storage(typeof(x).dtype)
