"""What must hold of every program: each call means what NumPy and JAX say, and the whole gives the
same results however it is run."""

import contextlib
import functools
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import calque
from calque.core.config import config
from tests.compositions.checks import on_reference, same_bits
from tests.compositions.peers import Mismatch, brief, numpy_of
from tests.fuzz import laws
from tests.fuzz.generate import configured
from tests.fuzz.programs import Call, Program, Ref, call, function, references
from tests.fuzz.tiers import COMPILED, MACHINE, RULES, Evaluated, Where, place, tier
from tests.fuzz.values import TINY_INTEGERS, numpy_dtype, value

# Results that are defined up to a sign, a phase, an order or a basis.
NOT_UNIQUE = frozenset(
    [
        "numpy.linalg.eig",
        "numpy.linalg.eigh",
        "numpy.linalg.svd",
        "numpy.linalg.qr",
        "numpy.linalg.eigvals",
        "lax.linalg.eig",
        "lax.linalg.eigh",
        "lax.linalg.svd",
        "lax.linalg.qr",
        "lax.linalg.schur",
        "lax.linalg.qdwh",
        "lax.linalg.hessenberg",
        "lax.linalg.tridiagonal",
        "scipy.linalg.eigh",
        "scipy.linalg.schur",
        "scipy.linalg.hessenberg",
        "scipy.linalg.qr",
        "scipy.linalg.svd",
        "scipy.linalg.rsf2csf",
        "scipy.linalg.funm",
        "scipy.linalg.sqrtm",
        "scipy.linalg.polar",
        "numpy.roots",
        "scipy.linalg.qr_multiply",
        "numpy.argpartition",
        "numpy.partition",
        "lax.approx_max_k",
        "lax.approx_min_k",
        "random.orthogonal",
        "numpy.linalg.matrix_rank",
        "numpy.linalg.cond",
        "random.multivariate_normal",
        "lax.linalg.householder_product",
        "lax.linalg.lu",
        "scipy.linalg.lu",
    ]
)
# Where an infinite or nan element goes follows the order of the sums.
MIXING = (
    "numpy.fft.",
    "numpy.linalg.",
    "scipy.fft.",
    "scipy.signal.",
    "scipy.linalg.",
    "lax.linalg.",
    "lax.fft",
    "lax.conv",
    "numpy.convolve",
    "numpy.correlate",
    "numpy.trapezoid",
    "scipy.integrate.trapezoid",  # JAX takes half of the ends away from the sum
    "image.",
)
RUNNING_PRODUCTS = ("numpy.cumprod", "numpy.cumulative_prod", "numpy.nancumprod", "lax.cumprod")
# What calque gives on purpose where JAX gives something else.
DIFFERENT = {
    "numpy.geomspace": "the ends are exact, as NumPy's are",
    "scipy.special.bernoulli": "exact to the last digits",
    "scipy.special.bessel_jn": "small arguments and few iterations give numbers, no nan",
    "numpy.modf": "the fraction of infinity is 0, as NumPy's",
    "scipy.special.rel_entr": "nan of nan, as SciPy",
    "scipy.special.kl_div": "nan of nan, as SciPy",
}
# The same for results in half precision alone.
DIFFERENT_HALVES = {"scipy.special.expi": "JAX's coefficients overflow float16, and give nan"}
# Results that stay in the dtype of the operands with 64-bit types on, where JAX's are float64.
DIFFERENT_TYPES = frozenset(["scipy.special.owens_t", "scipy.special.sph_harm_y"])
# Matrices are made of one operand, and meet another one: of float32 and float64, in JAX, too.
BY_PARTS = ("numpy.polyfit", "scipy.linalg.lu_solve", "scipy.linalg.cho_solve")
LARGE = 50_000  # elements of inputs that threads share
FEW = 1000  # results that each may hold a sum over much of a large input
SLOW_MEANING = 20_000  # elements of what LAPACK makes for the reference
HALVES = (np.dtype(np.float16), numpy_dtype("bfloat16"))
STRUCTURAL = (
    "map", "loop", "branch", "converted", "vmap", "permuted", "padded", "jvp", "unrolled", "sizes",
    "found", "remat",
)  # fmt: skip
OF_COMPILED = ("donated", "threads_small", "again")
# What one program is asked, drawn evenly from here; most of its cost is what it compiles for that.
WHOLE = (*STRUCTURAL, *OF_COMPILED, "jit", *["exact"] * 6)
WHOLE_OF_LARGE = ("exact", "jit", "threads", "threads")
OF_MEANINGS = ("sizes", "found")  # that ask nothing new of what runs equation by equation
OF_RULES = (*(x for x in STRUCTURAL if x not in OF_MEANINGS), *["differences"] * 2, "jit")
OF_TIER = {MACHINE: WHOLE, COMPILED: (*STRUCTURAL, *["jit"] * 12), RULES: OF_RULES}
LOOPS = ("forms.scanned", "forms.derived_scan", "forms.swept")
LONG = 2000  # rows of a loop that the reference runs one by one


class Checker:
    """Runs programs; counts what was compared and what said nothing. A peer, which takes longer
    than all other checks together, is asked about every call or about one of each program, and of
    the whole program one thing is asked, or with `every_check` several."""

    def __init__(self, peer: Any = None, every_call: bool = True, every_check: bool = False):
        self.peer, self.every_call, self.every_check = peer, every_call, every_check
        self.done: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()  # by tier

    def problem(self, p: Program, only: str | None = None) -> str | None:
        """What is wrong, beginning with the name of the check that failed; or None."""
        run = MACHINE if self.every_check else tier(p.seed)
        everywhere = on_reference() if run == RULES else contextlib.nullcontext()
        with configured(p.x64, self.peer), np.errstate(all="ignore"), everywhere:
            xs = [value(x) for x in p.inputs]
            where = place(run, p.seed)
            try:
                results = run_there(where, p, xs)
                if run == COMPILED and not decided(p, xs, results):
                    where = contextlib.nullcontext
                    results = run_there(where, p, xs)
            except Exception as e:
                self.skipped[f"eager: {type(e).__name__}"] += 1
                return None
            for name, check in self._checks(p, xs, results, run, where):
                if only is not None and name != only:
                    continue
                try:
                    check()
                    self.done[name.partition(" ")[0]] += 1
                    self.asked[f"{run} {name.partition(' ')[0]}"] += 1
                except laws.Skip as e:
                    self.skipped[f"{name.partition(' ')[0]}: {e}"] += 1
                except Mismatch as e:
                    return f"{name}: {e}"
                except Exception as e:
                    if self._also_refused(name, p, xs):
                        self.skipped[f"{name.partition(' ')[0]}: refused by both"] += 1
                        continue
                    return f"{name}: {type(e).__name__}: {str(e)[:600]}"
        return None

    def _checks(
        self, p: Program, xs: list[np.ndarray], results: list[list[Any]], run: str, where: Where
    ) -> Iterator[tuple[str, Callable[[], None]]]:
        rng = np.random.default_rng([p.seed, 99])
        asked = np.random.default_rng([p.seed, 98]).integers(max(len(p.calls), 1))
        for i, c in enumerate(p.calls):
            inputs = functools.partial(_input_of, xs, results)
            if run == MACHINE:
                yield f"meaning {c.function}", lambda c=c, i=i: meaning(c, inputs, results[i])
            if self.peer is not None and (self.every_call or i == asked):
                yield f"jax {c.function}", lambda c=c, i=i: self._as_jax(c, inputs, results[i])
        flat = [leaf for r in results for leaf in r]
        f = Evaluated(function(calque, p), where)
        compiled = calque.jit(f)  # what several laws ask about is compiled once
        for name in self._asked(p, xs, rng, run):
            if name == "exact":
                yield name, lambda: exact(f, xs)
            elif name == "jit":
                yield name, lambda: laws.close(f, compiled, p, xs, flat, "jit")
            elif name == "threads":
                yield name, lambda: laws.threads(compiled, xs)
            else:
                g = compiled if name in OF_COMPILED else f
                yield name, lambda n=name, g=g: getattr(laws, n)(g, p, xs, flat, rng)

    def _asked(
        self, p: Program, xs: Sequence[np.ndarray], rng: np.random.Generator, run: str = MACHINE
    ) -> list[str]:
        """What is asked of the whole program."""
        large = sum(x.size for x in xs) > LARGE
        if not self.every_check:
            some = WHOLE_OF_LARGE if large else OF_TIER[run]
            return [some[int(rng.integers(len(some)))]]
        if large:
            return ["exact", "jit", "threads"]
        law = STRUCTURAL[int(rng.integers(len(STRUCTURAL)))]
        return ["exact", "jit", law, OF_COMPILED[int(rng.integers(len(OF_COMPILED)))]]

    def _as_jax(self, c: Call, inputs: Callable[[Ref], Any], got: Sequence[Any]) -> None:
        jax = self.peer
        if c.function in DIFFERENT_TYPES and config.enable_x64:
            raise laws.Skip("another dtype, as documented")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                want = call(jax, c, lambda ref: jax.numpy.asarray(numpy_of(inputs(ref))))
            except Exception as e:
                raise laws.Skip(f"JAX refuses: {type(e).__name__}") from None
        weak = any(inputs(ref).aval.weak_type for ref in references(c))  # JAX gets strong ones
        half = any(numpy_of(x).dtype in HALVES for x in got)
        differs = c.function in DIFFERENT or (half and c.function in DIFFERENT_HALVES)
        differs |= c.function.startswith("lax.conv") and crops(c)
        values = not differs and comparable(c, inputs)
        values &= not any(has_subnormals(numpy_of(inputs(ref))) for ref in references(c))
        narrow = of_narrow(c, inputs)
        try:
            compare(got, want, values, c.function, not weak, summed(c, inputs), narrow)
        except Mismatch:
            if c.function == "forms.looped" and magnifies(c, inputs, got):
                raise laws.Skip("roundings that a loop magnifies") from None
            raise

    def _also_refused(self, name: str, p: Program, xs: Sequence[np.ndarray]) -> bool:
        """Whether JAX refuses the same transformation of the same program, or says nothing."""
        wrap = laws.IN_JAX.get(name)
        if self.peer is None or wrap is None:
            return name in laws.IN_JAX  # without a peer a refusal decides nothing
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                wrap(self.peer, function(self.peer, p), [self.peer.numpy.asarray(x) for x in xs])
            except Exception:
                return True
        return False


def run_there(where: Where, p: Program, xs: Sequence[np.ndarray]) -> list[list[Any]]:
    """The results of every call, eagerly, there."""
    with where():
        return by_call(p, xs)


def decided(p: Program, xs: list[np.ndarray], results: list[list[Any]]) -> bool:
    """Whether every call's results are decided by its function alone."""
    return all(comparable(c, functools.partial(_input_of, xs, results)) for c in p.calls)


def by_call(p: Program, xs: Sequence[np.ndarray]) -> list[list[Any]]:
    """The results of every call, eagerly."""
    made = [calque.numpy.asarray(x) for x in xs]
    results: list[list[Any]] = []
    for c in p.calls:
        results.append(
            call(
                calque,
                c,
                lambda ref: made[ref.leaf] if ref.call is None else results[ref.call][ref.leaf],
            )
        )
    return results


def _input_of(xs: Sequence[np.ndarray], results: Sequence[Sequence[Any]], ref: Ref) -> Any:
    x = xs[ref.leaf] if ref.call is None else results[ref.call][ref.leaf]
    return calque.numpy.asarray(x)


def comparable(c: Call, inputs: Callable[[Ref], Any]) -> bool:
    """Whether the elements of the results are decided by the function alone."""
    if c.function in NOT_UNIQUE:
        return False
    if not c.function.startswith(MIXING):
        return True
    return all(_finite(numpy_of(inputs(ref))) for ref in references(c))


def has_subnormals(x: np.ndarray) -> bool:
    """Whether numbers are below the smallest normal one, of which XLA's CPU makes 0."""
    if not calque.dtypes.issubdtype(x.dtype, np.inexact):
        return False
    least = np.asarray(calque.numpy.finfo(x.dtype).tiny, x.real.dtype)
    return any(bool(np.any((y != 0) & (np.abs(y) < least))) for y in (x.real, x.imag))


def crops(c: Call) -> bool:
    """Whether a padding is negative: XLA's CPU then multiplies other elements in some shapes
    (kernels of 3 at steps of 2 beside paddings of -1 and 2)."""
    return any(
        isinstance(pair, (tuple, list)) and any(isinstance(n, int) and n < 0 for n in pair)
        for arg in (*c.args, *dict(c.keywords).values())
        if isinstance(arg, (tuple, list))
        for pair in arg
    )


def _finite(x: np.ndarray) -> bool:
    return x.dtype.kind not in "fcV" or bool(np.all(np.isfinite(x.astype(complex))))


def meaning(c: Call, inputs: Callable[[Ref], Any], got: Sequence[Any]) -> None:
    """The call on the reference backend: every primitive's NumPy meaning."""
    if c.function.startswith("random."):
        raise laws.Skip("random words have one meaning")
    if ".linalg." in c.function and sum(numpy_of(x).size for x in got) > SLOW_MEANING:
        raise laws.Skip("thousands of matrices, one by one")
    if c.function in LOOPS and any(len(numpy_of(inputs(r))) > LONG for r in references(c)):
        raise laws.Skip("a long loop, row by row")
    with on_reference():
        want = call(calque, c, inputs)
    room, narrow = summed(c, inputs), of_narrow(c, inputs)
    try:
        compare(got, want, comparable(c, inputs), c.function, room=room, narrow=narrow)
    except Mismatch:
        if c.function in RUNNING_PRODUCTS and not all(_finite(numpy_of(x)) for x in got):
            raise laws.Skip("a running product that overflows on its way") from None
        if c.function.startswith("forms.") and magnifies(c, inputs, want):
            raise laws.Skip("roundings that a loop magnifies") from None
        raise


def magnifies(c: Call, inputs: Callable[[Ref], Any], want: Sequence[Any]) -> bool:
    """Whether a change of the inputs in their last places, too, shows in the results."""

    def moved(ref: Ref) -> Any:
        x = numpy_of(inputs(ref))
        return calque.numpy.asarray(np.nextafter(x, np.inf) if x.dtype.kind == "f" else x)

    with on_reference():
        other = call(calque, c, moved)
    try:
        compare(other, want, True, c.function)
    except Mismatch:
        return True
    return False


def summed(c: Call, inputs: Callable[[Ref], Any]) -> float:
    """The roundings of a sum of all elements of a large input, in another order."""
    sums = [0.0]
    for ref in references(c):
        x = numpy_of(inputs(ref))
        if x.size > LARGE and x.dtype.kind in "iufcV":
            sums.append(float(np.sum(np.abs(x.astype(complex)))) * float(np.finfo(np.float32).eps))
    return max(sums)


def of_narrow(c: Call, inputs: Callable[[Ref], Any]) -> bool:
    """Whether a part of the call is made of a float32 operand alone, beside float64 ones."""
    singles = (np.dtype("float32"), np.dtype("complex64"))
    return c.function in BY_PARTS and any(
        numpy_of(inputs(ref)).dtype in singles for ref in references(c)
    )


def exact(f: Callable[..., list[Any]], xs: Sequence[np.ndarray]) -> None:
    """In exact mode jit gives the bits of eager execution."""
    with config.override("calque_exact", True):
        a, b = calque.jit(f)(*xs), f(*xs)
    for i, (g, w) in enumerate(zip(map(numpy_of, a), map(numpy_of, b), strict=True)):
        if not isinstance(b[i], (bool, int, float, complex)) and g.dtype != w.dtype:
            raise Mismatch(f"result {i} is {g.dtype} in place of {w.dtype}")
        if g.shape != w.shape or not same_bits(g, w):
            raise Mismatch(f"result {i}: jit gives {brief([g])}, eager {brief([w])}")


def compare(
    got: Sequence[Any],
    want: Sequence[Any],
    values: bool = True,
    function: str = "",
    weak_types: bool = True,
    room: float = 0.0,
    narrow: bool = False,
) -> None:
    """Shapes, dtypes, weak types, and numbers within the roundings of one function (`narrow`: in
    float32); few results of a large input may differ by `room`."""
    if len(got) != len(want):
        raise Mismatch(f"{len(got)} results in place of {len(want)}")
    for i, (a, b) in enumerate(zip(got, want)):
        g, w = numpy_of(a), numpy_of(b)
        if (g.shape, g.dtype) != (w.shape, w.dtype):
            raise Mismatch(f"result {i} is {g.dtype}{g.shape} in place of {w.dtype}{w.shape}")
        weak = [getattr(getattr(x, "aval", None), "weak_type", None) for x in (a, b)]
        weak_types &= g.dtype != bool  # no bool makes another dtype weak or strong
        if weak_types and None not in weak and weak[0] != weak[1]:
            raise Mismatch(f"result {i} has weak type {weak[0]} in place of {weak[1]}")
        if values and not near(g, w, tolerance(w, function, narrow), room if w.size < FEW else 0.0):
            raise Mismatch(f"result {i} is {differing(g, w)}")


LOOSE = {
    "scipy.signal.": 20,
    "scipy.special.": 30,
    "scipy.stats.": 100,
    "lax.linalg.": 100,
    "scipy.linalg.": 300,
    "numpy.linalg.": 100,
    "random.": 20,
    "forms.twice_derived": 5,
    "image.": 5,
    "numpy.polyfit": 2000,
    "lax.random_gamma_grad": 2000,
    "lax.igamma": 30,
    "lax.digamma": 100,  # SciPy's loses digits beside poles
    "lax.betainc": 300,
}


def tolerance(w: np.ndarray, function: str, narrow: bool = False) -> float:
    if w.dtype.kind not in "fcV" or w.dtype in TINY_INTEGERS:
        return 0.0
    unit = {1: 0.3, 2: 2e-2}.get(w.dtype.itemsize, 3e-6)
    if w.dtype.itemsize >= 8 and w.dtype not in (np.dtype("complex64"),):
        unit = 3e-6 if narrow else 1e-12
    return unit * max([1, *(k for start, k in LOOSE.items() if function.startswith(start))])


def near(g: np.ndarray, w: np.ndarray, tol: float, room: float = 0.0) -> bool:
    if w.dtype.kind in "iub":
        return bool(np.all(g == w))
    wide = np.complex128 if w.dtype.kind == "c" else np.float64
    a, b = g.astype(wide), w.astype(wide)
    scale = np.max(np.abs(b), initial=1, where=np.isfinite(b))
    ok = (np.abs(a - b) <= tol * scale + room) | (a == b) | (np.isnan(a) & np.isnan(b))
    if w.dtype.kind == "c":  # which part of a product of infinities is nan follows its order
        ok |= ~np.isfinite(a) & ~np.isfinite(b)
    return bool(np.all(ok))


def differing(g: np.ndarray, w: np.ndarray) -> str:
    """The elements that differ."""
    if g.shape != w.shape or not w.size:
        return f"{brief([g])} in place of {brief([w])}"
    wide = np.complex128 if w.dtype.kind == "c" else np.float64
    gap = np.abs(g.astype(wide) - w.astype(wide)) * (g != w)
    gap = np.where(g == w, 0, gap)  # infinities are no distance from themselves
    gap = np.where(
        np.isnan(gap) & ~(np.isnan(g.astype(wide)) & np.isnan(w.astype(wide))), np.inf, gap
    )
    at = np.unravel_index(int(np.argmax(np.nan_to_num(gap, nan=0.0, posinf=1e300))), w.shape)
    return f"{g[at]!r} in place of {w[at]!r} at {tuple(map(int, at))} ({g.dtype}{g.shape})"
