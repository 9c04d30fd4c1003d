"""Constants of NumPy in programs: their values, whatever their dtype, layout and way in; and what
users' rules are given."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.arrays import ArrayImpl
from calque.core.trace_state import Tracer

CONSTANTS = {
    "float64": np.array([1.0, 3.0]),
    "int64": np.arange(3),
    "uint64": np.array([1, 2, 3], np.uint64),
    "complex128": np.array([1 + 2j, 3]),
    "bool": np.array([True, False, True]),
    "big endian": np.arange(3, dtype=">i4"),
    "big endian doubles": np.arange(3, dtype=">f8"),
    "every second": np.arange(6.0)[::2],
    "backwards": np.arange(4, dtype=np.float32)[::-1],
    "columns first": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
    "broadcast": np.broadcast_to(np.float64(3), (2, 2)),
    "unaligned": np.frombuffer(b"_" + np.arange(3.0).tobytes(), np.float64, offset=1),
    "rank 0": np.array(3.5),
    "empty": np.zeros((0, 3)),
    "scalar": np.float64(1.5),
    "integer scalar": np.int64(7),
    "half": np.float16(2),
    "number": 2,
    "real number": 2.5,
    "truth": True,
}


def _loop(step, init):
    return lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, step()), (0, init))[1]


WAYS = {
    "result": lambda c: calque.jit(lambda: c)(),
    "result of a call inside": lambda c: calque.jit(lambda: calque.jit(lambda: c)())(),
    "argument": lambda c: calque.jit(lambda x: x)(c),
    "default": lambda c: calque.jit(lambda x, y=c: y)(1.0),
    "static": lambda c: calque.jit(lambda x, y: c, static_argnums=1)(1.0, 3),
    "branch": lambda c: calque.jit(lambda p: lax.cond(p, lambda: c, lambda: c))(True),
    "switch": lambda c: calque.jit(lambda i: lax.switch(i, [lambda: c] * 3))(1),
    "slices of scan": lambda c: lax.scan(lambda s, _: (s, c), 0, None, length=2)[1][1],
    "carry of while": lambda c: calque.jit(lambda: _loop(lambda: c, c))(),
    "remat": lambda c: calque.checkpoint(lambda x: c)(1.0),
    "jvp": lambda c: calque.jvp(lambda x: c, (1.0,), (1.0,))[0],
    "vjp": lambda c: calque.vjp(lambda x: c, 1.0)[0],
    "vmap": lambda c: calque.vmap(lambda x: c)(jnp.ones(2))[1],
    "vmap without axis": lambda c: calque.vmap(lambda x: c, out_axes=None)(jnp.ones(2)),
    "captured": lambda c: calque.jit(lambda p: jnp.where(p, c, c))(True),
    "program": lambda c: calque.extend.core.jaxpr_as_fun(calque.make_jaxpr(lambda: c)())()[0],
    "asarray": jnp.asarray,
    "device_put": calque.device_put,
}


@pytest.mark.parametrize("x64", (False, True))
@pytest.mark.parametrize("way", WAYS)
def test_numpy_constants_keep_their_values(way, x64):
    with calque.enable_x64(x64):
        for name, c in CONSTANTS.items():
            got = WAYS[way](c)
            dtype = calque.dtypes.canonicalize_dtype(np.asarray(c).dtype)
            assert isinstance(got, ArrayImpl) or way == "program", name
            assert np.asarray(got).dtype in (dtype, np.asarray(c).dtype), name
            np.testing.assert_array_equal(np.asarray(got), np.asarray(c).astype(dtype), name)


def test_constants_are_the_values_at_the_time_of_tracing():
    c = np.ones(3, np.float32)
    program = calque.make_jaxpr(lambda x: x + c)(1.0)
    compiled = calque.jit(lambda x: x + c).lower(1.0).compile()
    c[:] = 7
    assert calque.extend.core.jaxpr_as_fun(program)(1.0)[0].tolist() == [2, 2, 2]
    assert compiled(1.0).tolist() == [2, 2, 2]


def _kinds(tree):
    """Arrays, tracers, or what else rules were given."""
    leaves = calque.tree.leaves(tree)
    return {"value" if isinstance(x, (ArrayImpl, Tracer)) else type(x).__name__ for x in leaves}


SECOND = (2, 2.0, True, np.float32(2), np.array(2), np.array(2.0), jnp.asarray(2), jnp.float32(2))
USES = {
    "grad": lambda f, x: calque.grad(f)(x),
    "jit of grad": lambda f, x: calque.jit(calque.grad(f))(x),
    "grad of jit": lambda f, x: calque.grad(calque.jit(f))(x),
    "vmap of grad": lambda f, x: calque.vmap(calque.grad(f))(jnp.asarray(x)[None])[0],
    "grad of scan": lambda f, x: calque.grad(
        lambda x: lax.scan(lambda s, _: (f(s), None), x, None, length=1)[0]
    )(x),
    "vjp": lambda f, x: calque.vjp(f, x)[1](np.float32(1))[0],
    "vjp of a number": lambda f, x: calque.vjp(f, x)[1](1.0)[0],
    "grad of remat": lambda f, x: calque.grad(calque.checkpoint(f))(x),
}


@pytest.mark.parametrize("use", USES)
def test_rules_are_given_arrays(use):
    seen = set()

    @calque.custom_vjp
    def h(x, y):
        return x * y

    def fwd(x, y):
        seen.update(_kinds((x, y)))
        return x * y, (x, y, x > 1, np.ones(2), np.bool_(True))

    def bwd(res, ct):
        seen.update(_kinds((res, ct)))
        assert res[1].dtype is not None and ct.astype("float32") is not None
        return ct * res[1], None

    h.defvjp(fwd, bwd)

    @calque.custom_jvp
    def k(x, y):
        return x * y

    @k.defjvp
    def rule(primals, tangents):
        seen.update(_kinds((primals, [t for t in tangents if t.dtype != calque.dtypes.float0])))
        return k(*primals), primals[1] * tangents[0]

    for y in SECOND:
        for x in (3.0, np.float32(3), jnp.float32(3)):
            for f in (h, k):
                got = USES[use](lambda x, f=f, y=y: f(x, y), x)
                assert isinstance(got, ArrayImpl)
                assert float(got) == float(y)
    assert seen == {"value"}


@pytest.mark.parametrize("use", ("grad", "jit of grad", "grad of jit", "vmap of grad"))
def test_residuals_that_are_no_arrays_are_handed_on_as_they_are(use):
    given = (True, False, 3, 2.5, "name", None)
    found = []

    @calque.custom_vjp
    def h(x):
        return x * 2

    h.defvjp(lambda x: (x * 2, (given, x)), lambda res, ct: (found.append(res[0]), (ct * 2,))[1])
    assert float(USES[use](h, 3.0)) == 2
    assert found and all(f == given and [*map(type, f)] == [*map(type, given)] for f in found)


def test_batching_rules_are_given_arrays():
    seen = []

    @calque.custom_batching.custom_vmap
    def f(x, y):
        return x * y

    @f.def_vmap
    def rule(size, batched, x, y):
        seen.append((x, y))
        return x * y, True

    assert calque.vmap(lambda x: f(x, 2.0))(jnp.arange(3.0)).tolist() == [0, 2, 4]
    assert calque.vmap(calque.jit(lambda x: f(x, 2.0)))(jnp.arange(3.0)).tolist() == [0, 2, 4]
    assert _kinds(seen) == {"value"}


def test_shapes_are_no_constants():
    struct = calque.ShapeDtypeStruct((), "float32")
    assert calque.eval_shape(lambda x: (x, struct), 1.0)[1] == struct
    assert calque.eval_shape(calque.jit(lambda: struct)) == struct
    with pytest.raises(TypeError, match="does not have a value"):
        calque.jit(lambda: struct)()
