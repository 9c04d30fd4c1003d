import gc
import re

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.experimental.jet import jet
from calque.machine.frozen import is_frozen

kept = []
seen = None


@pytest.fixture(autouse=True)
def _checking():
    with calque.check_tracer_leaks():
        yield
    kept.clear()


def leaking(x):
    kept.append(x * 2)
    return x


def by_name(x):
    global seen
    seen = jnp.sin(x)
    return x


@pytest.mark.parametrize(
    "call",
    [
        lambda: calque.jit(leaking)(1.0),
        lambda: calque.make_jaxpr(leaking)(1.0),
        lambda: calque.vmap(leaking)(jnp.ones(2)),
        lambda: calque.jvp(leaking, (1.0,), (1.0,)),
        lambda: calque.grad(leaking)(1.0),
        lambda: calque.linearize(leaking, 1.0),
        lambda: lax.scan(lambda c, x: (leaking(c), x), 1.0, jnp.ones(3)),
        lambda: lax.cond(True, leaking, lambda x: x, 1.0),
        lambda: jet(leaking, (1.0,), ((1.0,),)),
    ],
)
def test_a_value_in_a_list(call):
    with pytest.raises(
        calque.errors.UnexpectedTracerError,
        match=r"Leaked trace \w+: a traced value of type f32\[\]",
    ):
        call()


@pytest.mark.parametrize("freeze", [gc.freeze, gc.unfreeze])
def test_the_holder_is_named(freeze):
    """Whether or not the program has frozen what it has."""
    global seen
    freeze()
    frozen = is_frozen()
    with pytest.raises(
        calque.errors.UnexpectedTracerError, match=r"function by_name .* by the name or key 'seen'"
    ):
        calque.jit(by_name)(1.0)
    assert is_frozen() == frozen
    seen = None


def test_what_does_not_leak():
    x = jnp.ones(3)

    def loss(x):
        return jnp.sum(jnp.sin(x) ** 3)

    calque.jit(lambda x: {"a": x, "b": (x, x * 2)})(x)
    calque.grad(lambda x: (loss(x), {"aux": x * 2}), has_aux=True)(x)
    calque.jvp(lambda x: (loss(x), x), (x,), (x,), has_aux=True)
    calque.hessian(loss)(x)
    calque.vmap(calque.vmap(lambda x, y: x * y, (None, 0)), (0, None))(x, x)
    calque.jit(calque.grad(calque.checkpoint(loss)))(x)
    calque.jit(
        calque.vmap(calque.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: jnp.sin(c) * x, x)))
    )(x)
    lax.cond(x[0] > 0, lambda: x, lambda: x * 2)
    jet(jnp.sin, (x,), ((x, x),))


def test_the_chain_of_holders_is_told():
    class Keeper:
        def __init__(self, kept):
            self.kept = kept

    keeper = Keeper({})

    def leaking(x):
        def later():
            return x

        keeper.kept["hi"] = [later]
        return x

    with pytest.raises(calque.errors.UnexpectedTracerError) as caught:
        calque.vmap(leaking)(np.arange(3))
    words = r"This BatchTracer with object id \d+ was created on line:\n  .*\n(.*\n)*"
    steps = r"<BatchTracer \d+> is referred to by <cell \d+>\n(.*\n)*.*\(later\)\n.*"
    places = r"<list \d+>\[0\]\n.*<dict \d+>\['hi'\]\n.*<Keeper \d+>"
    assert re.search(words + steps + places, str(caught.value))
