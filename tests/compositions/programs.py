"""Random programs as data: what they are, how they are made, run against a module, printed and made
smaller.

A program is a body (steps over arrays, some of which hold bodies of their own that see the values
outside) and a stack of layers around it."""

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.compositions.layers import CLOSED, LAYERS, UNFAITHFUL, WEIGHTS, Function, mapped
from tests.compositions.operations import Choices
from tests.compositions.peers import ours
from tests.compositions.structure import GROUPS, HELD, apply, catalog

SHAPES = ((), (), (1,), (2,), (3,), (3,), (4,), (2, 3), (3, 2), (3, 3), (1, 2), (2, 2, 2))
KINDS = (
    "float32",
    "float32",
    "float32",
    "int32",
    "bool",
    "float16",
    "bfloat16",
    "complex64",
    "uint8",
    "int8",
)


class Step(NamedTuple):
    """An operation or a layer, with operands by number (counted back from the newest value, modulo
    how many there are), a seed for its choices and, if it is a layer, the body that it
    transforms."""

    op: str
    operands: tuple[int, ...]
    seed: int
    body: tuple["Step", ...] = ()


class Layered(NamedTuple):
    """A layer of the stack: its name and a seed for its choices."""

    name: str
    seed: int


class Program(NamedTuple):
    seed: int
    smooth: bool  # of float64, to be differentiated by differences; otherwise of all dtypes
    x64: bool
    inputs: tuple[tuple[str, tuple[int, ...]], ...]
    steps: tuple[Step, ...]
    stack: tuple[Layered, ...]


# ---------------------------------------------------------------- making


def make(seed: int) -> Program:
    r = np.random.default_rng([seed, 77])
    smooth = bool(r.random() < 0.65)
    x64 = smooth or bool(r.random() < 0.3)
    inputs = []
    for k in range(int(r.integers(1, 4))):
        kind = (
            ("float64" if k == 0 or r.random() < 0.8 else "int32")
            if smooth
            else KINDS[r.integers(3 if k == 0 else len(KINDS))]
        )
        inputs.append((kind, SHAPES[r.integers(len(SHAPES))]))
    steps = _steps(r, _names(smooth), int(r.integers(2, 7)), depth=0)
    names = list(LAYERS)
    chances = np.array([WEIGHTS.get(n, 1.0) for n in names])
    stack = [
        Layered(str(r.choice(names, p=chances / chances.sum())), int(r.integers(1 << 30)))
        for _ in range(int(r.integers(0, 5)))
    ]
    return Program(seed, smooth, x64, tuple(inputs), steps, tuple(stack))


@functools.cache
def _names(smooth: bool) -> list[tuple[str, int, float]]:
    """Operations with their numbers of operands and their chances."""
    members: dict[Any, list[str]] = {g: [] for g in GROUPS.values()}
    for name, (_, group) in catalog(ours).items():
        members[group].append(name)
    groups = [g for key, g in GROUPS.items() if not (smooth and key == "conversion")]
    return [(n, g.arity, g.weight / len(members[g])) for g in groups for n in members[g]]


def _steps(
    r: Choices, names: list[tuple[str, int, float]], count: int, depth: int
) -> tuple[Step, ...]:
    chances = np.array([w for _, _, w in names])
    layers = list(LAYERS)
    weights = np.array([WEIGHTS.get(n, 1.0) for n in layers])
    steps = []
    for _ in range(count):
        if r.random() < (0.3, 0.2, 0.1, 0.0)[depth]:
            name = str(r.choice(layers, p=weights / weights.sum()))
            body = _steps(r, names, int(r.integers(1, 4)), depth + 1)
            steps.append(
                Step(name, _operands(r, int(r.integers(1, 3))), int(r.integers(1 << 30)), body)
            )
            continue
        name, arity, _ = names[r.choice(len(names), p=chances / chances.sum())]
        steps.append(Step(name, _operands(r, arity), int(r.integers(1 << 30))))
    return tuple(steps)


def _operands(r: Choices, count: int) -> tuple[int, ...]:
    return tuple(int(r.integers(3)) if k == 0 else int(r.integers(12)) for k in range(count))


# ---------------------------------------------------------------- running


def body_of(j: Any, steps: Sequence[Step], outside: Sequence[Any]) -> Function:
    """A body as a function of its own arrays; it sees the values `outside` as well, and gives its
    last two values."""

    def run(*xs: Any) -> list[Any]:
        values = [*outside, *xs]
        for s in steps:
            operands = [values[-1 - i % len(values)] for i in s.operands]
            if s.op in LAYERS:
                f = body_of(j, s.body, () if s.op in CLOSED else values)
                values += LAYERS[s.op](j, np.random.default_rng(s.seed), f, operands)(*operands)
            else:
                values.append(apply(j, s.op, np.random.default_rng(s.seed), operands))
        return values[-2:] if len(values) - len(outside) - len(xs) > 1 else values[-1:]

    return run


def function(j: Any, p: Program, height: int | None = None) -> Function:
    """The program with the lowest `height` layers of its stack, all by default."""

    f = body_of(j, p.steps, ())
    xs = operands(p, 0)
    for k, layer in enumerate(p.stack[:height]):
        f = wrapped(j, layer, f, xs)
        xs = operands(p, k + 1)
    return lambda *xs: f(*map(j.numpy.asarray, xs))


def wrapped(j: Any, layer: Layered, f: Function, xs: Sequence[np.ndarray]) -> Function:
    """`f`, which takes `xs`, under one more layer of the stack."""
    r = np.random.default_rng(layer.seed)
    if layer.name == "vmap":
        return mapped(j, r, f, lanes(layer, xs), LANES)
    return LAYERS[layer.name](j, r, f, xs)


LANES = 3


def lanes(layer: Layered, xs: Sequence[np.ndarray]) -> tuple[int | None, ...]:
    """Where the operands of a vmap in the stack get their new axis."""
    r = np.random.default_rng([layer.seed, 1])
    found = [int(r.integers(-x.ndim - 1, x.ndim + 1)) if r.random() < 0.8 else None for x in xs]
    return tuple(found) if any(a is not None for a in found) else (0, *found[1:])


def operands(p: Program, height: int | None = None) -> list[np.ndarray]:
    """Operands of the program with so many layers: each vmap among them adds an axis."""
    r = np.random.default_rng([p.seed, 5])
    xs = [_array(r, kind, shape) for kind, shape in p.inputs]
    for layer in p.stack[:height]:
        if layer.name == "vmap":
            xs = [x if a is None else _widened(r, x, a) for x, a in zip(xs, lanes(layer, xs))]
    return xs


def _array(r: Choices, kind: str, shape: tuple[int, ...]) -> np.ndarray:
    if kind == "bool":
        return r.random(shape) > 0.5
    if kind in ("int32", "int8", "uint8"):
        return np.asarray(r.integers(0 if kind == "uint8" else -3, 5, shape)).astype(kind)
    x = np.asarray(r.uniform(-1.5, 1.5, shape))
    if kind == "complex64":
        return (x + 1j * np.asarray(r.uniform(-1.5, 1.5, shape))).astype(kind)
    return x.astype(kind)


def _widened(r: Choices, x: np.ndarray, axis: int) -> np.ndarray:
    rows = [x]
    for _ in range(LANES - 1):
        if x.dtype.kind in "iub":
            rows.append(
                np.roll(x, 1, -1) if x.ndim else ~x if x.dtype == bool else (x + 1).astype(x.dtype)
            )
        else:
            rows.append((x + np.asarray(r.uniform(-0.6, 0.6, x.shape))).astype(x.dtype))
    return np.stack(rows, axis)


# ---------------------------------------------------------------- looking at


def names_in(p: Program) -> set[str]:
    def walk(steps: Sequence[Step]) -> Iterator[str]:
        for s in steps:
            yield s.op
            yield from walk(s.body)

    return {*walk(p.steps), *(layer.name for layer in p.stack)}


def faithful(p: Program) -> bool:
    """Whether its derivatives are those of its values."""
    return not names_in(p) & (HELD | UNFAITHFUL)


def source(p: Program) -> str:
    """The program in lines: one for each step, bodies indented."""

    def lines(steps: Sequence[Step], indent: str) -> Iterator[str]:
        for s in steps:
            places = ", ".join(f"-{i + 1}" for i in s.operands)
            yield f"{indent}{s.op}({places})  # seed {s.seed}"
            yield from lines(s.body, indent + "    ")

    inputs = ", ".join(f"{kind}{list(shape)}" for kind, shape in p.inputs)
    head = (
        f"seed {p.seed}, {'smooth' if p.smooth else 'of all dtypes'}{', x64' if p.x64 else ''};"
        f" inputs {inputs}"
    )
    stack = [f"under {layer.name}  # seed {layer.seed}" for layer in p.stack]
    return "\n".join([head, *lines(p.steps, "  "), *stack])


def smaller(p: Program) -> Iterator[Program]:
    """Programs with one part less."""
    for k in range(len(p.stack)):
        yield p._replace(stack=p.stack[:k] + p.stack[k + 1 :])
    for steps in _smaller_steps(p.steps):
        if steps:
            yield p._replace(steps=steps)
    if len(p.inputs) > 1:
        yield p._replace(inputs=p.inputs[:-1])
    for k, (kind, shape) in enumerate(p.inputs):
        if shape:
            yield p._replace(inputs=(*p.inputs[:k], (kind, shape[1:]), *p.inputs[k + 1 :]))


def _smaller_steps(steps: tuple[Step, ...]) -> Iterator[tuple[Step, ...]]:
    for k in range(len(steps) - 1, -1, -1):
        s = steps[k]
        yield steps[:k] + steps[k + 1 :]
        if s.body:
            yield steps[:k] + s.body + steps[k + 1 :]
            for body in _smaller_steps(s.body):
                if body:
                    yield (*steps[:k], s._replace(body=body), *steps[k + 1 :])


def shrink(p: Program, fails: Callable[[Program], bool]) -> Program:
    """A program that still fails, from which nothing can be taken."""
    changed = True
    while changed:
        changed = False
        for candidate in smaller(p):
            if fails(candidate):
                p, changed = candidate, True
                break
    return p
