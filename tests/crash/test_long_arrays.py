"""Arrays of many elements: memory that grows with them, times that do not explode, positions beyond
32 bits."""

import sys

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.native.eager import execution
from tests.crash.child import check
from tests.shared import OWN_ENGINE

linux = pytest.mark.skipif(sys.platform != "linux", reason="limits are those of Linux")
own_engine = pytest.mark.skipif(not OWN_ENGINE, reason="XLA has no memory to spare, and no steps")


@linux
@own_engine
def test_sorts_take_little_memory_besides() -> None:
    """Bytes are counted in place; elements alone need their keys twice."""
    check(
        """
        import calque, calque.numpy as jnp, numpy as np
        n = 1 << 27
        x = np.zeros(n, np.int8)
        x[[5, n - 3, n - 1]] = 3, 7, -4
        y = jnp.sort(jnp.asarray(x))
        assert (int(y[0]), y[-3:].tolist()) == (-4, [0, 3, 7])
        del y
        y = jnp.sort(jnp.asarray(x[: n // 8].astype(np.float32)))
        assert y[-2:].tolist() == [0.0, 3.0]
        """,
        before=f"ulimit -v {1700 << 10}",
        environment={"OPENBLAS_NUM_THREADS": "1", "CALQUE_NUM_THREADS": "2"},
    )


@linux
@own_engine
def test_memory_of_a_routine_is_named() -> None:
    check(
        """
        import calque, calque.numpy as jnp
        x = jnp.ones(1 << 26)
        try:
            jnp.argsort(x)
        except MemoryError as e:
            asked = [int(word) for word in str(e).split() if word.isdigit()]
            assert asked[0] >= 24 << 26, e  # three numbers of 8 bytes for each element
        else:
            raise AssertionError("no MemoryError")
        """,
        before=f"ulimit -v {1500 << 10}",
        environment={"OPENBLAS_NUM_THREADS": "1", "CALQUE_NUM_THREADS": "2"},
    )


@own_engine
@pytest.mark.parametrize("permutation", [(0, 2, 1), (2, 1, 0), (2, 0, 1)])
def test_long_transpositions_turn_tiles(
    permutation: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """NumPy needs a minute for 500 MB whose last axis moves, and reads one element of each page."""
    meanings: list[object] = []
    monkeypatch.setattr(execution, "by_meaning", lambda *given: meanings.append(given))
    x = np.arange(30 * 200 * 190, dtype=np.int16).reshape(30, 200, 190)
    got = jnp.transpose(jnp.asarray(x), permutation)
    np.testing.assert_array_equal(got, x.transpose(permutation))
    assert not meanings


FAR = 2**31 + 5


@pytest.mark.parametrize("name", ["nonzero", "argsort", "argmax"])
@pytest.mark.parametrize("jitted", [False, True])
def test_positions_beyond_32_bits_are_refused(name: str, jitted: bool) -> None:
    """They would wrap around. Nothing of that size is made here: the array has one byte."""
    if calque.config.jax_enable_x64:
        pytest.skip("positions have 64 bits")
    f = getattr(jnp, name)

    def made(x):
        return f(jnp.broadcast_to(x, (FAR,)))

    with pytest.raises(OverflowError, match=f"{FAR} are beyond int32"):
        (calque.eval_shape if jitted else lambda f, x: f(x))(made, jnp.int8(1))
