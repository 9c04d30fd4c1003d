"""Arrays of every kind that NumPy can make: taken as they are or refused, and never harmful."""

from tests.crash.child import check


def test_arrays_that_are_taken() -> None:
    check(
        """
        import tempfile
        import numpy as np
        import calque, calque.numpy as jnp
        base = np.arange(24.0, dtype=np.float32).reshape(4, 6)
        fixed = base.copy()
        fixed.flags.writeable = False
        unaligned = np.zeros(97, np.uint8)[1:].view(np.float32)
        unaligned[:] = 3
        arrays = [
            base[::2, ::-3], base.T, fixed, unaligned, base.astype(">f4"),
            np.arange(5, dtype=">i4"), np.broadcast_to(np.float32(3), (1000, 1000)),
            np.matrix([[1.0, 2.0]]), np.array(3.0), np.zeros((0, 3))[:, ::2],
            np.ones((1,) * 32, np.float32), base[1:, 2:][::-1], np.asfortranarray(base),
            base.view(np.uint8), base.astype(np.complex128)[:, ::2].imag,
            np.memmap(tempfile.TemporaryFile(), np.float32, "w+", shape=(5,)),
            np.lib.stride_tricks.as_strided(base, (3, 2), (4, 8)),
        ]
        f = calque.jit(lambda x: jnp.asarray(x) * 2)
        for a in arrays:
            for g in (f, lambda x: jnp.asarray(x) * 2):
                for _ in range(2):
                    got = np.asarray(g(a))
                    assert got.shape == a.shape and np.array_equal(got, np.asarray(a) * 2), a
        """
    )


def test_arrays_that_are_refused() -> None:
    check(
        """
        import numpy as np
        import calque, calque.numpy as jnp
        f = calque.jit(lambda x: jnp.asarray(x) * 2)
        for a in (
            np.array([1, "a", None], object), np.array([1, 2], object),
            np.zeros(3, [("a", "f4"), ("b", "i4")]), np.array(["a", "b"]),
            np.array(["2020-01-01"], "M8[D]"), np.ones(3, np.longdouble), np.zeros(3, "V8"),
            np.rec.array([(1, 2.0)]), np.ma.array([1.0, 2.0], mask=[0, 1]),
            np.broadcast_to(np.int8(3), (1 << 46,)),
        ):
            try:
                f(a)
            except (TypeError, ValueError, MemoryError):
                continue
            raise AssertionError(a.dtype)
        """
    )


def test_indices_beyond_everything() -> None:
    """Out of bounds as JAX has it: clamped, dropped, filled or refused, never read."""
    check(
        """
        import calque, calque.numpy as jnp, numpy as np
        from calque import lax
        x, far = jnp.arange(5), (2**31, 2**32 + 1, 2**63 - 1, -(2**63), 2**70, -(2**70))
        for i in far:
            for use in (
                lambda: x[i], lambda: x[i:], lambda: x[:i], lambda: x.at[i].set(7),
                lambda: jnp.take(x, i), lambda: lax.dynamic_slice(x, (i,), (2,)),
                lambda: lax.dynamic_update_slice(x, jnp.array([8]), (i,)),
                lambda: jnp.take(x, jnp.array([3]), axis=i), lambda: jnp.roll(x, i),
                lambda: x[jnp.array([0, 1]) + i],
                lambda: calque.jit(lambda j: x[j])(i),
            ):
                try:
                    got = np.asarray(use())
                except (IndexError, OverflowError, ValueError, TypeError):
                    continue
                allowed = {0, 1, 2, 3, 4, 7, 8, np.iinfo(np.int32).min}
                assert set(got.ravel().tolist()) <= allowed, (i, got)
        """
    )
