"""Which arrays live, and who holds them."""

import gzip
import sys
import types

import calque as jax
import calque.numpy as jnp
from calque.profiling.memory import held_arrays, live_arrays, memory_profile

from .shared import message


class Model:
    pass


def holders():
    return {id(h.array): h for h in held_arrays()}


def test_arrays_are_found_wherever_they_are_held():
    model = Model()
    model.weights = {"a": [jnp.ones(11)], "b": ((jnp.ones(12),),)}
    module = types.ModuleType("a_module_of_a_test")
    module.table = jnp.ones(13)
    sys.modules["a_module_of_a_test"] = module

    def generator():
        x = jnp.ones(14)
        yield x.shape

    running = generator()
    next(running)
    try:
        sizes = {x.size for x in live_arrays()}
        assert {11, 12, 13, 14} <= sizes
        assert holders()[id(module.table)].holder == "table of the module a_module_of_a_test"
    finally:
        del sys.modules["a_module_of_a_test"]


def test_variables_are_named_with_their_line():
    mine = jnp.ones(15)
    held = holders()[id(mine)]
    assert held.holder.startswith("mine in test_variables") and held.file == __file__
    assert held.line > 0


def test_arrays_that_are_gone_or_deleted_are_not_there():
    x = jnp.ones(16)
    jax.jit(lambda x: x + 1, donate_argnums=0)(x)
    assert x.is_deleted() and id(x) not in holders()
    y = jnp.ones(987)
    del y
    assert 987 not in {a.size for a in live_arrays()}


def test_the_profile_is_one_for_pprof():
    mine = [jnp.ones((7, 17)) for _ in range(3)]
    profile = message(gzip.decompress(memory_profile()))
    strings = [s.decode() for s in profile[6]]
    assert strings[0] == ""
    kinds = [message(k) for k in profile[1]]
    assert [(strings[k[1][0]], strings[k[2][0]]) for k in kinds] == [
        ("allocations", "count"),
        ("space", "bytes"),
    ]
    functions = {f[1][0]: strings[f[2][0]] for f in map(message, profile[5])}
    found = {}
    for sample in map(message, profile[2]):
        stack = [functions[k] for k in sample[1][0]]
        count = sample[2][0]
        found[stack[0]] = (stack[1], count)
    holder, values = found["f32[7,17]"]
    assert holder.startswith("mine in test_the_profile") and values[0] == len(mine)
    locations = {m[1][0] for m in map(message, profile[4])}
    assert locations == set(functions)


class Shy:
    """An object that does not want to be looked at."""

    @property  # type: ignore[misc]
    def __class__(self):
        raise AssertionError("asked for its class")


def test_objects_of_others_are_not_asked():
    shy = Shy()
    x = jnp.ones(3)
    assert any(a is x for a in jax.live_arrays()) and type(shy) is Shy
    assert jax.profile(lambda a: a + 1, x).rows
