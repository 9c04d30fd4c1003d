"""Short chains of operations that a compiler joins: updates in place, running folds, gathers,
rolls, loops and rows of a few elements, each a statement of its own, compiled as one program.

    python -m tests.fuzz --chains --programs 1000 --seed 0 [--minutes M] [--jobs J]

A chain is two to five statements on two arrays of one small shape. It runs eagerly, where each
statement is a program by itself, and jitted, with its arguments kept or donated, as itself or in a
gradient, in lanes, as the body of a loop or at three sizes. In exact mode both give the same bits;
without it they agree to some digits, where no statement turns the last digit into another
element."""

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

import calque
from calque.core.config import config
from tests.fuzz.ledger import Find

SHAPES = (
    *((1,), (2,), (3,), (7,), (16,), (17,), (33,), (130,), (1000,)),
    *((1, 3), (1, 8), (1, 17), (2, 2), (4, 4), (5, 1), (8, 1), (17, 1), (5, 2), (5, 3), (9, 4)),
    *((6, 16), (8, 17), (9, 18), (6, 33), (2, 64), (130, 4), (300, 5), (3, 2, 2), (2, 5, 3)),
)
DTYPES = ("float32", "float32", "float32", "float32", "int32", "bfloat16", "float64", "bool_float")
FORMS = ("plain", "plain", "plain", "plain", "sizes", "sizes", "grad", "lanes", "loop")
FORGET = 60  # chains after which caches are cleared
LARGE = 1e6  # beyond this nothing is compared to some digits

# What takes one array, `x`, and gives one like it. Those of the second table need floats; those of
# the third give another element for another last digit.
ANY = {
    "double": "x * 2 + 1",
    "turn": "x[..., ::-1]",
    "turn first": "x[::-1]",
    "roll": "jnp.roll(x, 1, -1)",
    "roll first": "jnp.roll(x, -1, 0)",
    "sum": "x.sum() + 0 * x",
    "sum rows": "x.sum(-1, keepdims=True) + 0 * x",
    "sum columns": "x.sum(0) - x",
    "max rows": "x.max(-1, keepdims=True) - x",
    "min columns": "x.min(0) + 0 * x",
    "running sum": "jnp.cumsum(x, -1, dtype=x.dtype)",
    "running sum first": "jnp.cumsum(x, 0, dtype=x.dtype)",
    "running max": "lax.cummax(x, x.ndim - 1)",
    "running min first": "lax.cummin(x, 0, reverse=True)",
    "set": "x.at[0].set(2)",
    "set from end": "x.at[0].set(x[-1])",
    "set row": "x.at[-1].set(x.sum(0))",
    "add": "x.at[0].add(3)",
    "multiply": "x.at[-1].multiply(3)",
    "max at": "x.at[0].max(1)",
    "min at": "x.at[..., 0].min(1)",
    "add twice": "x.at[jnp.array([0, 0])].add(1)",
    "add everywhere": "x.at[there(x, 0)].add(x)",
    "set everywhere": "x.at[there(x, 1)].set(x * 2)",
    "add steps": "x.at[::2].add(2)",
    "add tail": "x.at[..., 1:].add(2)",
    "shift": "x.at[1:].set(x[:-1])",
    "shift last": "x.at[..., :-1].set(x[..., 1:])",
    "power at": "x.at[0].power(2)",
    "signs": "jnp.where(jnp.arange(x.shape[-1]) % 2 == 0, x, -x)",
    "gather": "x[there(x, 2)]",
    "gather last": "x[..., there(x.T, 1)]",
    "update": "lax.dynamic_update_slice(x, x[:1] * 3, (x.shape[0] // 2,) + (0,) * (x.ndim - 1))",
    "concatenate": "jnp.concatenate([x[1:], x[:1]], 0)",
    "concatenate last": "jnp.concatenate([x[..., 1:], x[..., :1] * 2], -1)",
    "stack": "jnp.stack([x, -x], -1).reshape(*x.shape[:-1], -1)[..., : x.shape[-1]]",
    "pad": "jnp.pad(x, [(1, 0)] + [(0, 0)] * (x.ndim - 1))[:-1]",
    "repeat": "jnp.repeat(x, 2, -1)[..., 1 : x.shape[-1] + 1]",
    "segments": "jax.ops.segment_sum(x, there(x, 0) // 2, x.shape[0])",
    "diagonal": "x.at[tuple(jnp.arange(min(x.shape)) for _ in x.shape)].add(1)",
    "scan": "lax.scan(lambda c, r: (c + r, c), jnp.zeros_like(x[0]), x)[1]",
    "rows in a loop": "lax.fori_loop(0, x.shape[0], lambda i, c: c.at[i].add(c[i - 1]), x)",
    "set in a loop": "lax.fori_loop(1, x.shape[0], lambda i, c: c.at[i].set(c[i - 1] + 1), x)",
    "while": "lax.while_loop(lambda c: c[0] < 3, lambda c: step(c[0], c[1]), (0, x))[1]",
    "lanes": "jax.vmap(lambda r: r * 2 - r.sum())(x)",
    "transpose": "(x.T.reshape(x.shape) if x.ndim > 1 else x) + x",
    "product": "(x @ x.T @ x if x.ndim == 2 and x.shape[0] < 20 else x * x.sum(0))",
    "difference": "jnp.diff(x, axis=-1, append=x[..., :1])",
}
FLOAT = {
    "sin": "jnp.sin(x)",
    "half": "x * 0.5 + 1",
    "softmax": "jax.nn.softmax(x, -1)",
    "product of rows": "x.prod(-1, keepdims=True) * 0.125 + x",
    "running product": "jnp.cumprod(jnp.tanh(x) * 0.5 + 0.75, -1)",
    "running logsumexp": "lax.cumlogsumexp(x, x.ndim - 1)",
    "variance": "x - x.mean(-1, keepdims=True) + jnp.var(x, 0)",
    "divide at": "x.at[0].divide(2)",
    "apply": "x.at[0].apply(jnp.sin)",
    "gradient": "jax.grad(lambda y: (y.at[0].multiply(2) * y[::-1]).sum())(x)",
    "gradient of gather": "jax.grad(lambda y: (y[there(y, 1)] ** 2 * y).sum())(x)",
    "window": "lax.reduce_window(x, 0.0, lax.add, (2,) * x.ndim, (1,) * x.ndim, 'SAME')",
}
CHOOSING = {
    "sort": "jnp.sort(x, -1)",
    "sort first": "jnp.sort(x, 0)",
    "ranks": "jnp.take_along_axis(x, jnp.argsort(x, -1), -1)",
    "one hot": "jax.nn.one_hot(jnp.argmax(x, -1), x.shape[-1], dtype=x.dtype) + x",
    "set masked": "x.at[x > 0].set(1)",
    "slice": "lax.dynamic_slice_in_dim(jnp.concatenate([x, x], 0), positive(x), x.shape[0])",
    "update there": "lax.dynamic_update_index_in_dim(x, x[-1] + x[0], positive(x), 0)",
    "branch": "lax.cond(x.sum() > 0, lambda x: x.at[0].add(1), lambda x: x[::-1], x)",
    "lanes of updates": "jax.vmap(lambda r: r.at[positive(r)].add(1))(jnp.stack([x, -x]))[1]",
}
TWO = {
    "plus": "x + y",
    "times": "x * y",
    "larger": "jnp.maximum(x, y)",
    "outer": "x * y.sum(-1, keepdims=True)",
    "set row of": "x.at[0].set(y[-1])",
    "add steps of": "x.at[::2].add(y[::2])",
    "dot": "x * (x * y).sum()",
    "beside": "jnp.concatenate([x, y], 0)[::2]",
    "between": "jnp.stack([x, y], 1).reshape(-1, *x.shape[1:])[1 : x.shape[0] + 1]",
}
TEXTS = {**ANY, **FLOAT, **CHOOSING, **TWO}


class Step(NamedTuple):
    name: str
    args: tuple[int, ...]


class Chain(NamedTuple):
    """Values are numbered: 0 and 1 are the arguments, each step makes one more."""

    seed: int
    shape: tuple[int, ...]
    dtype: str
    steps: tuple[Step, ...]
    outs: tuple[int, ...]
    form: str = "plain"
    donated: bool = False


def chain(seed: int) -> Chain:
    """The chain of a seed."""
    rng = np.random.default_rng([seed, 41])

    def pick(what: Any) -> Any:
        return what[int(rng.integers(len(what)))]

    dtype = pick(DTYPES)
    one = [*ANY, *CHOOSING, *(FLOAT if dtype != "int32" else ())]
    steps: list[Step] = []
    for _ in range(int(rng.integers(2, 6))):
        last = len(steps) + 1
        places = [last if rng.random() < 0.5 else int(rng.integers(last + 1)) for _ in range(2)]
        single = rng.random() < 0.75
        steps.append(
            Step(pick(one), (places[0],)) if single else Step(pick(list(TWO)), tuple(places))
        )
    made = range(2, len(steps) + 2)
    outs = {made[-1], *(pick(made) for _ in range(int(rng.integers(3))))}
    form = pick(FORMS) if dtype in ("float32", "float64") else pick(("plain", "sizes"))
    shape, donated = pick(SHAPES), bool(rng.random() < 0.4)
    return Chain(seed, shape, dtype, tuple(steps), tuple(sorted(outs)), form, donated)


def there(x: Any, start: int) -> Any:
    """Places of rows, computed in the program."""
    n = x.shape[0]
    return (calque.numpy.arange(n) * 7 + start) % n


def positive(x: Any) -> Any:
    """0 or 1: a place that the elements tell."""
    return (x.sum() > 0).astype(int)


def step(k: Any, x: Any) -> Any:
    """A round of a loop that adds to one row after the other."""
    return k + 1, x.at[k % x.shape[0]].add(1)


SCOPE = {"jax": calque, "jnp": calque.numpy, "lax": calque.lax}
SCOPE |= {f.__name__: f for f in (there, positive, step)}


def body(c: Chain) -> Callable[..., Any]:
    """The chain as a function of its two arguments."""
    calls = [eval(f"lambda x, y=None: {TEXTS[s.name]}", SCOPE) for s in c.steps]

    def f(*values: Any) -> Any:
        known = list(values)
        for s, call in zip(c.steps, calls, strict=True):
            known.append(call(*[known[k] for k in s.args]))
        return [known[k] for k in c.outs]

    return f


def program(c: Chain) -> Callable[..., Any]:
    """The chain in its form."""
    f = body(c)
    if c.form == "grad":
        return calque.grad(
            lambda x, y: sum((o * w).sum() for w, o in enumerate(f(x, y), 1)), (0, 1)
        )
    if c.form == "lanes":
        return lambda x, y: calque.vmap(f)(
            calque.numpy.stack([x, y, -x]), calque.numpy.stack([y, x, y])
        )
    if c.form == "loop":
        return lambda x, y: calque.lax.fori_loop(
            0, 3, lambda _, s: (f(*s)[-1].astype(x.dtype) * 0.25, s[0]), (x, y)
        )
    return f


def shapes(c: Chain) -> list[tuple[int, ...]]:
    """The shapes that one function is called with: the third one finds a program for all."""
    if c.form != "sizes":
        return [c.shape]
    return [
        c.shape,
        *(tuple(grow(n) for n in c.shape) for grow in (lambda n: n + 1, lambda n: 2 * n + 3)),
    ]


def inputs(c: Chain, shape: tuple[int, ...]) -> list[np.ndarray[Any, Any]]:
    """Quarters, so that most sums and products round nothing."""
    rng = np.random.default_rng([c.seed, 43])
    names = {"bool_float": "float32", "bfloat16": ml_dtypes.bfloat16}
    whole = [rng.integers(-8, 9, shape) for _ in range(2)]
    scale = 1 if c.dtype == "int32" else 0 if c.dtype == "bool_float" else 4
    return [(w / scale if scale else w > 0).astype(names.get(c.dtype, c.dtype)) for w in whole]


def results(c: Chain, jitted: bool) -> list[np.ndarray[Any, Any]]:
    """What a chain gives, eagerly or as one program."""
    f = program(c)
    if jitted:
        f = calque.jit(f, donate_argnums=(0, 1) if c.donated else ())
    outs = [f(*map(calque.numpy.array, inputs(c, shape))) for shape in shapes(c)]
    return [np.asarray(o) for o in calque.tree.leaves(outs)]


class ChainChecker:
    """Compares chains; counts what was compared, and what said nothing."""

    def __init__(self) -> None:
        self.done: Counter[str] = Counter()
        self.skipped: Counter[str] = Counter()
        self.asked: Counter[str] = Counter()

    def problem(self, c: Chain) -> str | None:
        """What is wrong with a chain, beginning with a name; or None."""
        with (
            config.override("calque_enable_x64", c.dtype == "float64"),
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
        ):
            warnings.simplefilter("ignore")
            for exact in (True, False):
                with config.override("calque_exact", exact):
                    wrong = self._compared(c, exact)
                if wrong is not None:
                    return wrong
        return None

    def _compared(self, c: Chain, exact: bool) -> str | None:
        try:
            want = results(c, jitted=False)
        except NotImplementedError:
            self.skipped["has no derivative"] += 1
            return None
        except Exception as e:
            return f"eager: {type(e).__name__}: {e}"
        try:
            got = results(c, jitted=True)
        except Exception as e:
            return f"jit: {type(e).__name__}: {e}"
        kind = "exact" if exact else "near"
        self.asked[f"{c.form}, {kind}"] += 1
        for k, (a, b) in enumerate(zip(want, got, strict=True)):
            if (a.shape, a.dtype) != (b.shape, b.dtype):
                return f"types: result {k} is {b.dtype}{b.shape}, eagerly {a.dtype}{a.shape}"
            if exact and a.tobytes() != b.tobytes():
                return f"exact: result {k} differs by {difference(a, b):.3g}"
        if not exact:
            return self._near(c, want, got)
        self.done[kind] += 1
        return None

    def _near(self, c: Chain, want: Any, got: Any) -> str | None:
        if any(s.name in CHOOSING for s in c.steps):
            self.skipped["chooses by the last digit"] += 1
            return None
        for k, (a, b) in enumerate(zip(want, got, strict=True)):
            largest = np.abs(a.astype(float)).max(initial=0)
            if not largest < LARGE:
                self.skipped["large"] += 1
                return None
            digits = {"bfloat16": 0.2, "float64": 1e-9}.get(c.dtype, 2e-3)
            if difference(a, b) > digits * (1 + largest):
                return f"near: result {k} differs by {difference(a, b):.3g}"
        self.done["near"] += 1
        return None


def difference(a: np.ndarray[Any, Any], b: np.ndarray[Any, Any]) -> float:
    """How far two results are from each other; infinite where one of them is no number."""
    with np.errstate(invalid="ignore"):
        apart = np.abs(a.astype(float) - b.astype(float))
    same = np.isnan(a.astype(float)) & np.isnan(b.astype(float)) | (a == b)
    return float(np.where(same, 0, np.where(np.isnan(apart), np.inf, apart)).max(initial=0))


def smaller(c: Chain) -> Iterator[Chain]:
    """The chain with less in it."""
    if c.form != "plain":
        yield c._replace(form="plain")
    if c.donated:
        yield c._replace(donated=False)
    for o in c.outs if len(c.outs) > 1 else ():
        yield c._replace(outs=tuple(k for k in c.outs if k != o))
    for k in range(len(c.steps), 0, -1):
        yield from without(c, k - 1)
    for axis, n in enumerate(c.shape):
        for less in {n // 2, n - 1} - {0, n}:
            yield c._replace(shape=(*c.shape[:axis], less, *c.shape[axis + 1 :]))


def without(c: Chain, k: int) -> Iterator[Chain]:
    """The chain without step `k`: what reads it reads what that has read."""

    def moved(place: int) -> int:
        place = c.steps[k].args[0] if place == k + 2 else place
        return place - (place > k + 2)

    steps = [Step(s.name, tuple(map(moved, s.args))) for i, s in enumerate(c.steps) if i != k]
    if steps:
        yield c._replace(steps=tuple(steps), outs=tuple(sorted({moved(o) for o in c.outs})))


def shrunk(c: Chain, fails: Callable[[Chain], bool], tries: int = 200) -> Chain:
    """The least chain found that still fails."""
    found = True
    while found and tries:
        found = False
        for less in smaller(c):
            tries -= 1
            if fails(less):
                c, found = less, True
                break
            if not tries:
                break
    return c


def source(c: Chain) -> str:
    """The chain as a test."""
    texts = [
        f"    # v{k}: {s.name} of {' and '.join(f'v{a}' for a in s.args)}: {TEXTS[s.name]}"
        for k, s in enumerate(c.steps, 2)
    ]
    asked = [f"    c = {c!r}", "    assert ChainChecker().problem(c) is None"]
    return "\n".join([f"def test_chain_{c.seed}():", *texts, *asked])


class ChainRun:
    """The chains of some seeds, one after the other."""

    def __init__(self) -> None:
        self.checker = ChainChecker()
        self.failures = 0
        self.finds: list[Find] = []  # since the ledger was written
        self.called: Counter[str] = Counter()
        self.features: Counter[str] = Counter()

    def one(self, seed: int) -> None:
        c = chain(seed)
        self.called.update(s.name for s in c.steps)
        self.features.update((c.form, c.dtype, *["donated"] * c.donated))
        if seed % FORGET == 0:
            calque.clear_caches()
        wrong = self.checker.problem(c)
        if wrong is None:
            return
        kind = kind_of(wrong)
        small = shrunk(c, lambda less: kind_of(ChainChecker().problem(less)) == kind)
        self.failures += 1
        problem = (ChainChecker().problem(small) or wrong)[:700]
        self.finds.append({"seed": seed, "problem": problem, "test": source(small)})
        print(f"\n# seed {seed}: {problem}\n{source(small)}", flush=True)


def kind_of(problem: str | None) -> str:
    return (problem or "").split(":")[0]
