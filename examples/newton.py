"""Newton's method finds the bottom of a bent valley, where gradient descent crawls.

    python examples/newton.py

`hessian` gives the second derivatives, `linalg.solve` the step; the search for a step that goes
down is an ordinary Python `while` over traced values, which jit converts when it is asked to."""

import functools

from pictures import Picture
from terminal import Progress, options, report

import calque as jax
import calque.numpy as jnp


def valley(point):
    """Rosenbrock's function: steep across the valley, nearly flat along it, with 0 at (1, 1)."""
    x, y = point
    return (1 - x) ** 2 + 100 * (y - x**2) ** 2


@functools.partial(jax.jit, control_flow="convert")
def newton_step(point):
    """To the bottom of the parabola that fits the function here, or a part of the way."""
    gradient, curvature = jax.grad(valley)(point), jax.hessian(valley)(point)
    direction = jnp.linalg.solve(curvature, -gradient)
    size = 1.0
    while (valley(point + size * direction) > valley(point)) & (size > 1e-4):
        size = size / 2
    return point + size * direction


@jax.jit
def descent_step(point):
    return point - 0.001 * jax.grad(valley)(point)


def walk(step, start, steps, doing):
    """The points on the way from `start`."""
    path = [start]
    for _ in (bar := Progress(steps, doing)):
        path.append(step(path[-1]))
        bar.note = f"f = {float(valley(path[-1])):.3g}"
    return jnp.stack(path)


def main(small: bool, picture: str) -> None:
    start = jnp.array([-1.2, 1.0])
    newton = walk(newton_step, start, 30, "Newton")
    descent = walk(descent_step, start, 200 if small else 2000, "descent")
    values = jax.vmap(valley)(newton)
    needed = int(jnp.argmax(values < 1e-6))

    drawn = Picture("The bottom of a bent valley", "x", "y")
    xs, ys = jnp.linspace(-1.6, 1.6, 160), jnp.linspace(-0.6, 1.8, 120)
    over_x = jax.vmap(valley)  # a row of points, then all rows
    grid = jnp.stack(jnp.meshgrid(xs, ys), axis=-1)
    drawn.field(jnp.log(1 + jax.vmap(over_x)(grid)), (-1.6, 1.6), (-0.6, 1.8))
    drawn.line(*newton.T, "Newton")
    drawn.line(*descent.T, "gradient descent")
    drawn.save(picture)
    report(
        picture,
        steps_of_newton=needed,
        x=float(newton[-1, 0]),
        y=float(newton[-1, 1]),
        size_of_the_gradient=float(jnp.max(jnp.abs(jax.grad(valley)(newton[-1])))),
        left_by_descent=float(valley(descent[-1])),
    )


if __name__ == "__main__":
    main(*options(__doc__, "newton.svg"))
