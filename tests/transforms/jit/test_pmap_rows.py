"""pmap in two processes: each passes the rows of its devices and gets theirs."""

from tests.xla.mlir import needs_jaxlib
from tests.xla.several_processes import in_both


@needs_jaxlib
def test_rows_of_two_processes_are_one_axis() -> None:
    in_both("""
        own = np.arange(2.0) + 2 * index
        added = jax.pmap(lambda v: lax.psum(v, "i"), axis_name="i")
        for given in (own, jnp.array(own), x):
            total = added(given)
            assert parts(total) == [[6.0], [6.0]] and total.shape == (2,)
        assert total.sharding.mesh.devices.tolist() == jax.local_devices()
        assert total.tolist() == [6, 6] and float(total[0]) == 6
        numbered = jax.pmap(lambda v, w=0.0: v + lax.axis_index("i") + w, axis_name="i")
        assert numbered(np.zeros(2)).tolist() == [2 * index, 2 * index + 1]
        assert numbered(numbered(own)).tolist() == (3 * own).tolist()  # its results are taken, too
        assert numbered(own, w=own).tolist() == (3 * own).tolist()

        columns = np.arange(6.0).reshape(3, 2) + 10 * index
        every = np.concatenate([np.arange(6.0).reshape(3, 2) + 10 * i for i in range(2)], 1)
        f = jax.pmap(lambda v, w: lax.psum(v, "i") + w, axis_name="i", in_axes=(1, None))
        for one in (1.0, np.float32(1), jnp.ones(3)):
            assert f(columns, one).tolist() == [(every.sum(1) + 1).tolist()] * 2
        first = jax.pmap(lambda v: lax.psum(v, "i"), axis_name="i", out_axes=None)(own)
        assert first.shape == () and parts(first) == [6.0, 6.0]
        turned = jax.pmap(lambda v: jnp.array([1.0, 2.0]) * v, axis_name="i", out_axes=1)(own)
        assert turned.tolist() == (np.array([[1.0], [2.0]]) * own).tolist()
        times = jax.pmap(lambda n, v: n * v, static_broadcasted_argnums=0)
        assert times(3, own).tolist() == (3 * own).tolist()
        keys = jax.random.split(jax.random.key(index), 2)
        drawn = jax.pmap(lambda k: jax.random.uniform(k))(keys)
        assert drawn.tolist() == [float(jax.random.uniform(k)) for k in keys]
        trained = jax.pmap(jax.grad(lambda w, v: (w * v).sum()), in_axes=(None, 0))
        assert trained(2.0, own).tolist() == own.tolist()
    """)


@needs_jaxlib
def test_what_pmap_over_processes_is_not_for_is_refused() -> None:
    in_both("""
        f = lambda v: lax.psum(v, "i")
        for n in (1, 4):
            raises(lambda: jax.pmap(f, "i")(np.ones(n)), ValueError, "which are 2 here")
        alone = jax.pmap(f, "i", devices=jax.local_devices())(np.arange(2.0) + index)
        assert alone.tolist() == [1 + 2 * index] * 2
        assert jax.pmap(f, "i", axis_size=4)(np.ones(2)).tolist() == [4, 4]
        if index == 0:
            assert jax.pmap(f, "i", axis_size=2)(np.ones(2)).tolist() == [2, 2]
        else:
            two = jax.pmap(f, "i", axis_size=2)
            raises(lambda: two(np.ones(2)), ValueError, "has none of the devices")
        raises(lambda: jax.jit(jax.pmap(f, "i"))(np.ones(2)), ValueError, "has all rows")
        raises(lambda: jax.pmap(f, "i").lower(np.ones(2)), ValueError, "has all rows")
        assert parts(jax.jit(jax.pmap(f, "i"))(x)) == [[6.0]] * 2
    """)
