"""Programs that transformations make are linear in the length of what they are given, up to ten
thousand equations."""

import pytest

import calque
import calque.numpy as jnp
from calque.core.jaxprs import subjaxprs
from calque.transforms.functions.shapes import make_jaxpr

X = jnp.ones(4)
PAIRS = jnp.ones((2, 2, 4))


def chain(n):
    def f(x):
        for _ in range(n // 2):
            x = jnp.sin(x) * 1.5
        return jnp.sum(x)

    return f


def wide(n):
    def f(x):
        total = 0.0
        for y in [x * (i + 1.0) for i in range(n // 4)]:
            total = total + jnp.sin(y) * x
        return jnp.sum(total)

    return f


TRANSFORMED = {
    "grad": lambda f: calque.grad(f),
    "jvp": lambda f: lambda x: calque.jvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: calque.linearize(f, x)[1](x),
    "nested vmap": lambda f: lambda x: calque.vmap(calque.vmap(calque.grad(f)))(PAIRS * x),
    "checkpoint": lambda f: calque.grad(calque.checkpoint(f)),
    "vmap of checkpoint": lambda f: (
        lambda x: calque.vmap(calque.vmap(calque.grad(calque.checkpoint(f))))(PAIRS * x)
    ),
    "grad of grad": lambda f: calque.grad(lambda x: calque.grad(f)(x).sum()),
}


def size(f, x):
    """Equations at any depth."""
    total, todo = 0, [make_jaxpr(f)(x).jaxpr]
    while todo:
        for e in todo.pop().eqns:
            total += 1
            todo += subjaxprs(e.params)
    return total


@pytest.mark.parametrize("how", TRANSFORMED)
@pytest.mark.parametrize("make", [chain, wide])
def test_equations_per_equation(make, how):
    transform = TRANSFORMED[how]
    a, b, c = (size(transform(make(n)), X) for n in (100, 200, 400))
    assert c - b == 2 * (b - a)  # exactly linear
    assert c <= 10 * 400


@pytest.mark.parametrize("make", [chain, wide])
def test_ten_thousand_equations(make):
    """Neither tracing nor differentiating nor compiling recurses over the program."""
    f = make(10_000)
    assert size(f, X) >= 10_000
    assert 20_000 <= size(calque.grad(f), X) <= 40_000
    assert size(calque.vmap(f), PAIRS[0]) <= 20_000


def test_ten_thousand_equations_compile():
    steps = 5_000

    def f(x):
        for _ in range(steps):
            x = x * 0.5 + 1.0
        return x

    compiled = calque.jit(f).lower(X).compile()
    assert float(compiled(X)[0]) == 2.0
