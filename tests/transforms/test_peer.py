"""Transformed programs beside JAX's: the same numbers and the same printed form."""

from types import SimpleNamespace

import numpy as np
import pytest

import calque.numpy as jnp
from calque.transforms.devices import collective_functions
from calque.transforms.functions.associative_scan import associative_scan
from calque.transforms.functions.autodiff import grad, jvp
from calque.transforms.functions.branches import cond, switch
from calque.transforms.functions.custom_jvp import custom_jvp
from calque.transforms.functions.custom_vjp import custom_vjp
from calque.transforms.functions.jacobian import hessian, jacfwd, jacrev
from calque.transforms.functions.loops import fori_loop, map_, scan, while_loop
from calque.transforms.functions.remat import checkpoint
from calque.transforms.functions.shapes import make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import close, reference_backend  # noqa: F401

jax = pytest.importorskip("jax")
pytestmark = [pytest.mark.peer, pytest.mark.usefixtures("reference_backend")]


Ours = SimpleNamespace(
    numpy=jnp,
    grad=grad,
    jvp=jvp,
    vmap=vmap,
    jit=jit,
    make_jaxpr=make_jaxpr,
    hessian=hessian,
    jacfwd=jacfwd,
    jacrev=jacrev,
    checkpoint=checkpoint,
    custom_jvp=custom_jvp,
    custom_vjp=custom_vjp,
    lax=SimpleNamespace(
        cond=cond,
        switch=switch,
        scan=scan,
        while_loop=while_loop,
        fori_loop=fori_loop,
        map=map_,
        associative_scan=associative_scan,
        psum=collective_functions.psum,
        all_gather=collective_functions.all_gather,
        axis_index=collective_functions.axis_index,
    ),
)
X = np.array([0.5, -0.2, 0.9], np.float32)
W = np.arange(9, dtype=np.float32).reshape(3, 3) / 9


def loop(j, x):
    return j.lax.scan(lambda c, y: (j.numpy.sin(c) * y, c.sum()), x, j.numpy.stack([x, x * 2]))


def branch(j, x):
    return j.lax.cond(x.sum() > 0, lambda x: j.numpy.sin(x), lambda x: x * x * x, x)


def rule(j):
    f = j.custom_jvp(lambda x: j.numpy.sin(x))
    f.defjvp(lambda p, t: (f(p[0]), t[0] * 2))
    return f


def rules(j):
    h = j.custom_vjp(lambda x, y: j.numpy.sin(x) * y)
    h.defvjp(lambda x, y: (h(x, y), (x, y)), lambda r, ct: (ct * r[1] * 3, ct * r[0]))
    return h


PROGRAMS = {
    "grad": lambda j: j.grad(lambda x: (j.numpy.tanh(W @ x) ** 2).sum())(X),
    "grad of jit": lambda j: j.grad(j.jit(lambda x: j.numpy.exp(j.numpy.sin(x)).prod()))(X),
    "jit of grad of vmap": lambda j: j.jit(
        j.grad(lambda w: j.vmap(lambda r: j.numpy.tanh(r @ X))(w).sum())
    )(W),
    "hessian": lambda j: j.hessian(lambda x: (j.numpy.sin(x) * x**3).sum() ** 2)(X),
    "jacobians": lambda j: (j.jacfwd(lambda x: W @ x * x)(X), j.jacrev(lambda x: W @ x * x)(X)),
    "scan": lambda j: j.grad(lambda x: loop(j, x)[0].sum() + loop(j, x)[1].sum())(X),
    "scan, batched": lambda j: j.vmap(j.grad(lambda x: loop(j, x)[0].sum()))(W),
    "cond": lambda j: (
        j.grad(lambda x: branch(j, x).sum())(X),
        j.vmap(lambda x: branch(j, x))(W - 0.4),
    ),
    "cond by lane": lambda j: j.vmap(lambda x: j.lax.cond(x > 0, j.numpy.sin, j.numpy.cos, x))(X),
    "switch": lambda j: j.vmap(lambda i: j.lax.switch(i, [lambda: 1.0, lambda: 2.0, lambda: 3.0]))(
        np.array([2, 0, 9])
    ),
    "while, forward": lambda j: j.jvp(
        lambda x: j.lax.while_loop(lambda c: c < 9, lambda c: c * c + x, x), (1.5,), (1.0,)
    ),
    "while, batched": lambda j: j.vmap(
        lambda x: j.lax.while_loop(lambda c: c < 9, lambda c: c * 2 + 1, x)
    )(X),
    "fori": lambda j: j.grad(lambda x: j.lax.fori_loop(0, 4, lambda i, c: c * x + i, x).sum())(X),
    "map": lambda j: j.lax.map(lambda r: r @ r, W, batch_size=2),
    "associative_scan": lambda j: j.lax.associative_scan(
        lambda a, b: a @ b, j.numpy.stack([W, W + 1, W * 2, W])
    ),
    "custom_jvp": lambda j: j.vmap(j.grad(rule(j)))(X),
    "custom_vjp": lambda j: j.grad(
        lambda x, y: j.vmap(rules(j), (0, None))(x, y).sum(), argnums=(0, 1)
    )(X, 2.0),
    "checkpoint": lambda j: j.grad(
        lambda x: j.checkpoint(lambda x: j.numpy.sin(j.numpy.sin(x) @ W))(x).sum()
    )(X),
    "psum": lambda j: j.vmap(
        lambda x: x / j.lax.psum(x, "i") + j.lax.axis_index("i"), axis_name="i"
    )(X),
    "grad of psum": lambda j: j.vmap(j.grad(lambda x: j.lax.psum(x * x, "i") * x), axis_name="i")(
        X
    ),
    "all_gather": lambda j: j.vmap(lambda x: j.lax.all_gather(x, "i"), axis_name="i")(W),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_numbers(name):
    close(PROGRAMS[name](Ours), jax.tree.map(np.asarray, PROGRAMS[name](jax)), 2e-5, 1e-6)


PRINTED = {
    "cond": lambda j: j.make_jaxpr(lambda x: j.lax.cond(x > 0, lambda x: x, lambda x: -x, x))(1.0),
    "cond with constants": lambda j: j.make_jaxpr(
        lambda x: j.lax.cond(True, lambda y: y + X, lambda y: y + W[0], x)
    )(X),
    "switch": lambda j: j.make_jaxpr(
        lambda x: j.lax.switch(x, [lambda: 10, lambda: 20, lambda: 30])
    )(1),
    "scan": lambda j: j.make_jaxpr(lambda c, xs: j.lax.scan(lambda c, x: (c * x, c), c, xs))(
        X[0], X
    ),
    "scan with constants": lambda j: j.make_jaxpr(
        lambda c: j.lax.scan(lambda c, _: (c + X, None), c, None, length=3)
    )(X),
    "fori": lambda j: j.make_jaxpr(lambda x: j.lax.fori_loop(0, 3, lambda i, c: c * 2, x))(1.0),
    "fori, traced": lambda j: j.make_jaxpr(
        lambda x, n: j.lax.fori_loop(0, n, lambda i, c: c * 2, x)
    )(1.0, 3),
    "while": lambda j: j.make_jaxpr(
        lambda x: j.lax.while_loop(lambda c: c < 3, lambda c: c * 2, x)
    )(1.0),
    "psum": lambda j: j.make_jaxpr(lambda x: j.lax.psum(x, "i"), axis_env=[("i", 4)])(X),
    "all_gather": lambda j: j.make_jaxpr(lambda x: j.lax.all_gather(x, "i"), axis_env=[("i", 4)])(
        X
    ),
    "custom_jvp": lambda j: j.make_jaxpr(rule(j))(1.0),
    "custom_vjp": lambda j: j.make_jaxpr(rules(j))(1.0, 2.0),
    "checkpoint": lambda j: j.make_jaxpr(j.checkpoint(lambda x: j.numpy.sin(x)))(1.0),
}


@pytest.mark.parametrize("name", PRINTED)
def test_same_printed_form(name):
    def flat(closed):
        return " ".join(str(closed).replace(";", " ; ").split())

    def without(text):
        return text.replace(" ; ", " ").replace(". let", " let")

    assert without(flat(PRINTED[name](Ours))) == without(flat(PRINTED[name](jax)))
