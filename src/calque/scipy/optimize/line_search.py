"""A step length that satisfies the strong Wolfe conditions (Nocedal and Wright, algorithms 3.5 and
3.6)."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from calque import numpy as jnp
from calque.core.arrays import Array
from calque.ops.dimension_numbers import Precision
from calque.transforms.functions.autodiff import value_and_grad
from calque.transforms.functions.loops import while_loop

ENOUGH, CURVATURE = 1e-4, 0.9  # the constants of the two Wolfe conditions
ZOOM_STEPS = 30


_Values = TypeVar("_Values", bound=tuple[Any, ...])


class Point(NamedTuple):
    """A step length, with the value and the slope of the function there."""

    step: Any
    value: Any
    slope: Any


class LineSearch(NamedTuple):
    """What a line search found. `status` is 0 for success, 1 when the interval became too small, 3
    when it took too many steps."""

    failed: Any
    evaluations: Any
    step: Any
    value: Any
    gradient: Any
    status: Any


class _Zoom(NamedTuple):
    done: Any
    failed: Any
    count: Any
    low: Point
    high: Point
    last: Point  # the end of the interval that was left last; its slope is not used
    star: Point
    gradient: Any


class _Search(NamedTuple):
    done: Any
    failed: Any
    count: Any
    before: Point
    evaluations: Any
    star: Point
    gradient: Any


def product(a: Array, b: Array) -> Array:
    """The inner product in full precision."""
    return jnp.dot(a, b, precision=Precision.HIGHEST)


def pick(condition: Array, new: _Values, old: _Values) -> _Values:
    """One of two named tuples of numbers or arrays."""
    return type(old)(*(jnp.where(condition, a, b) for a, b in zip(new, old)))


def line_search(
    f: Callable[[Any], Any],
    x: Array,
    direction: Array,
    value: Array,
    gradient: Array,
    value_before: Array | None,
    maxiter: int,
) -> LineSearch:
    """The step from x along `direction`; the first one tried is 1, or less by what the last step
    gained (`value_before`)."""
    dtype = direction.dtype
    slope = jnp.real(product(gradient, direction))
    start = Point(jnp.zeros((), slope.dtype), value, slope)

    def at(step: Any) -> tuple[Point, Any]:
        v, g = value_and_grad(f)(x + step.astype(dtype) * direction)
        d = jnp.real(product(g, direction))
        return Point(step, v.astype(value.dtype), d.astype(slope.dtype)), g.astype(gradient.dtype)

    def too_high(p: Point) -> Any:
        return p.value > value + ENOUGH * p.step * slope

    def flat(p: Point) -> Any:
        return jnp.abs(p.slope) <= -CURVATURE * slope

    first = _first_step(start, value_before)

    def body(s: _Search) -> _Search:
        p, g = at(jnp.where(s.count == 1, first, s.before.step * 2))
        past = too_high(p) | ((p.value >= s.before.value) & (s.count > 1))
        good = flat(p) & ~past
        uphill = (p.slope >= 0) & ~past & ~good
        low, high = pick(past, s.before, p), pick(past, p, s.before)
        zoomed, steps = _zoom(at, too_high, flat, low, high, gradient, past | uphill)
        star = pick(past | uphill, zoomed.star, pick(good, p, s.star))
        gradient_ = jnp.where(past | uphill, zoomed.gradient, jnp.where(good, g, s.gradient))
        failed = s.failed | ((past | uphill) & zoomed.failed)
        return _Search(
            s.done | past | good | uphill,
            failed,
            s.count + 1,
            p,
            s.evaluations + 1 + steps,
            star,
            gradient_,
        )

    no = jnp.zeros((), bool)
    state = _Search(no, no, jnp.asarray(1), start, jnp.asarray(0), start, gradient)
    out = while_loop(lambda s: ~s.done & ~s.failed & (s.count <= maxiter), body, state)
    status = jnp.where(out.failed, 1, jnp.where(out.count > maxiter, 3, 0))
    return LineSearch(
        out.failed | ~out.done,
        out.evaluations,
        _not_tiny(out.star.step),
        out.star.value,
        out.gradient,
        status,
    )


def _first_step(start: Point, value_before: Any) -> Any:
    if value_before is None:
        return jnp.ones((), start.step.dtype)
    guess = 1.01 * 2 * (start.value - value_before) / start.slope
    return jnp.where(guess > 1, 1.0, guess).astype(start.step.dtype)


def _not_tiny(step: Any) -> Any:
    """In single precision steps below 1e-8 would move nothing."""
    if jnp.finfo(step.dtype).bits == 64:
        return step
    return jnp.where(jnp.abs(step) < 1e-8, jnp.sign(step) * np.asarray(1e-8, step.dtype), step)


def _zoom(
    at: Any, too_high: Any, flat: Any, low: Point, high: Point, gradient: Any, wanted: Any
) -> tuple[_Zoom, Any]:
    """The interval between two points narrowed until a point in it is good; and the number of
    evaluations."""
    threshold = 1e-10 if jnp.finfo(low.step.dtype).bits == 64 else 1e-5

    def body(s: _Zoom) -> _Zoom:
        failed = s.failed | (jnp.abs(s.high.step - s.low.step) <= threshold)
        p, g = at(_trial(s))
        past = too_high(p) | (p.value >= s.low.value)
        good = flat(p) & ~past
        turn = (p.slope * (s.high.step - s.low.step) >= 0) & ~past & ~good
        last = pick(past | turn, s.high, s.low)
        high = pick(past, p, pick(turn, s.low, s.high))
        low = pick(past | good, s.low, p)
        last = pick(good, s.last, last)
        star = pick(good, p, s.star)
        count = s.count + 1
        return _Zoom(
            s.done | good,
            failed | (count >= ZOOM_STEPS),
            count,
            low,
            high,
            last,
            star,
            jnp.where(good, g, s.gradient),
        )

    middle = Point((low.step + high.step) / 2, (low.value + high.value) / 2, low.slope)
    no = jnp.zeros((), bool)
    star = Point(jnp.ones_like(low.step), low.value, low.slope)
    state = _Zoom(no, no, jnp.asarray(0), low, high, middle, star, gradient)
    out = while_loop(lambda s: ~s.done & ~s.failed & wanted, body, state)
    return out, out.count


def _trial(s: _Zoom) -> Any:
    """The minimum of the cubic, else of the parabola, through what is known, else the middle of the
    interval."""
    width = jnp.abs(s.high.step - s.low.step)
    left, right = jnp.minimum(s.low.step, s.high.step), jnp.maximum(s.low.step, s.high.step)

    def within(x: Any, margin: Any) -> Any:
        return (x > left + margin * width) & (x < right - margin * width)

    cubic, parabola = _cubic_minimum(s.low, s.high, s.last), _parabola_minimum(s.low, s.high)
    use_cubic = (s.count > 0) & within(cubic, 0.2)
    middle = (s.low.step + s.high.step) / 2
    return jnp.where(use_cubic, cubic, jnp.where(within(parabola, 0.1), parabola, middle))


def _cubic_minimum(a: Point, b: Point, c: Point) -> Any:
    """Of a + slope x + B x^2 + A x^3 through three values and the slope at the first; NaN where
    there is none."""
    db, dc = b.step - a.step, c.step - a.step
    rb, rc = b.value - a.value - a.slope * db, c.value - a.value - a.slope * dc
    denominator = (db * dc) ** 2 * (db - dc)
    cubed = (dc**2 * rb - db**2 * rc) / denominator
    squared = (db**3 * rc - dc**3 * rb) / denominator
    return a.step + (-squared + jnp.sqrt(squared * squared - 3 * cubed * a.slope)) / (3 * cubed)


def _parabola_minimum(a: Point, b: Point) -> Any:
    d = b.step - a.step
    curvature = (b.value - a.value - a.slope * d) / d**2
    return a.step - a.slope / (2 * curvature)
