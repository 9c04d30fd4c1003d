"""Derivatives of solvers by the implicit function theorem: custom_root and custom_linear_solve."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from calque.core import pytrees, reference
from calque.core.avals import ShapedArray
from calque.core.jaxprs import ClosedJaxpr
from calque.core.primitives import UndefinedPrimal, Zero, do
from calque.core.trace import eval_jaxpr, typeof
from calque.core.tracebacks import boundary
from calque.ops.common import front, instantiate, zero_like
from calque.transforms.engines.axes import Axis, AxisPrimitive
from calque.transforms.engines.batching import Dim, batch_jaxpr
from calque.transforms.engines.jvp import jvp_jaxpr
from calque.transforms.engines.slices import hoist_all
from calque.transforms.engines.transpose import transpose_jaxpr
from calque.transforms.engines.trees import arrays, name_of
from calque.transforms.engines.zeros import add_tangents, nonzero, only_nonzero, with_zeros
from calque.transforms.functions import autodiff
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.primitives.flow import Staged, same_type, split, staged, type_text

# ---------------------------------------------------------------- custom_root


@boundary
def custom_root(
    f: Callable[[Any], Any],
    initial_guess: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    tangent_solve: Callable[[Callable[[Any], Any], Any], Any],
    has_aux: bool = False,
) -> Any:
    """Gives a root of a function, found by a solver, with the derivative that it has as a root.

    Derivatives follow from the implicit function theorem: the solver is not looked into.

    Args:
        f: The function whose root is sought; its result has the tree, shapes and dtypes of its
            argument.
        initial_guess: Where the solver begins.
        solve: `solve(f, initial_guess)` gives a root.
        tangent_solve: `tangent_solve(g, y)` gives x with g(x) = y for a linear function g; for a
            scalar that is `y / g(1.0)`.
        has_aux: Whether `solve` returns a pair of which the second part is handed on.

    Returns:
        The root; with `has_aux` (root, aux).

    >>> def newton(f, x):
    ...     return lax.fori_loop(0, 8, lambda _, x: x - f(x) / jax.grad(f)(x), x)
    >>> root = lambda a: lax.custom_root(lambda x: x * x - a, 2.0, newton, lambda g, y: y / g(1.0))
    >>> root(9.0), jax.grad(root)(4.0)
    (Array(3., dtype=float32, weak_type=True), Array(0.25, dtype=float32, weak_type=True))"""
    guess, tree = pytrees.flatten(initial_guess)
    guess = arrays(guess, "custom_root", f, (initial_guess,), {})
    part = staged(f, (initial_guess,), [typeof(x) for x in guess], "custom_root")
    _check_square("f", f, tree, part, guess)

    def residual(consts: Sequence[Any]) -> Callable[[Any], Any]:
        def of(x: Any) -> Any:
            outs = eval_jaxpr(part.closed.jaxpr, part.closed.consts, *consts, *pytrees.leaves(x))
            return pytrees.unflatten(tree, outs)

        return of

    start, avals = pytrees.unflatten(tree, guess), [typeof(x) for x in guess]
    const_avals = [typeof(x) for x in part.consts]
    # what the solvers captured is given to them again as arguments: tracers that they hold may have
    # ended when they run
    solver = staged(
        lambda consts, start: solve(residual(consts), start),
        (part.consts, start),
        [*const_avals, *avals],
        f"{name_of(solve)} of custom_root",
    )
    _check_root("solve", solve, solver.out_tree, tree, has_aux)
    linear_solver = staged(
        lambda consts, x, y: tangent_solve(autodiff.linearize(residual(consts), x)[1], y),
        (part.consts, start, start),
        [*const_avals, *avals, *avals],
        f"{name_of(tangent_solve)} of custom_root",
    )
    _check_root("tangent_solve", tangent_solve, linear_solver.out_tree, tree, False)

    @custom_jvp
    def root(consts: list[Any], captured: Any, start: Any) -> Any:
        outs = eval_jaxpr(
            solver.closed.jaxpr,
            solver.closed.consts,
            *captured[0],
            *consts,
            *pytrees.leaves(start),
        )
        return pytrees.unflatten(solver.out_tree, outs)

    @root.defjvp
    def root_jvp(primals: Any, tangents: Any) -> Any:
        consts, captured, start = primals
        out = root(consts, captured, start)
        x = out[0] if has_aux else out
        _, shift = autodiff.jvp(lambda c: residual(c)(x), (consts,), (tangents[0],))
        steps = eval_jaxpr(
            linear_solver.closed.jaxpr,
            linear_solver.closed.consts,
            *captured[1],
            *consts,
            *pytrees.leaves(x),
            *map(do.neg, pytrees.leaves(shift)),
        )
        x_dot = pytrees.unflatten(tree, steps)
        if not has_aux:
            return out, x_dot
        return out, (x_dot, pytrees.tree_map(lambda a: instantiate(zero_like(a)), out[1]))

    return root(part.consts, (solver.consts, linear_solver.consts), start)


def _check_root(
    what: str, f: Any, found: pytrees.PyTreeDef, tree: pytrees.PyTreeDef, has_aux: bool
) -> None:
    """A solver of custom_root must give the tree of the initial guess, or a pair that begins with
    it."""
    if has_aux:
        children = found.children()
        if found.type is not tuple or len(children) != 2:
            raise TypeError(
                f"{what}() with has_aux=True must return a pair (root, aux): {name_of(f)} gives"
                f" {found}"
            )
        found = children[0]
    if found != tree:
        raise TypeError(
            f"{what}() output pytree structure must match that of the initial guess: {name_of(f)}"
            f" gives {found}, not {tree}"
        )


def _check_square(
    what: str,
    f: Any,
    tree: pytrees.PyTreeDef,
    part: Staged,
    values: Sequence[Any],
    error: type[Exception] = TypeError,
) -> None:
    """A function that is solved for must give back the type of its argument; `error` where it
    gives other shapes or dtypes."""
    avals = [typeof(x) for x in values]
    if part.out_tree != tree:
        raise TypeError(
            f"{what}() output pytree structure must match that of its argument: {name_of(f)} gives"
            f" {part.out_tree}, not {tree}"
        )
    for a, b in zip(part.closed.out_avals, avals):
        if not same_type(a, b):
            raise error(
                f"{what}() output shapes and dtypes must match those of its argument: {name_of(f)}"
                f" gives {type_text(a)} for {type_text(b)}"
            )


# ---------------------------------------------------------------- custom_linear_solve


class SolveParts(NamedTuple):
    """Something for each of the functions that make up a linear solve."""

    matvec: Any
    vecmat: Any
    solve: Any
    transpose_solve: Any

    def swapped(self) -> "SolveParts":
        return SolveParts(self.vecmat, self.matvec, self.transpose_solve, self.solve)


@boundary
def custom_linear_solve(
    matvec: Callable[[Any], Any],
    b: Any,
    solve: Callable[[Callable[[Any], Any], Any], Any],
    transpose_solve: Callable[[Callable[[Any], Any], Any], Any] | None = None,
    symmetric: bool = False,
    has_aux: bool = False,
) -> Any:
    """Gives the solution of a linear system, found by a solver, with the derivative that it has.

    Args:
        matvec: The linear function: `matvec(x) = b`.
        b: The right side, a tree of arrays.
        solve: `solve(matvec, b)` gives x.
        transpose_solve: `transpose_solve(vecmat, b)` solves the transposed system; reverse mode
            needs it.
        symmetric: Whether the function is its own transpose, so that `solve` serves for both.
        has_aux: Whether the solvers return a pair of which the second part is handed on.

    Returns:
        The solution, of the tree of `b`; with `has_aux` (solution, aux).

    >>> solve = lambda matvec, b: b / 2.0
    >>> lax.custom_linear_solve(lambda x: 2.0 * x, jnp.ones(2), solve, symmetric=True)
    Array([0.5, 0.5], dtype=float32)"""
    if transpose_solve is None and symmetric:
        transpose_solve = solve
    leaves, tree = pytrees.flatten(b)
    leaves = arrays(leaves, "custom_linear_solve", matvec, (b,), {})
    avals = [typeof(x).strip_weak_type() for x in leaves]
    values = pytrees.unflatten(tree, leaves)
    product = staged(matvec, (values,), avals, "matvec of custom_linear_solve")
    _check_square("matvec", matvec, tree, product, leaves, ValueError)
    solver = staged(
        lambda y: solve(_applied(product, tree), y),
        (values,),
        avals,
        "solve of custom_linear_solve",
    )
    n = len(leaves)
    aux_tree = _solution_tree("solve", solve, solver, tree, avals, has_aux)
    parts, consts = (
        SolveParts(product.closed, None, solver.closed, None),
        SolveParts(product.consts, [], solver.consts, []),
    )
    if transpose_solve is not None:
        back = product if symmetric else _transposed(product, avals, tree)
        chosen: Any = transpose_solve
        back_solver = staged(
            lambda y: chosen(_applied(back, tree), y),
            (values,),
            avals,
            "transpose_solve of custom_linear_solve",
        )
        _solution_tree("transpose_solve", chosen, back_solver, tree, avals, has_aux)
        parts = SolveParts(product.closed, back.closed, solver.closed, back_solver.closed)
        consts = SolveParts(product.consts, back.consts, solver.consts, back_solver.consts)
    lengths = SolveParts(*map(len, consts))
    outs = linear_solve_p.bind(
        *(c for cs in consts for c in cs), *leaves, const_lengths=lengths, jaxprs=parts
    )
    x = pytrees.unflatten(tree, outs[:n])
    return (x, pytrees.unflatten(aux_tree, outs[n:])) if has_aux else x


def _applied(part: Staged, tree: pytrees.PyTreeDef) -> Callable[[Any], Any]:
    """A staged linear map as a function of trees."""

    def apply(x: Any) -> Any:
        outs = eval_jaxpr(part.closed.jaxpr, part.closed.consts, *part.consts, *pytrees.leaves(x))
        return pytrees.unflatten(tree, outs)

    return apply


def _transposed(part: Staged, avals: Sequence[ShapedArray], tree: pytrees.PyTreeDef) -> Staged:
    n = len(part.consts)
    mask = (False,) * n + (True,) * len(avals)
    back, _ = transpose_jaxpr(part.closed, mask, (True,) * len(avals), True)
    closed, more = hoist_all(back)
    return Staged(closed, [*more, *part.consts], tree)


def _solution_tree(
    what: str,
    solve: Any,
    part: Staged,
    tree: pytrees.PyTreeDef,
    avals: Sequence[ShapedArray],
    has_aux: bool,
) -> pytrees.PyTreeDef:
    """Check that a solver gives the type of its right side; the structure of what it gives
    besides."""
    found = part.out_tree
    aux = pytrees.structure(())
    if has_aux:
        children = found.children()
        if found.type is not tuple or len(children) != 2:
            raise TypeError(
                f"{what}() with has_aux=True must return a pair (x, aux): {name_of(solve)} gives"
                f" {found}"
            )
        found, aux = children
    if found != tree:
        raise TypeError(
            f"{what}() output pytree structure must match that of the right side b:"
            f" {name_of(solve)} gives {found}, not {tree}"
        )
    outs = part.closed.out_avals[: len(avals)]
    if not all(same_type(a, b) for a, b in zip(outs, avals)):
        got = [type_text(a) for a in outs]
        raise ValueError(
            f"{what}() output shapes and dtypes must match those of the right side b: expected"
            f" {[type_text(a) for a in avals]}, but {name_of(solve)} gives {got}"
        )
    return aux


def _shape(*avals: ShapedArray, const_lengths: SolveParts, jaxprs: SolveParts) -> list[ShapedArray]:
    return list(jaxprs.solve.out_avals)


def _meaning(*args: Any, const_lengths: SolveParts, jaxprs: SolveParts) -> list[Any]:
    _, _, consts, _, b = split(args, *const_lengths)
    return reference.run(jaxprs.solve, *consts, *b)


def _jvp(
    primals: Sequence[Any],
    tangents: Sequence[Any],
    *,
    const_lengths: SolveParts,
    jaxprs: SolveParts,
) -> Any:
    outs = linear_solve_p.bind(*primals, const_lengths=const_lengths, jaxprs=jaxprs)
    *_, b = split(primals, *const_lengths)
    matvec_ts, *_, b_ts = split(tangents, *const_lengths)
    n, n_consts = len(b), len(primals) - len(b)
    x = outs[:n]
    rhs = list(b_ts)
    if any(nonzero(matvec_ts)):  # A dx = db - dA x
        active = nonzero(matvec_ts) + (False,) * n
        both, mask = jvp_jaxpr(jaxprs.matvec, active)
        found = eval_jaxpr(
            both.jaxpr, both.consts, *primals[: const_lengths.matvec], *x, *only_nonzero(matvec_ts)
        )
        shift = with_zeros(found[n:], mask, jaxprs.matvec.out_avals)
        rhs = [add_tangents(t, s if type(s) is Zero else do.neg(s)) for t, s in zip(rhs, shift)]
    if not any(nonzero(rhs)):
        return outs, [zero_like(o) for o in outs]
    found = linear_solve_p.bind(
        *primals[:n_consts], *map(instantiate, rhs), const_lengths=const_lengths, jaxprs=jaxprs
    )
    return outs, [*found[:n], *(zero_like(o) for o in outs[n:])]


def _transpose(
    cts: Sequence[Any], *args: Any, const_lengths: SolveParts, jaxprs: SolveParts
) -> list[Any]:
    if jaxprs.transpose_solve is None:
        raise TypeError(
            "transpose_solve required for backwards mode automatic differentiation of"
            " custom_linear_solve"
        )
    *parts, b = split(args, *const_lengths)
    n = len(b)
    if any(type(c) is UndefinedPrimal for cs in parts for c in cs):
        raise TypeError(
            "custom_linear_solve is not linear in what its functions close over: it has no"
            " transpose in it"
        )
    if not any(nonzero(cts[:n])):
        return [None] * (len(args) - n) + [Zero(x.aval) for x in b]
    consts = SolveParts(*parts).swapped()
    outs = linear_solve_p.bind(
        *(c for cs in consts for c in cs),
        *map(instantiate, cts[:n]),
        const_lengths=const_lengths.swapped(),
        jaxprs=jaxprs.swapped(),
    )
    return [None] * (len(args) - n) + list(outs[:n])


def _batch(
    axis: Axis,
    args: Sequence[Any],
    dims: Sequence[Dim],
    *,
    const_lengths: SolveParts,
    jaxprs: SolveParts,
) -> Any:
    """Right sides and solutions are batched together, whichever of them needs it."""
    *_, b = split(args, *const_lengths)
    *parts, b_dims = split(dims, *const_lengths)
    n_consts = len(args) - len(b)
    inner = (0,) * len(b)

    def batched(closed: ClosedJaxpr | None, const_dims: Sequence[Dim]) -> ClosedJaxpr | None:
        return None if closed is None else batch_jaxpr(closed, axis, (*const_dims, *inner), True)[0]

    whole = SolveParts(*(batched(j, d) for j, d in zip(jaxprs, parts)))
    rights = [front(x, d, axis.size) for x, d in zip(b, b_dims)]
    outs = linear_solve_p.bind(*args[:n_consts], *rights, const_lengths=const_lengths, jaxprs=whole)
    return outs, [0] * len(outs)


linear_solve_p = AxisPrimitive(
    "custom_linear_solve",
    meaning=_meaning,
    shape=_shape,
    jvp=_jvp,
    transpose=_transpose,
    batch=_batch,
    multiple_results=True,
)
