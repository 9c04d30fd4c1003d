"""Optimizers as triples of functions over trees of parameters, with schedules for the size of
steps."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec

from calque import numpy as jnp
from calque.core import pytrees
from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads",
    "constant", "exponential_decay", "inverse_time_decay",
    "l2_norm", "make_schedule", "momentum", "nesterov", "optimizer", "pack_optimizer_state",
    "piecewise_constant", "polynomial_decay", "rmsprop",
    "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip

Schedule = Callable[[Any], Any]
Number = float | Array
_Rate = Number | Schedule
_Parts = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]
_P = ParamSpec("_P")


class OptimizerState(NamedTuple):
    """The state for each parameter, flat, with the structure of the parameters and that of each
    state."""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


pytrees.register(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda aux, xs: OptimizerState(xs[0], *aux),
)


class Optimizer(NamedTuple):
    """init_fn(params) -> state, update_fn(step, grads, state) -> state, params_fn(state) ->
    params."""

    init_fn: Callable[[Any], Any]
    update_fn: Callable[[Any, Any, Any], Any]
    params_fn: Callable[[Any], Any]


def _packed(states: list[Any], tree: Any) -> OptimizerState:
    flat = [tree_flatten(s) for s in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree, tuple(d for _, d in flat))


def _states(state: OptimizerState) -> list[Any]:
    return [
        tree_unflatten(d, s) for d, s in zip(state.subtree_defs, state.packed_state, strict=True)
    ]


def optimizer(opt_maker: Callable[_P, _Parts]) -> Callable[_P, Optimizer]:
    """Makes an optimizer for trees of one for single arrays: `opt_maker(...)` gives (init, update,
    get_params) for an array.

    >>> from calque.example_libraries import optimizers
    >>> init, update, get = optimizers.sgd(0.5)
    >>> get(update(0, {"w": jnp.ones(2)}, init({"w": jnp.zeros(2)})))
    {'w': Array([-0.5, -0.5], dtype=float32)}"""

    @functools.wraps(opt_maker)
    def make(*args: _P.args, **kwargs: _P.kwargs) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        def init_tree(params: Any) -> OptimizerState:
            leaves, tree = tree_flatten(params)
            return _packed([init(x) for x in leaves], tree)

        def update_tree(i: Any, grads: Any, state: OptimizerState) -> OptimizerState:
            leaves, tree = tree_flatten(grads)
            if tree != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the"
                    " parameter tree structure with which it was initialized: parameter tree"
                    f" {state.tree_def} and grad tree {tree}."
                )
            new = _packed(
                [update(i, g, s) for g, s in zip(leaves, _states(state), strict=True)], tree
            )
            for before, after in zip(state.subtree_defs, new.subtree_defs, strict=True):
                if before != after:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match"
                        f" its input structure: {before} and {after}."
                    )
            return new

        def params_of(state: OptimizerState) -> Any:
            return tree_unflatten(state.tree_def, [get_params(s) for s in _states(state)])

        return Optimizer(init_tree, update_tree, params_of)

    return make


# ---------------------------------------------------------------- optimizers


def _with_slots(count: int, rule: Callable[..., tuple[Any, ...]]) -> _Parts:
    """(init, update, get_params) of a rule (i, g, x, *slots) -> (x, *slots), whose slots begin as
    zeros."""

    def init(x: Any) -> tuple[Any, ...]:
        return (x, *(jnp.zeros_like(x) for _ in range(count)))

    return init, lambda i, g, state: rule(i, g, *state), lambda state: state[0]


def _inverse_root(x: Any) -> Any:
    """1 / sqrt(x), 0 where x is 0."""
    there = x > 0
    return jnp.where(there, 1 / jnp.sqrt(jnp.where(there, x, 1.0)), 0.0)


@optimizer
def sgd(step_size: _Rate) -> _Parts:
    """Gradient descent."""
    rate = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - rate(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: _Rate, mass: float) -> _Parts:
    """Gradient descent along a velocity that decays by `mass`."""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, velocity: Any) -> tuple[Any, ...]:
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return _with_slots(1, rule)


@optimizer
def nesterov(step_size: _Rate, mass: float) -> _Parts:
    """Momentum that looks ahead."""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, velocity: Any) -> tuple[Any, ...]:
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return _with_slots(1, rule)


@optimizer
def adagrad(step_size: _Rate, momentum: float = 0.9) -> _Parts:
    """Steps in units of the root of all squared gradients so far (Duchi, Hazan and Singer 2011),
    with momentum."""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, squares: Any, m: Any) -> tuple[Any, ...]:
        squares = squares + jnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - rate(i) * m, squares, m

    return _with_slots(2, rule)


@optimizer
def rmsprop(step_size: _Rate, gamma: float = 0.9, eps: float = 1e-8) -> _Parts:
    """Steps in units of a running root mean square of the gradients."""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, mean: Any) -> tuple[Any, ...]:
        mean = gamma * mean + (1 - gamma) * jnp.square(g)
        return x - rate(i) * g / jnp.sqrt(mean + eps), mean

    return _with_slots(1, rule)


@optimizer
def rmsprop_momentum(
    step_size: _Rate, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> _Parts:
    """`rmsprop` with momentum."""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, mean: Any, m: Any) -> tuple[Any, ...]:
        mean = gamma * mean + (1 - gamma) * jnp.square(g)
        m = momentum * m + rate(i) * g / jnp.sqrt(mean + eps)
        return x - m, mean, m

    return _with_slots(2, rule)


@optimizer
def adam(step_size: _Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Parts:
    """Steps by running means of gradients and of their squares, both corrected for beginning at
    zero (Kingma and Ba 2014)."""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, m: Any, v: Any) -> tuple[Any, ...]:
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * jnp.square(g) + b2 * v
        first, second = (
            mean / (1 - jnp.asarray(b, m.dtype) ** (i + 1)) for mean, b in ((m, b1), (v, b2))
        )
        return x - rate(i) * first / (jnp.sqrt(second) + eps), m, v

    return _with_slots(2, rule)


@optimizer
def adamax(step_size: _Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Parts:
    """Adam with the largest recent gradient in the place of the root mean square."""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, m: Any, u: Any) -> tuple[Any, ...]:
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        return x - rate(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1)) * m / (u + eps), m, u

    return _with_slots(2, rule)


@optimizer
def sm3(step_size: _Rate, momentum: float = 0.9) -> _Parts:
    """Adagrad that keeps one number for each row, column, ... of a parameter (Anil, Gupta, Koren
    and Singer 2019)."""
    rate = make_schedule(step_size)

    def init(x: Any) -> Any:
        x = jnp.asarray(x)
        wide = jnp.atleast_1d(x)
        return (
            wide,
            jnp.zeros_like(wide),
            [jnp.zeros(d, wide.dtype) for d in wide.shape],
            jnp.zeros((x.ndim,)),
        )

    def update(i: Any, g: Any, state: Any) -> Any:
        x, m, covers, rank = state
        g = jnp.reshape(g, x.shape)

        def along(v: Any, axis: int) -> Any:
            return v.reshape(tuple(-1 if k == axis else 1 for k in range(x.ndim)))

        squares = functools.reduce(
            jnp.minimum, [along(v, k) for k, v in enumerate(covers)]
        ) + jnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        covers = [
            jnp.max(squares, axis=tuple(j for j in range(x.ndim) if j != k)) for k in range(x.ndim)
        ]
        return x - rate(i) * m, m, covers, rank

    # an array of `rank` zeros stands for the rank, so that the state is one of arrays
    return init, update, lambda state: state[0].reshape(state[0].shape if state[3].size else ())


# ---------------------------------------------------------------- schedules


def constant(step_size: Number) -> Schedule:
    """The same size for each step."""
    return lambda i: step_size


def exponential_decay(step_size: Number, decay_steps: Number, decay_rate: Number) -> Schedule:
    """Multiplied by `decay_rate` every `decay_steps`, continuously."""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Number, decay_steps: Number, decay_rate: Number, staircase: bool = False
) -> Schedule:
    """Divided by 1 + decay_rate i / decay_steps; with `staircase` only after each `decay_steps`."""
    turns = (lambda i: jnp.floor(i / decay_steps)) if staircase else (lambda i: i / decay_steps)
    return lambda i: step_size / (1 + decay_rate * turns(i))


def polynomial_decay(
    step_size: Number, decay_steps: Number, final_step_size: Number, power: float = 1.0
) -> Schedule:
    """From one size to another in `decay_steps`, along a power of what is left."""

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: ArrayLike, values: ArrayLike) -> Schedule:
    """values[k] after boundary k - 1 and up to boundary k."""
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if boundaries.shape[0] != values.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: _Rate) -> Schedule:
    """A schedule: the given one, or a constant one."""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        f"a step size must be a number or a function of the step, got {type(scalar_or_schedule)}"
    )


# ---------------------------------------------------------------- trees


def l2_norm(tree: Any) -> Array:
    """The Euclidean norm of all leaves together.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.l2_norm({"a": jnp.array([3.0]), "b": jnp.array([4.0])})
    Array(5., dtype=float32)"""
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: ArrayLike) -> Any:
    """The gradients, scaled down if their norm is above `max_norm`."""
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """A leaf that holds a tree."""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """The tree of parameters, with a JoinPoint of its state for each: a form to store."""
    return tree_unflatten(opt_state.tree_def, [JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """The state that `unpack_optimizer_state` took apart."""
    points, tree = tree_flatten(marked_pytree)
    if not all(isinstance(p, JoinPoint) for p in points):
        raise TypeError(
            "pack_optimizer_state takes a tree of JoinPoints, as unpack_optimizer_state makes it"
        )
    return _packed([p.subtree for p in points], tree)
