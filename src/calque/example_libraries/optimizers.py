"""Optimizers as triples of functions over trees of parameters, with schedules for the size of
steps."""

import functools
from collections.abc import Callable
from typing import Any, NamedTuple, ParamSpec

from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core import pytrees
from calque.core.arrays import Array
from calque.core.types import ArrayLike
from calque.example_libraries.schedules import (
    Rate,
    constant,
    exponential_decay,
    inverse_time_decay,
    make_schedule,
    piecewise_constant,
    polynomial_decay,
)
from calque.tree_util import tree_flatten, tree_leaves, tree_map, tree_unflatten

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads",
    "constant", "exponential_decay", "inverse_time_decay",
    "l2_norm", "make_schedule", "momentum", "nesterov", "optimizer", "pack_optimizer_state",
    "piecewise_constant", "polynomial_decay", "rmsprop",
    "rmsprop_momentum", "sgd", "sm3", "unpack_optimizer_state",
]  # fmt: skip

_Parts = tuple[Callable[..., Any], Callable[..., Any], Callable[..., Any]]
_P = ParamSpec("_P")


class OptimizerState(NamedTuple):
    """The state of an optimizer, as a tree of arrays.

    Args:
        packed_state: The arrays, for each parameter.
        tree_def: The structure of the parameters.
        subtree_defs: The structure of the state of each parameter.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.sgd(0.5)[0]({"w": 1.0}).tree_def
    PyTreeDef({'w': *})"""

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


pytrees.register(
    OptimizerState,
    lambda s: ((s.packed_state,), (s.tree_def, s.subtree_defs)),
    lambda aux, xs: OptimizerState(xs[0], *aux),
)


class Optimizer(NamedTuple):
    """Three functions that optimize a tree of parameters.

    Args:
        init_fn: `init_fn(params)` gives a state.
        update_fn: `update_fn(i, grads, state)` gives the next one, after step i.
        params_fn: `params_fn(state)` gives the parameters.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.sgd(0.5)._fields
    ('init_fn', 'update_fn', 'params_fn')"""

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
    """Makes an optimizer for trees of one for single arrays; a decorator.

    Args:
        opt_maker: A function that gives (init, update, get_params) for an array.

    Returns:
        A function of the same arguments that gives an Optimizer for trees.

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
def sgd(step_size: Rate) -> _Parts:
    """Makes an optimizer by gradient descent.

    Args:
        step_size: The size of the steps: a number, or a function of the number of the step.

    Returns:
        An Optimizer: three functions of trees.

    >>> from calque.example_libraries import optimizers
    >>> init, update, get_params = optimizers.sgd(0.5)
    >>> get_params(update(0, 1.0, init(0.0)))
    -0.5"""
    rate = make_schedule(step_size)
    return (lambda x: x), (lambda i, g, x: x - rate(i) * g), (lambda x: x)


@optimizer
def momentum(step_size: Rate, mass: float) -> _Parts:
    """Makes an optimizer by gradient descent along a velocity.

    Args:
        step_size: The size of the steps: a number, or a function of the number of the step.
        mass: By what the velocity is multiplied in each step.

    Returns:
        An Optimizer: three functions of trees.

    >>> from calque.example_libraries import optimizers
    >>> init, update, get_params = optimizers.momentum(0.5, 0.9)
    >>> get_params(update(0, 1.0, init(0.0)))
    Array(-0.5, dtype=float32, weak_type=True)"""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, velocity: Any) -> tuple[Any, ...]:
        velocity = mass * velocity + g
        return x - rate(i) * velocity, velocity

    return _with_slots(1, rule)


@optimizer
def nesterov(step_size: Rate, mass: float) -> _Parts:
    """Makes an optimizer by gradient descent along a velocity, which looks ahead.

    Args:
        step_size: The size of the steps: a number, or a function of the number of the step.
        mass: By what the velocity is multiplied in each step.

    Returns:
        An Optimizer: three functions of trees.

    >>> from calque.example_libraries import optimizers
    >>> init, update, get_params = optimizers.nesterov(0.5, 1.0)
    >>> get_params(update(0, 1.0, init(0.0)))
    Array(-1., dtype=float32, weak_type=True)"""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, velocity: Any) -> tuple[Any, ...]:
        velocity = mass * velocity + g
        return x - rate(i) * (mass * velocity + g), velocity

    return _with_slots(1, rule)


@optimizer
def adagrad(step_size: Rate, momentum: float = 0.9) -> _Parts:
    """Makes an optimizer whose steps go by the root of all squared gradients so far, with momentum.

    Args:
        step_size: The size of the steps: a number, or a function of the number of the step.
        momentum: The share of the step before in each step.

    Returns:
        An Optimizer: three functions of trees.

    >>> from calque.example_libraries import optimizers
    >>> init, update, get_params = optimizers.adagrad(0.5, 0.0)
    >>> get_params(update(0, 4.0, init(0.0)))
    Array(-0.5, dtype=float32, weak_type=True)"""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, squares: Any, m: Any) -> tuple[Any, ...]:
        squares = squares + jnp.square(g)
        m = (1 - momentum) * (g * _inverse_root(squares)) + momentum * m
        return x - rate(i) * m, squares, m

    return _with_slots(2, rule)


@optimizer
def rmsprop(step_size: Rate, gamma: float = 0.9, eps: float = 1e-8) -> _Parts:
    """Makes an optimizer whose steps go by a running root mean square of the gradients.

    Args:
        step_size: The size of the steps: a number, or a function of the number of the step.
        gamma: The share of the mean before in each mean.
        eps: What is added under the root.

    Returns:
        An Optimizer: three functions of trees.

    >>> from calque.example_libraries import optimizers
    >>> init, update, get_params = optimizers.rmsprop(0.5, gamma=0.75)
    >>> get_params(update(0, 4.0, init(0.0)))
    Array(-1., dtype=float32, weak_type=True)"""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, mean: Any) -> tuple[Any, ...]:
        mean = gamma * mean + (1 - gamma) * jnp.square(g)
        return x - rate(i) * g / jnp.sqrt(mean + eps), mean

    return _with_slots(1, rule)


@optimizer
def rmsprop_momentum(
    step_size: Rate, gamma: float = 0.9, eps: float = 1e-8, momentum: float = 0.9
) -> _Parts:
    """Makes an optimizer as `rmsprop` does, with momentum.

    Args:
        step_size: The size of the steps: a number, or a function of the number of the step.
        gamma: The share of the mean before in each mean.
        eps: What is added under the root.
        momentum: The share of the step before in each step.

    Returns:
        An Optimizer: three functions of trees.

    >>> from calque.example_libraries import optimizers
    >>> init, update, get_params = optimizers.rmsprop_momentum(0.5, gamma=0.75)
    >>> get_params(update(0, 4.0, init(0.0)))
    Array(-1., dtype=float32, weak_type=True)"""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, mean: Any, m: Any) -> tuple[Any, ...]:
        mean = gamma * mean + (1 - gamma) * jnp.square(g)
        m = momentum * m + rate(i) * g / jnp.sqrt(mean + eps)
        return x - m, mean, m

    return _with_slots(2, rule)


@optimizer
def adam(step_size: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Parts:
    """Makes an optimizer whose steps go by running means of gradients and of their squares.

    Args:
        step_size: The size of the steps: a number, or a function of the number of the step.
        b1: The share of the mean before in each mean of gradients.
        b2: The share of the mean before in each mean of squares.
        eps: What is added to the root.

    Returns:
        An Optimizer: three functions of trees.

    >>> from calque.example_libraries import optimizers
    >>> init, update, get_params = optimizers.adam(0.5)
    >>> get_params(update(0, 4.0, init(0.0))).round(3)
    Array(-0.5, dtype=float32)"""
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
def adamax(step_size: Rate, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> _Parts:
    """Makes an optimizer as `adam` does, with the largest recent gradient for the mean square.

    Args:
        step_size: The size of the steps: a number, or a function of the number of the step.
        b1: The share of the mean before in each mean of gradients.
        b2: By what the largest gradient is multiplied in each step.
        eps: What is added to it.

    Returns:
        An Optimizer: three functions of trees.

    >>> from calque.example_libraries import optimizers
    >>> init, update, get_params = optimizers.adamax(0.5)
    >>> get_params(update(0, 4.0, init(0.0))).round(3)
    Array(-0.5, dtype=float32)"""
    rate = make_schedule(step_size)

    def rule(i: Any, g: Any, x: Any, m: Any, u: Any) -> tuple[Any, ...]:
        m = (1 - b1) * g + b1 * m
        u = jnp.maximum(b2 * u, jnp.abs(g))
        return x - rate(i) / (1 - jnp.asarray(b1, m.dtype) ** (i + 1)) * m / (u + eps), m, u

    return _with_slots(2, rule)


@optimizer
def sm3(step_size: Rate, momentum: float = 0.9) -> _Parts:
    """Makes an optimizer as `adagrad` does that keeps one number for each row, column, ...

    Args:
        step_size: The size of the steps: a number, or a function of the number of the step.
        momentum: The share of the step before in each step.

    Returns:
        An Optimizer: three functions of trees.

    >>> from calque.example_libraries import optimizers
    >>> init, update, get_params = optimizers.sm3(0.5, 0.0)
    >>> get_params(update(0, jnp.array([4.0]), init(jnp.array([0.0]))))
    Array([-0.5], dtype=float32)"""
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


# ---------------------------------------------------------------- trees


def l2_norm(tree: Any) -> Array:
    """Gives the Euclidean norm of all leaves of a tree together.

    Args:
        tree: A tree of arrays.

    Returns:
        An array without axes.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.l2_norm({"a": jnp.array([3.0]), "b": jnp.array([4.0])})
    Array(5., dtype=float32)"""
    return jnp.sqrt(sum(jnp.vdot(x, x) for x in tree_leaves(tree)))


def clip_grads(grad_tree: Any, max_norm: ArrayLike) -> Any:
    """Scales gradients down if their norm is above a limit.

    Args:
        grad_tree: A tree of arrays.
        max_norm: The limit.

    Returns:
        The tree of scaled arrays.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.clip_grads([jnp.array([3.0]), jnp.array([4.0])], 1.0)
    [Array([0.6], dtype=float32), Array([0.8], dtype=float32)]"""
    norm = l2_norm(grad_tree)
    return tree_map(lambda g: jnp.where(norm < max_norm, g, g * (max_norm / norm)), grad_tree)


class JoinPoint:
    """A leaf that holds a tree.

    Args:
        subtree: The tree.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.JoinPoint([1, 2]).subtree
    [1, 2]"""

    def __init__(self, subtree: Any):
        self.subtree = subtree

    def __iter__(self) -> Any:
        yield self.subtree


def unpack_optimizer_state(opt_state: OptimizerState) -> Any:
    """Takes the state of an optimizer apart, in a form to store.

    Args:
        opt_state: The state.

    Returns:
        The tree of parameters, with a JoinPoint of its state in place of each.

    >>> from calque.example_libraries import optimizers
    >>> state = optimizers.sgd(0.5)[0]({"w": 1.0})
    >>> optimizers.unpack_optimizer_state(state)["w"].subtree
    1.0"""
    return tree_unflatten(opt_state.tree_def, [JoinPoint(s) for s in _states(opt_state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Puts the state of an optimizer together again.

    Args:
        marked_pytree: What `unpack_optimizer_state` has given.

    Returns:
        The state.

    >>> from calque.example_libraries import optimizers
    >>> init, update, get_params = optimizers.sgd(0.5)
    >>> parts = optimizers.unpack_optimizer_state(init({"w": 1.0}))
    >>> get_params(optimizers.pack_optimizer_state(parts))
    {'w': 1.0}"""
    points, tree = tree_flatten(marked_pytree)
    if not all(isinstance(p, JoinPoint) for p in points):
        raise TypeError(
            "pack_optimizer_state takes a tree of JoinPoints, as unpack_optimizer_state makes it"
        )
    return _packed([p.subtree for p in points], tree)


_guards.guard_public(globals())
