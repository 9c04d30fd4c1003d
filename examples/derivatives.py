"""Derivatives of every kind, and functions of one thing made functions of many.

    python examples/derivatives.py

`grad` gives a function back, so it can be taken again; `jacfwd` and `jacrev` give whole matrices,
one column or one row at a time; `jvp` and `vjp` multiply by them without making them; `vmap` turns
a function of one point into one of many. Each result is compared with what calculus says."""

import numpy as np
from pictures import Picture
from terminal import options, report

import calque as jax
import calque.numpy as jnp


def spiral(t):
    """A curve in the plane."""
    return jnp.stack([t * jnp.cos(t), t * jnp.sin(t)])


def curvature(t):
    """How much a curve bends: its first and second derivatives, taken along the one number t."""
    velocity = jax.jacfwd(spiral)
    (x1, y1), (x2, y2) = velocity(t), jax.jacfwd(velocity)(t)
    return (x1 * y2 - y1 * x2) / (x1**2 + y1**2) ** 1.5


def energy(x):
    """A function of many numbers: a chain of springs that are not quite linear."""
    stretch = x[1:] - x[:-1]
    return jnp.sum(stretch**2 + 0.1 * stretch**4) + jnp.sum(jnp.cos(x))


def largest(a, b):
    return float(jnp.max(jnp.abs(a - b)))


def main(small: bool, picture: str) -> None:
    points = jnp.linspace(-4.0, 4.0, 41 if small else 401)

    # The derivatives of tanh, one made from the other, each at all points at once.
    functions = [jnp.tanh]
    for _ in range(3):
        functions.append(jax.grad(functions[-1]))
    values = [jax.jit(jax.vmap(f))(points) for f in functions]
    t = np.tanh(points)
    by_hand = [t, 1 - t**2, -2 * t * (1 - t**2), (6 * t**2 - 2) * (1 - t**2)]

    # The bend of a spiral: known in closed form.
    bend = jax.jit(jax.vmap(curvature))(points)
    bend_by_hand = (2 + points**2) / (1 + points**2) ** 1.5

    # A matrix of second derivatives, and its product with a vector without the matrix:
    # the derivative, along v, of the gradient.
    x = jax.random.normal(jax.random.key(0), (30,))
    v = jax.random.normal(jax.random.key(1), (30,))
    whole = jax.jit(jax.hessian(energy))(x)
    _, product = jax.jvp(jax.grad(energy), (x,), (v,))

    # Gradients for each row of a batch: vmap of grad, where the gradient of a sum is their sum.
    rows = jax.random.normal(jax.random.key(2), (8, 30))
    for_each = jax.jit(jax.vmap(jax.grad(energy)))(rows)
    for_all = jax.jit(jax.grad(lambda rows: jnp.sum(jax.vmap(energy)(rows))))(rows)

    drawn = Picture("tanh and its first three derivatives", "x")
    for order, y in enumerate(values):
        drawn.line(points, y, "tanh" + "'" * order)
    drawn.save(picture)
    report(
        picture,
        error_of_three_derivatives=max(largest(a, b) for a, b in zip(values, by_hand)),
        error_of_the_curvature=largest(bend, bend_by_hand),
        asymmetry_of_the_hessian=largest(whole, whole.T),
        error_of_the_product=largest(whole @ v, product),
        difference_of_the_gradients=largest(for_each, for_all),
        size_of_the_hessian=float(jnp.max(jnp.abs(whole))),
    )


if __name__ == "__main__":
    main(*options(__doc__, "derivatives.svg"))
