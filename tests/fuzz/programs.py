"""Programs as data: calls of public functions by name, so that one program runs in calque, in JAX,
prints as a test and can be made smaller."""

import importlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tests.fuzz import forms
from tests.fuzz.values import Input


class Ref(NamedTuple):
    """An array: `call` is None for an input, else the number of the call whose leaf it is."""

    call: int | None
    leaf: int


class Made(NamedTuple):
    """An object that the package makes: a dtype, dimension numbers, a padding configuration."""

    name: str
    args: tuple[Any, ...] = ()
    keywords: tuple[tuple[str, Any], ...] = ()


class Applied(NamedTuple):
    """A function argument: a public function, its first arguments given."""

    name: str
    first: tuple[Any, ...] = ()


class Call(NamedTuple):
    function: str
    args: tuple[Any, ...]
    keywords: tuple[tuple[str, Any], ...]


class Program(NamedTuple):
    seed: int
    x64: bool
    inputs: tuple[Input, ...]
    calls: tuple[Call, ...]


def named(package: Any, name: str) -> Any:
    """A public object of calque or JAX, or a form."""
    module, _, last = name.rpartition(".")
    if module == "forms":
        return getattr(forms, last)
    path = f"{package.__name__}.{module}" if module else package.__name__
    try:
        return getattr(importlib.import_module(path), last)
    except ModuleNotFoundError:  # a class in between
        outer, _, middle = module.rpartition(".")
        return getattr(
            getattr(importlib.import_module(f"{package.__name__}.{outer}"), middle), last
        )


def resolved(package: Any, x: Any, values: Callable[[Ref], Any]) -> Any:
    """An argument as the package takes it."""
    if isinstance(x, Ref):
        return values(x)
    if isinstance(x, Made):
        made = named(package, x.name)
        if not x.args and not x.keywords:
            return made
        inner = [resolved(package, a, values) for a in x.args]
        return made(*inner, **{k: resolved(package, v, values) for k, v in x.keywords})
    if isinstance(x, Applied):
        f = named(package, x.name)
        first = [resolved(package, a, values) for a in x.first]
        return (lambda *more: f(*first, *more)) if first else f
    if isinstance(x, (tuple, list)):
        return type(x)(resolved(package, a, values) for a in x)
    return x


def leaves(package: Any, result: Any) -> list[Any]:
    """The arrays and numbers of a result; keys of random numbers as their words."""
    out = []
    for leaf in package.tree_util.tree_leaves(result):
        dtype = getattr(leaf, "dtype", None)
        if dtype is not None and package.dtypes.issubdtype(dtype, package.dtypes.prng_key):
            leaf = package.random.key_data(leaf)
        if dtype is not None or isinstance(leaf, (bool, int, float, complex)):
            out.append(leaf)
    return out


def call(package: Any, c: Call, values: Callable[[Ref], Any]) -> list[Any]:
    args = [resolved(package, a, values) for a in c.args]
    keywords = {k: resolved(package, a, values) for k, a in c.keywords}
    return leaves(package, named(package, c.function)(*args, **keywords))


def function(package: Any, p: Program) -> Callable[..., list[Any]]:
    """The program as a function of its inputs that gives the leaves of every call."""

    def run(*xs: Any) -> list[Any]:
        results: list[list[Any]] = []
        xs = tuple(map(package.numpy.asarray, xs))

        def values(ref: Ref) -> Any:
            return xs[ref.leaf] if ref.call is None else results[ref.call][ref.leaf]

        for c in p.calls:
            results.append(call(package, c, values))
        return [leaf for r in results for leaf in r]

    return run


def source(p: Program) -> str:
    """A test that shows the program's failure to a person."""
    lines = [f"def test_program_{p.seed}():"]
    names = [f"x{i}" for i in range(len(p.inputs))]
    for name, x in zip(names, p.inputs):
        lines.append(f"    {name} = value({x!r})")
    lines.append(f"    def f({', '.join(names)}):")
    for i, c in enumerate(p.calls):
        args = [*map(written, c.args), *(f"{k}={written(v)}" for k, v in c.keywords)]
        lines.append(f"        r{i} = leaves({_path(c.function)}({', '.join(args)}))")
    results = " + ".join(f"r{i}" for i in range(len(p.calls)))
    lines += [f"        return {results or '[]'}", f"    # {p!r}"]
    if p.x64:
        lines.insert(1, '    jax.config.update("jax_enable_x64", True)')
    return "\n".join(lines)


def _path(name: str) -> str:
    return name if name.startswith("forms.") else f"jax.{name}"


def written(x: Any) -> str:
    if isinstance(x, Ref):
        return f"x{x.leaf}" if x.call is None else f"r{x.call}[{x.leaf}]"
    if isinstance(x, Made):
        args = [*map(written, x.args), *(f"{k}={written(v)}" for k, v in x.keywords)]
        return f"jax.{x.name}" + (f"({', '.join(args)})" if args else "")
    if isinstance(x, Applied):
        first = ", ".join(map(written, x.first))
        return f"functools.partial(jax.{x.name}, {first})" if first else f"jax.{x.name}"
    if isinstance(x, tuple):
        return "(" + "".join(f"{written(a)}, " for a in x) + ")"
    if isinstance(x, list):
        return "[" + ", ".join(map(written, x)) + "]"
    return repr(x)


def references(x: Any) -> Iterator[Ref]:
    """The arrays that an argument names."""
    if isinstance(x, Ref):
        yield x
    elif isinstance(x, Call):
        for a in (*x.args, *(v for _, v in x.keywords)):
            yield from references(a)
    elif isinstance(x, (Made, Applied)):
        for a in x[1]:
            yield from references(a)
    elif isinstance(x, (tuple, list)):
        for a in x:
            yield from references(a)


def replaced(x: Any, new: Callable[[Ref], Ref]) -> Any:
    """An argument with other references."""
    if isinstance(x, Ref):
        return new(x)
    if isinstance(x, (Made, Applied, Call)):
        return type(x)(x[0], *(replaced(a, new) for a in x[1:]))
    if isinstance(x, (tuple, list)):
        return type(x)(replaced(a, new) for a in x)
    return x


def without_call(p: Program, i: int) -> Program | None:
    """The program less one call, or None where its result is needed."""
    if any(ref.call == i for c in p.calls for ref in references(c)):
        return None

    def moved(ref: Ref) -> Ref:
        return Ref(ref.call - 1, ref.leaf) if ref.call is not None and ref.call > i else ref

    return p._replace(calls=tuple(replaced(c, moved) for k, c in enumerate(p.calls) if k != i))


def result_as_input(p: Program, i: int, results: Sequence[Sequence[np.ndarray]]) -> Program:
    """The program with the leaves of one call replaced by plain inputs of their types."""
    made = [Input(str(x.dtype), x.shape, "plain", 1000 + i) for x in map(np.asarray, results[i])]
    first = len(p.inputs)

    def moved(ref: Ref) -> Ref:
        if ref.call == i:
            return Ref(None, first + ref.leaf)
        return Ref(ref.call - 1, ref.leaf) if ref.call is not None and ref.call > i else ref

    calls = tuple(replaced(c, moved) for k, c in enumerate(p.calls) if k != i)
    return p._replace(inputs=(*p.inputs, *made), calls=calls)


def without_unused(p: Program) -> Program:
    """The program less the inputs that nothing reads."""
    used = sorted({r.leaf for c in p.calls for r in references(c) if r.call is None})
    place = {old: new for new, old in enumerate(used)}

    def moved(ref: Ref) -> Ref:
        return Ref(None, place[ref.leaf]) if ref.call is None else ref

    calls = tuple(replaced(c, moved) for c in p.calls)
    return p._replace(inputs=tuple(p.inputs[i] for i in used), calls=calls)


def smaller(p: Program) -> Iterator[Program]:
    """Programs that are a little smaller."""
    for i in reversed(range(len(p.calls))):
        if len(p.calls) > 1 and (less := without_call(p, i)):
            yield without_unused(less)
    for i, c in enumerate(p.calls):
        for k in range(len(c.keywords)):
            fewer = c._replace(keywords=c.keywords[:k] + c.keywords[k + 1 :])
            yield without_unused(p._replace(calls=(*p.calls[:i], fewer, *p.calls[i + 1 :])))
    for i, x in enumerate(p.inputs):
        others = [x._replace(fill="plain")] if x.fill == "edges" else []
        if x.dtype not in ("float32", "int32", "bool"):
            others.append(x._replace(dtype="float32"))
        for d, n in enumerate(x.shape):
            if n > 2:
                others.append(x._replace(shape=(*x.shape[:d], 2, *x.shape[d + 1 :])))
        for other in others:
            yield p._replace(inputs=(*p.inputs[:i], other, *p.inputs[i + 1 :]))
    if p.x64:
        yield p._replace(x64=False)


def shrink(p: Program, fails: Callable[[Program], bool], tries: int = 200) -> Program:
    """The smallest program found that still fails."""
    again = True
    while again:
        again = False
        for candidate in smaller(p):
            tries -= 1
            if tries < 0:
                return p
            if _fails(fails, candidate):
                p, again = candidate, True
                break
    return p


def _fails(fails: Callable[[Program], bool], p: Program) -> bool:
    """Whether it fails; a program whose inputs cannot be made does not."""
    try:
        return fails(p)
    except Exception:
        return False
