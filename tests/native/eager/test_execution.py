"""One primitive at a time: kernels that serve every shape, and the same bits as a compiled
program."""

import numpy as np
import pytest

import calque as cq
import calque.numpy as jnp
from calque.core.arrays import to_numpy
from calque.core.primitives import do
from calque.native.eager import execution as eager
from calque.native.emit import kernels
from tests.native.programs import normal, same


def test_a_new_shape_compiles_nothing() -> None:
    def f(*s):
        return do.exp(do.mul(normal(*s), np.float32(2.5)))

    f(3, 4), f()
    before = kernels.stats.compiled
    for shape in ((), (1,), (7,), (5, 6, 7), (0,), (1000, 3)):
        same(to_numpy(f(*shape)), np.exp(normal(*shape) * np.float32(2.5)), 1e-5)
    assert kernels.stats.compiled == before


@pytest.mark.parametrize("shape", [(1, 1), (3, 50), (50, 3), (200, 300), (1, 70), (70, 1)])
def test_reductions(shape: tuple[int, int]) -> None:
    x = normal(*shape)
    for axes in ((0,), (1,), (0, 1)):
        same(
            to_numpy(do.reduce_sum(x, axes=axes, out_sharding=None)), np.asarray(x.sum(axes)), 1e-3
        )
        same(to_numpy(do.reduce_max(x, axes=axes)), np.asarray(x.max(axes)))
    same(
        to_numpy(do.argmax(x, axes=(1,), index_dtype=np.dtype(np.int32))),
        x.argmax(1).astype(np.int32),
    )


def test_the_same_bits_as_jit() -> None:
    with cq.config.override("calque_exact", True):
        for n in (1, 7, 16, 17, 64, 100, 1000, 16_384, 16_385, 50_000):
            x = normal(n, 3)
            for f in (
                lambda x: jnp.sum(x, axis=0),
                lambda x: jnp.sum(x, axis=1),
                lambda x: jnp.sum(x),
                lambda x: jnp.cumsum(x, axis=0),
                lambda x: jnp.tanh(x) * jnp.exp(x) + x,
                lambda x: x.T @ x,
                lambda x: x @ x[0],
            ):
                same(to_numpy(cq.jit(f)(x)), to_numpy(f(jnp.asarray(x))))


def test_exceptions_of_shapes_are_clear() -> None:
    with pytest.raises(TypeError):
        do.add(normal(3), normal(4))


def test_the_table_is_bounded() -> None:
    assert eager.CACHE_LIMIT > 0


def test_powers_have_the_bits_of_jit() -> None:
    """An exponent in the text of the program is part of it, for a compiled program as for each way
    to run at once."""
    x = jnp.abs(normal(300)) * 9
    for y in (1.5, -1.5, 2.5, -2.0, 0.5, -0.5, 2.3):
        want = to_numpy(cq.jit(lambda x, y=y: x**y)(x)).tobytes()
        for _ in range(2):
            assert to_numpy(x**y).tobytes() == to_numpy(jnp.power(x, y)).tobytes() == want
        assert to_numpy(cq.vmap(lambda x, y=y: x**y)(x)).tobytes() == want


def test_repeated_values_without_bytes() -> None:
    """Tangents of integers take no memory, and batch."""
    outs = cq.vmap(lambda t: cq.jvp(lambda x: (x, jnp.int32(3)), (1.0,), (t,))[1])(jnp.ones(4))
    assert [o.shape for o in outs] == [(4,), (4,)] and outs[1].dtype == cq.float0


def test_kernels_for_every_size_say_which_sizes_they_serve() -> None:
    """A sum of more elements than one kernel folds goes another way, for every number of them."""
    before = len(eager._templates)
    for n in (5, 16_384, 16_385, 40_000, 7):
        x = normal(n)
        same(
            to_numpy(do.reduce_sum(x, axes=(0,), out_sharding=None)),
            to_numpy(cq.jit(lambda x: do.reduce_sum(x, axes=(0,), out_sharding=None))(x)),
        )
    served = [t.serves for t in eager._templates.values() if t and t.guards]
    assert len(eager._templates) - before <= 2
    assert served and all(s((1, 16_384, 1)) and not s((1, 16_385, 1)) for s in served)


def test_the_words_of_a_kernel_are_the_sizes_of_its_form() -> None:
    """Also where its last index is asked for, and where a loop is shared out among threads."""
    for shape in ((3, 70), (40, 5), (2, 100_003), (300_001,)):
        x = normal(*shape)
        same(
            to_numpy(do.cumsum(x, axis=0, reverse=True)),
            to_numpy(cq.jit(lambda x: do.cumsum(x, axis=0, reverse=True))(x)),
        )
        same(to_numpy(do.exp(x)), to_numpy(cq.jit(do.exp)(x)))
        same(
            to_numpy(do.iota(dtype=np.dtype("f4"), shape=shape, dimension=0, sharding=None)),
            np.broadcast_to(
                np.arange(shape[0], dtype="f4").reshape(-1, *[1] * (len(shape) - 1)), shape
            ),
        )


@pytest.mark.parametrize("dtypes", [("int8", "int16"), ("bool", "int8"), ("int32", "float32")])
def test_products_of_operands_that_are_converted_in_memory(dtypes):
    x, y = np.arange(35).reshape(7, 5) % 3, np.arange(45).reshape(5, 9) % 4
    a, b = (jnp.asarray(v).astype(d) for v, d in zip((x, y), dtypes))
    numbers = (((1,), (0,)), ((), ()))
    out = cq.lax.dot_general(a, b, numbers, preferred_element_type=dtypes[1])
    assert out.tolist() == (x.astype(dtypes[0]) @ y).tolist()


def looped(body, start):
    return cq.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, body(c[1])), (0, start))[1]


def test_loops_of_the_same_content_are_compiled_once():
    loops = eager._loops
    cq.clear_caches()
    start = jnp.float32(1.0)
    for _ in range(3):
        assert looped(lambda x: x * 2.0, start) == 8
    assert (len(loops), loops.counts.hits) == (1, loops.counts.hits) and loops.counts.hits >= 2
    assert looped(lambda x: x * 3.0, start) == 27 and len(loops) == 2
    for k in (2.0, 5.0):  # values from outside are operands
        outside = jnp.float32(k)
        assert looped(lambda x: x * outside, start) == k**3
    assert len(loops) == 3
    assert looped(lambda x: x * 2, jnp.int32(1)) == 8 and len(loops) == 4
    cq.clear_caches()
    assert not loops


def test_loops_that_call_python_are_compiled_anew():
    for k in (1, 2):
        seen = []

        def note(x, seen=seen, k=k):
            seen.append(k)
            return np.float32(x)

        def body(x, note=note):
            return cq.pure_callback(note, cq.ShapeDtypeStruct((), np.float32), x)

        looped(body, jnp.float32(0))
        assert seen == [k] * 3


def test_primitives_of_one_name_are_different_ones():
    def made(k):
        p = cq.extend.core.Primitive("times_something")
        p.def_impl(lambda x: x * k)
        p.def_abstract_eval(lambda aval: aval)
        cq.interpreters.mlir.register_lowering(
            p, cq.interpreters.mlir.lower_fun(lambda x: x * k, multiple_results=False)
        )
        return p

    for k in (2, 3):
        assert looped(made(k).bind, jnp.float32(1)) == k**3


@pytest.mark.parametrize("rank", [33, 64, 70])
def test_arrays_of_many_axes(rank: int) -> None:
    """What NumPy has too many axes for runs as a program."""
    shape = (1,) * (rank - 2) + (2, 3)
    x = jnp.arange(6.0).reshape(shape)
    for f in (
        lambda x: x[..., ::-1],
        lambda x: jnp.transpose(x),
        lambda x: jnp.concatenate([x, x], axis=-1),
        lambda x: jnp.pad(x, [(0, 0)] * (rank - 1) + [(1, 1)]),
        lambda x: jnp.roll(x, 1, -1),
        lambda x: jnp.take(x, jnp.array([2, 0]), axis=-1),
        lambda x: jnp.stack([x, x]),
        lambda x: x.at[..., 0].set(5),
        lambda x: jnp.moveaxis(x, -1, 0),
        lambda x: jnp.array(x),
        lambda x: cq.random.uniform(cq.random.key(0), x.shape),
        lambda x: cq.lax.dynamic_slice(x, (0,) * rank, x.shape),
        lambda x: cq.grad(lambda x: (x**2).sum())(x),
    ):
        eager, jitted = f(x), cq.jit(f)(x)
        assert eager.shape == jitted.shape
        assert eager.ravel().tolist() == jitted.ravel().tolist()
    if rank <= 64 and int(np.__version__.split(".")[0]) >= 2:
        assert np.asarray(x).shape == shape and jnp.asarray(np.ones(shape)).ndim == rank
        assert float(x[(0,) * (rank - 1) + (2,)]) == 2
    else:
        with pytest.raises(ValueError, match=r"axes|dimensions"):
            np.asarray(x)
