"""What the control-flow primitives have in common: staging their functions, rearranging programs,
comparing types."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator, Sequence
from types import FunctionType
from typing import Any, Final, NamedTuple

from calque.core import pytrees, trace_state
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.dtypes import promote
from calque.core.jaxprs import ClosedJaxpr, Eqn, Literal, Var
from calque.core.key_paths import keystr
from calque.core.primitives import REGISTRY, do
from calque.core.trace import trace_to_jaxpr, typeof, typing
from calque.core.trace_state import Tracer
from calque.machine.caches import Table
from calque.ops.common import scalar_of
from calque.transforms.engines import axes
from calque.transforms.engines.signatures import (
    ArgumentNames,
    captured_values,
    describe_function,
    signature,
)
from calque.transforms.engines.slices import hoist_all
from calque.transforms.engines.trees import FlatFunction, name_of


class Staged(NamedTuple):
    """A user's function as a program of (captured values, arguments), the captured values, the
    structure of its result."""

    closed: ClosedJaxpr
    consts: list[Any]
    out_tree: pytrees.PyTreeDef


class _StagedNames(Sequence[str]):
    """What the arguments of a staged function are called; worked out when a message needs it."""

    def __init__(self, fun: Callable[..., Any], tree: pytrees.PyTreeDef) -> None:
        self._fun, self._tree = fun, tree

    def __len__(self) -> int:
        return self._tree.num_leaves

    def __getitem__(self, i: Any) -> Any:
        args, kwargs = pytrees.unflatten(self._tree, range(self._tree.num_leaves))
        return ArgumentNames(self._fun, args, kwargs)[i]


def staged(
    fun: Callable[..., Any], args: Sequence[Any], avals: Sequence[ShapedArray], what: str
) -> Staged:
    """Record `fun(*args)`, where `avals` are the types of the leaves of `args`.

    Outside of programs that are recorded, the same function of the same types is recorded again
    only when something that it reads has changed, or when not all that it reads can be seen."""
    in_tree = pytrees.structure((tuple(args), {}))
    key = _key(fun, in_tree, avals, what)
    known = None if key is None else _programs.find(key)
    if known is not None and not known.captured.changed():
        return known.part
    user, _ = _stands_for(fun)
    captured = None if key is None else captured_values.call(user)
    flat = FlatFunction(fun, in_tree, what)
    said = describe_function(fun, f"{name_of(fun)} in {what}")
    closed, consts = hoist_all(trace_to_jaxpr(flat, avals, said, _StagedNames(fun, in_tree)))
    part = Staged(closed, consts, flat.out_tree)
    if captured is not None and captured.whole and not any(isinstance(c, Tracer) for c in consts):
        captured.settle()
        # the program holds arrays that the function captured: it goes with the function
        _programs[key] = _Known(
            weakref.ref(user, lambda _: _programs.pop(key, None)), captured, part
        )
    return part


class _Known(NamedTuple):
    """A function that is alive, what it read, and its program."""

    fun: Callable[[], Any]
    captured: Any
    part: Staged


def standing_for(made: Callable[..., Any], fun: Callable[..., Any], *rest: Any) -> Any:
    """`made`, which is made anew at each call and differs from the one before in nothing but `fun`
    and `rest`."""
    made.__name__ = name_of(fun)
    made.__dict__["_stands_for"] = fun, rest
    return made


def _stands_for(fun: Any) -> tuple[Any, tuple[Any, ...]]:
    """The function of the user that this one is made from, and what else it is made from."""
    found: tuple[Any, tuple[Any, ...]] = getattr(fun, "__dict__", {}).get("_stands_for", (fun, ()))
    return found


_programs: Final[Table[Any, _Known]] = Table("functions of eager loops", 256, programs=True)


def _key(
    fun: Callable[..., Any], in_tree: pytrees.PyTreeDef, avals: Sequence[ShapedArray], what: str
) -> Any:
    """What the program of a function depends on, beside what the function reads; None where it is
    not to be kept: while a program is recorded, a function is transformed or looked at, and for
    what may be another object next time."""
    user, rest = _stands_for(fun)
    if trace_state.depth() or type(user) is not FunctionType or config.here().looks:
        return None
    around = config.trace_key(), axes.in_scope(), typing.value.ambient()
    return id(user), fun.__code__, rest, in_tree, tuple(avals), what, around


# ---------------------------------------------------------------- programs rearranged


def rearranged(
    closed: ClosedJaxpr, ins: Sequence[int], outs: Sequence[int] | None = None
) -> ClosedJaxpr:
    """The program with its arguments (and results) in this order."""
    j = closed.jaxpr
    outvars = j.outvars if outs is None else [j.outvars[i] for i in outs]
    return ClosedJaxpr(j.replace(invars=[j.invars[i] for i in ins], outvars=outvars), closed.consts)


def with_inputs(closed: ClosedJaxpr, places: Sequence[int | ShapedArray]) -> ClosedJaxpr:
    """The program with these arguments: an int stands for one of its own, a type for one that it
    does not read."""
    invars = [closed.jaxpr.invars[p] if isinstance(p, int) else Var(p) for p in places]
    return ClosedJaxpr(closed.jaxpr.replace(invars=invars), closed.consts)


def with_captured(
    part: Staged, consts: dict[int, Any], avals: Sequence[ShapedArray]
) -> ClosedJaxpr:
    """A branch as a program of the captured values of all branches and the operands."""
    own = {id(c): i for i, c in enumerate(part.consts)}
    places = [own[k] if k in own else typeof(c) for k, c in consts.items()]
    n = len(part.consts)
    return with_inputs(part.closed, [*places, *range(n, n + len(avals))])


def zeros_eqn(aval: ShapedArray) -> tuple[list[Eqn], Any]:
    """Equations that make zeros of this type, and the atom that holds them."""
    zero = Literal(scalar_of(aval.dtype, 0), ShapedArray((), aval.dtype))
    if not aval.shape:
        return [], zero
    params = {"shape": aval.shape, "broadcast_dimensions": (), "sharding": None}
    v = Var(aval.strip_weak_type())
    return [Eqn(REGISTRY["broadcast_in_dim"], [zero], [v], params)], v


def split(xs: Sequence[Any], *sizes: int) -> list[list[Any]]:
    """Consecutive parts of `xs` of these sizes, and what remains."""
    out, at = [], 0
    for n in sizes:
        out.append(list(xs[at : at + n]))
        at += n
    return [*out, list(xs[at:])]


def converted_results(closed: ClosedJaxpr, avals: Sequence[ShapedArray]) -> ClosedJaxpr:
    """The program with its results converted to these dtypes and weak types."""
    j = closed.jaxpr
    eqns = list(j.eqns)
    outvars = list(j.outvars)
    for i, (a, aval) in enumerate(zip(j.outvars, avals, strict=True)):
        if a.aval is not aval:
            outvars[i] = v = Var(aval)
            params = {"new_dtype": aval.dtype, "weak_type": aval.weak_type, "sharding": None}
            eqns.append(Eqn(REGISTRY["convert_element_type"], [a], [v], params))
    return ClosedJaxpr(j.replace(eqns=eqns, outvars=outvars), closed.consts)


# ---------------------------------------------------------------- types


def same_type(a: ShapedArray, b: ShapedArray) -> bool:
    return a.shape == b.shape and a.dtype == b.dtype and typing.value.alike(a, b)


def convert(x: Any, aval: ShapedArray) -> Any:
    """`x` with the dtype and the weak type of `aval`."""
    if typeof(x) is aval:
        return x
    return do.convert_element_type(x, new_dtype=aval.dtype, weak_type=aval.weak_type)


def joined_type(a: ShapedArray, b: ShapedArray) -> ShapedArray | None:
    """The type that both can have when weak types give way; None when there is none."""
    if a.shape != b.shape:
        return None
    if a.dtype == b.dtype:
        return a if a is b else a.update(weak_type=False)
    if a.weak_type or b.weak_type:
        dtype, weak = promote(((a.dtype, a.weak_type), (b.dtype, b.weak_type)))
        return ShapedArray(a.shape, dtype, weak)
    return None


def why_different(a: ShapedArray, b: ShapedArray) -> str:
    """The words after `so` in a message about two types."""
    reasons = []
    if a.dtype != b.dtype:
        reasons.append("the dtypes do not match")
    if a.shape != b.shape:
        reasons.append("the shapes do not match")
    if not typing.value.alike(a, b):
        reasons.append("the shardings do not match (reshard one of them)")
    return ", and ".join(reasons)


def type_text(aval: ShapedArray) -> str:
    name = getattr(aval.dtype, "name", aval.dtype)
    if aval.place is not None:
        return f"{name}{aval.place.text(aval.shape)}"
    return f"{name}[{','.join(map(str, aval.shape))}]"


def paths(treedef: pytrees.PyTreeDef) -> list[str]:
    """The key path of each leaf, as text."""
    try:
        tree = pytrees.unflatten(treedef, range(treedef.num_leaves))
    except Exception:  # a container of the user's that takes arrays alone
        return [keystr(path) for path in pytrees.paths_of(treedef._code)]
    return [keystr(p) for p, _ in pytrees.flatten_with_path(tree)[0]]


def tree_difference(a: pytrees.PyTreeDef, b: pytrees.PyTreeDef, first: str, second: str) -> str:
    """The components that only one of two trees has, as words; `first` and `second` are what the
    trees are called."""
    ours, theirs = paths(a), paths(b)
    only = (
        [f"{first}{p}" for p in ours if p not in theirs][:3],
        [f"{second}{p}" for p in theirs if p not in ours][:3],
    )
    parts = [f"there is no counterpart of the {', '.join(found)}" for found in only if found]
    return ": " + ", and ".join(parts) if parts else ""


def parameter_name(fun: Any, position: int, default: str) -> str:
    """What a function calls its argument."""
    try:
        return list(signature(fun).parameters)[position]
    except (ValueError, TypeError, IndexError):
        return default


def check_carry(
    what: str,
    fun: Any,
    position: int,
    in_tree: pytrees.PyTreeDef,
    out_tree: pytrees.PyTreeDef,
    ins: Sequence[ShapedArray],
    outs: Sequence[ShapedArray],
) -> None:
    """The carry that a body returns must be of the types that it was given."""
    name = parameter_name(fun, position, "carry")
    if in_tree != out_tree:
        found = [
            f"the input carry {_component(name, d.path)} is {d.left} but the corresponding"
            f" component of the carry output is {d.right}, so {d.why}"
            for d in structure_differences(in_tree, out_tree)
        ]
        extra = tree_difference(in_tree, out_tree, f"input carry {name}", f"output carry {name}")
        raise TypeError(
            f"{what} function carry input and carry output must have the same pytree structure, but"
            f" they differ:\n\n{_listed(found)}.\n\nThis is {name_of(fun)}{extra}. Revise the"
            " function so that the carry output has the same pytree structure as the carry input."
        )
    wrong = [
        f"the input carry {_component(name, path)} has type {type_text(a)} but the corresponding"
        f" output carry component has type {type_text(b)}, so {why_different(a, b)}"
        for path, a, b in zip(paths(in_tree), ins, outs, strict=True)
        if not same_type(a, b)
    ]
    casts = [
        f"  * applying `jax.lax.pcast(..., {missing}, to='varying')` to the initial carry value"
        f" {name}{path}"
        for path, a, b in zip(paths(in_tree), ins, outs, strict=True)
        if (missing := typing.value.casts(a, b))
    ]
    if casts and not wrong:
        one = f" {casts[0][4:]}" if len(casts) == 1 else ":\n" + "\n".join(casts)
        raise TypeError(
            f"{what} function carry input and carry output must have equal types, but they differ"
            f" in {name_of(fun)} in the manual axes that they vary along.\n\nThis might be fixed"
            f" by{one}"
        )
    if wrong:
        raise TypeError(
            f"{what} function carry input and carry output must have equal types, but they"
            f" differ:\n\n{_listed(wrong)}.\n\nThis is {name_of(fun)}. Revise the function so that"
            " all output types match the corresponding input types."
        )


def _component(name: str, path: str) -> str:
    return f"component {name}{path}" if path else name


def _listed(found: Sequence[str]) -> str:
    if len(found) == 1:
        return found[0][:1].upper() + found[0][1:]
    return ";\n".join(f"  * {text}" for text in found)


class Difference(NamedTuple):
    """A place where two trees are not alike: what stands there in each, and why they differ."""

    path: str
    left: str
    right: str
    why: str


def structure_differences(
    a: pytrees.PyTreeDef, b: pytrees.PyTreeDef, path: str = ""
) -> Iterator[Difference]:
    """Where two structures are not alike."""
    if a == b:
        return
    kinds = [None if d.is_leaf() else (d.node_data() or (None,))[0] for d in (a, b)]
    if kinds[0] is not kinds[1]:
        left, right = ["a pytree leaf" if k is None else f"a {k}" for k in kinds]
        yield Difference(path, left, right, "their Python types differ")
        return
    ours, theirs = a.children(), b.children()
    if len(ours) != len(theirs):
        yield Difference(path, *_sizes(kinds[0], len(ours), len(theirs)))
        return
    x_data, y_data = [
        tuple(d[1]) if isinstance(d[1], list) else d[1]
        for d in (a.node_data() or (None, None), b.node_data() or (None, None))
    ]
    if x_data != y_data:
        left, right = [f"a {kinds[0]} with pytree metadata {d}" for d in (x_data, y_data)]
        yield Difference(path, left, right, "the pytree node metadata does not match")
        return
    try:
        keys = pytrees.one_level(pytrees.unflatten(a, range(a.num_leaves)))[2]
    except Exception:  # as in `paths`
        keys = [f"[{i}]" for i in range(len(ours))]
    for key, x, y in zip(keys, ours, theirs):
        yield from structure_differences(x, y, path + str(key))


def _sizes(kind: Any, n: int, m: int) -> tuple[str, str, str]:
    if kind in (tuple, list):
        name = kind.__name__
        return f"a {name} of length {n}", f"a {name} of length {m}", "the lengths do not match"
    words = [f"a {kind} with {k} child{'' if k == 1 else 'ren'}" for k in (n, m)]
    return words[0], words[1], "the numbers of children do not match"
