"""Schedules of optimizers: the size of a step by its number."""

from collections.abc import Callable
from typing import Any

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.core.types import ArrayLike

Schedule = Callable[[Any], Any]
Number = float | Array
Rate = Number | Schedule


def constant(step_size: Number) -> Schedule:
    """Makes a schedule of steps of one size.

    Args:
        step_size: The size of the steps: a number.

    Returns:
        A function of the number of the step.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.constant(0.5)(3)
    0.5"""
    return lambda i: step_size


def exponential_decay(step_size: Number, decay_steps: Number, decay_rate: Number) -> Schedule:
    """Makes a schedule of steps that shrink by a factor.

    Args:
        step_size: The size of the steps: a number.
        decay_steps: After how many steps.
        decay_rate: The factor.

    Returns:
        A function of the number of the step.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.exponential_decay(1.0, 10, 0.5)(20)
    0.25"""
    return lambda i: step_size * decay_rate ** (i / decay_steps)


def inverse_time_decay(
    step_size: Number, decay_steps: Number, decay_rate: Number, staircase: bool = False
) -> Schedule:
    """Makes a schedule of steps that are divided by 1 + decay_rate * i / decay_steps.

    Args:
        step_size: The size of the steps: a number.
        decay_steps: After how many steps `decay_rate` is added.
        decay_rate: What is added.
        staircase: Whether that only happens after each `decay_steps`.

    Returns:
        A function of the number of the step.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.inverse_time_decay(1.0, 10, 1.0)(10)
    0.5"""
    turns = (lambda i: jnp.floor(i / decay_steps)) if staircase else (lambda i: i / decay_steps)
    return lambda i: step_size / (1 + decay_rate * turns(i))


def polynomial_decay(
    step_size: Number, decay_steps: Number, final_step_size: Number, power: float = 1.0
) -> Schedule:
    """Makes a schedule of steps that go from one size to another.

    Args:
        step_size: The size of the steps: a number.
        decay_steps: In how many steps.
        final_step_size: The last size.
        power: The power of what is left that it follows.

    Returns:
        A function of the number of the step.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.polynomial_decay(1.0, 10, 0.0)(5)
    Array(0.5, dtype=float32, weak_type=True)"""

    def schedule(i: Any) -> Any:
        left = 1 - jnp.minimum(i, decay_steps) / decay_steps
        return left**power * (step_size - final_step_size) + final_step_size

    return schedule


def piecewise_constant(boundaries: ArrayLike, values: ArrayLike) -> Schedule:
    """Makes a schedule of steps that have one size up to each boundary.

    Args:
        boundaries: The numbers of steps at which the size changes.
        values: The sizes, one more than boundaries.

    Returns:
        A function of the number of the step.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.piecewise_constant([10], [1.0, 0.5])(11)
    Array(0.5, dtype=float32)"""
    boundaries, values = jnp.array(boundaries), jnp.array(values)
    if not boundaries.ndim == values.ndim == 1:
        raise ValueError("boundaries and values must be sequences")
    if boundaries.shape[0] != values.shape[0] - 1:
        raise ValueError("boundaries length must be one shorter than values length")
    return lambda i: values[jnp.sum(i > boundaries)]


def make_schedule(scalar_or_schedule: Rate) -> Schedule:
    """Gives a schedule: the given one, or one of steps of one size.

    Args:
        scalar_or_schedule: A function of the number of the step, or a number.

    Returns:
        A function of the number of the step.

    >>> from calque.example_libraries import optimizers
    >>> optimizers.make_schedule(0.5)(3)
    0.5"""
    if callable(scalar_or_schedule):
        return scalar_or_schedule
    if jnp.ndim(scalar_or_schedule) == 0:
        return constant(scalar_or_schedule)
    raise TypeError(
        f"a step size must be a number or a function of the step, got {type(scalar_or_schedule)}"
    )
