"""What operations do to random keys, as values and by operation."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax, random
from calque.core.avals import ShapedArray
from calque.core.jaxprs import Jaxpr
from calque.experimental.key_reuse._core import (
    Forward,
    KeyReuseSignature,
    Sink,
    Source,
    jaxpr_type_signature,
    key_reuse_signatures,
)
from calque.transforms.functions.key_signatures import of_operation

KEY = random.key(0)
KEYS = random.split(KEY, 4)


def test_signatures_are_values():
    mask = np.array([True, False])
    assert Sink(0, mask) == Sink(0, mask) != Sink(0) == Sink(0, np.ones(2, bool))
    assert Sink(0) != Source(0) and hash(Sink(0, True)) == hash(Sink(0))
    mask[1] = True
    assert Sink(0) == Sink(0, mask)
    with pytest.raises(ValueError, match="cannot be changed"):
        Sink(0).idx = 1
    both = KeyReuseSignature(Source(0), Sink(1), Sink(0), Forward(0, 1))
    assert repr(both) == "KeyReuseSignature(Sink(0), Sink(1), Source(0), Forward(0, 1))"
    assert both == KeyReuseSignature(*reversed(both.parts)) and hash(both) == hash(
        KeyReuseSignature(*reversed(both.parts))
    )
    with pytest.raises(ValueError, match="made of Sink"):
        KeyReuseSignature(1)


def test_tables_and_programs_agree():
    jaxpr = jax.make_jaxpr(random.split)(KEY).jaxpr
    assert isinstance(jaxpr, Jaxpr)
    (eqn,) = jaxpr.eqns
    assert jaxpr_type_signature(jaxpr) == key_reuse_signatures[eqn.primitive]


def of(f, *args):
    """The signature of the one operation that `f` records."""
    (e,) = jax.make_jaxpr(f)(*args).eqns
    ins, outs = [a.aval for a in e.invars], [v.aval for v in e.outvars]
    return of_operation(e.primitive, ins, outs, e.params)


def barrier(*keys):
    return lax.optimization_barrier(keys)


@pytest.mark.parametrize(
    "f, args, want",
    [
        (lambda k: lax.slice(k, (1,), (3,)), (KEYS,), [Sink(0, [0, 1, 1, 0]), Source(0)]),
        (lambda k: lax.slice(k, (0,), (4,), (2,)), (KEYS,), [Sink(0, [1, 0, 1, 0]), Source(0)]),
        (lambda k: lax.rev(k, (0,)), (KEYS,), [Sink(0), Source(0)]),
        (lambda k: lax.reshape(k, (2, 2)), (KEYS,), [Forward(0, 0)]),
        (lambda a, b: lax.concatenate([a, b], 0), (KEYS, KEYS), [Sink(0), Sink(1), Source(0)]),
        (lambda p, a, b: lax.select_n(p, a, b), (True, KEY, KEY), [Sink(1), Sink(2), Source(0)]),
        (
            lambda a, b: lax.optimization_barrier((a, b)),
            (KEY, KEYS),
            [Forward(0, 0), Forward(1, 1)],
        ),
        (lambda a, b: lax.eq_p.bind(a, b), (KEY, KEY), []),
        (lambda x: jnp.sin(x), (1.0,), []),
    ],
)
def test_signatures_of_operations(f, args, want):
    assert of(f, *args) == KeyReuseSignature(*want)


def test_words_of_keys_are_used_by_the_key():
    words = random.key_data(KEYS)
    found = of(lambda w: lax.slice(w, (1, 0), (2, 2)), words)
    assert found == KeyReuseSignature(Sink(0, [False, True, False, False]), Source(0))


def test_what_is_not_known_uses_up_every_typed_key():
    mine = jax.extend.core.Primitive("mine")
    number = ShapedArray((), np.float32)
    found = of_operation(mine, [number, jax.typeof(KEY), jax.typeof(KEYS)], [number], {})
    assert found == KeyReuseSignature(Sink(1), Sink(2))
