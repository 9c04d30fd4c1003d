"""Operations by themselves on arrays of which each process has a part."""

from tests.xla.mlir import needs_jaxlib
from tests.xla.several_processes import in_both


@needs_jaxlib
def test_operations_on_arrays_over_several_processes() -> None:
    in_both("""
        own = numbers[2 * index : 2 * index + 2]
        def gives(y, values):
            expected = np.asarray(values)[2 * index : 2 * index + 2]
            assert parts(y) == [[v] for v in expected.tolist()], parts(y)
            assert y.sharding.is_equivalent_to(rows, 1), y.sharding
        def all_have(y, values):
            assert parts(y) == [np.asarray(values).tolist()] * 2 and y.sharding.is_fully_replicated

        gives(x + 1, numbers + 1)
        gives(1 / (x + 2), 1 / (numbers + 2))
        gives(-x, -numbers)
        gives(x + x, numbers + numbers)
        gives(x + np.ones(4), numbers + 1)
        gives(x == 2, numbers == 2)
        gives(x.astype(jnp.int8), numbers)
        gives(jnp.where(x > 1, x, 0), np.where(numbers > 1, numbers, 0))
        gives(jnp.exp(x), np.asarray(jnp.exp(numbers)))
        gives(jax.tree.map(lambda p, q: p - 0.5 * q, {"w": x}, {"w": x})["w"], numbers / 2)
        gives(jax.grad(lambda v: (v**2).sum())(x), 2 * numbers)
        gives(jax.vmap(lambda v: 2 * v)(x), 2 * numbers)
        gives(jnp.array(x), numbers)
        gives(x.copy(), numbers)
        gives(jnp.zeros_like(x) + x, numbers)
        gives(x.at[1].set(9), [0, 9, 2, 3])
        gives(jax.device_put(x, rows, may_alias=False), numbers)
        gives(jax.device_put(jnp.zeros_like(x), rows) + 1, np.ones(4))
        all_have(x.sum(), 6.0)
        all_have(x[0], 0.0)
        all_have(x[1:3], [1.0, 2.0])
        all_have(jnp.isnan(x).any(), False)
        all_have(jnp.dot(x, x), 14.0)
        assert float(x.sum() * 2) == 12 and bool(x.max() > 2)
        assert [float(v) for v in x] == [0, 1, 2, 3]
        total, seen = lax.scan(lambda c, v: (c + v, c), jnp.float32(0), x)
        assert float(total) == 6 and np.asarray(seen).tolist() == [0, 0, 1, 3]
        specs = dict(in_specs=jax.P("x"), out_specs=jax.P())
        all_have(jax.shard_map(lambda v: lax.psum(v, "x"), mesh=mesh, **specs)(x), [6.0])
        tall = jax.device_put(np.ones((4, 3), np.float32), rows)
        assert parts(tall @ jnp.ones((3, 2))) == [[[3.0, 3.0]]] * 2
        assert parts(tall * x[:, None]) == [[[v] * 3] for v in own.tolist()]

        assert jnp.nonzero(x)[0].tolist() == [1, 2, 3]
        assert jnp.unique(x).tolist() == numbers.tolist()
        assert jnp.bincount(x.astype(int)).tolist() == [1] * 4 and x[x > 1].tolist() == [2, 3]
        assert jnp.histogram(x, bins=2)[0].tolist() == [2, 2]
        gives(jnp.interp(x, jnp.arange(3.0), 2 * jnp.arange(3.0)), [0, 2, 4, 4])
        assert jnp.arange(10.0, 14.0)[x.astype(int)].sum() == 46

        keys = jax.jit(lambda: jax.random.split(jax.random.key(0), 4), out_shardings=rows)()
        assert repr(keys).split(" overlaying:")[1].strip() == "Array(shape=(4, 2), dtype=uint32)"
        text = "Array(shape=(4,), dtype=float32)"
        assert repr(x) == str(x) == f"{x}" == text
        assert repr(jax.device_put(x, whole)) == "Array([0., 1., 2., 3.], dtype=float32)"
        raises(lambda: x.tolist(), RuntimeError, "non-addressable")
        here = jax.device_put(numbers, jax.local_devices()[0])
        raises(lambda: x + here, ValueError, "incompatible devices")
        assert (here + 1).tolist() == [1, 2, 3, 4]  # what is of this process alone stays so
        raises(lambda: jax.jit(lambda v: v + x)(x), RuntimeError, "pass it as an argument")
        raises(lambda: x.__dlpack__(), BufferError, "several processes")
    """)


@needs_jaxlib
def test_operations_on_arrays_of_another_process() -> None:
    """All processes may call them: only that one has elements."""
    in_both("""
        far = jax.device_put(numbers, jax.devices()[3])
        second = jax.sharding.Mesh(jax.devices()[2:], "y")
        last = jax.device_put(numbers, jax.NamedSharding(second, jax.P("y")))
        for y in (far, last):
            for z in (y + 1, jax.jit(lambda v: v + 1)(y), jax.jit(lambda v: v + 1)(y)):
                assert z.sharding == y.sharding
                assert len(z.addressable_shards) == index * len(y.global_shards)
                if index == 1:
                    assert z.tolist() == (numbers + 1).tolist()
                else:
                    assert repr(z) == "Array(shape=(4,), dtype=float32)"
                    raises(lambda: np.asarray(z), RuntimeError, "non-addressable")
    """)


@needs_jaxlib
def test_arrays_where_a_mesh_of_all_is_set() -> None:
    in_both("""
        with jax.set_mesh(mesh):
            y = jnp.arange(4.0)
            assert parts(y) == [numbers.tolist()] * 2
            assert parts(y + x.sum()) == [(numbers + 6).tolist()] * 2
            assert parts(y + x) == [[2 * v] for v in numbers[2 * index : 2 * index + 2].tolist()]
            assert parts(jax.device_put(y, jax.P("x"))) == parts(x)
    """)


@needs_jaxlib
def test_equal_operations_are_compiled_once() -> None:
    in_both("""
        from calque.transforms.jit.traced import stats
        x + 1, x[0], lax.scan(lambda c, v: (c + v, c), jnp.float32(0), x)
        before = stats.traces
        for _ in range(3):
            x + 1, x[0], lax.scan(lambda c, v: (c + v, c), jnp.float32(0), x)
        assert stats.traces == before
    """)
