"""Programs that look at their own results for NaN and infinity."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.config import config
from calque.core.jaxprs import subjaxprs
from calque.machine.call import functions as callpath
from calque.transforms.functions.nan_checks import any_bad, checked
from tests.xla.mlir import needs_jaxlib
from tests.xla.several_processes import in_both


@pytest.fixture
def nans():
    with config.override("debug_nans", True):
        yield


def refused(fun, *args, name):
    with pytest.raises(FloatingPointError, match=rf"\(nan\) encountered in {name} at .*{__file__}"):
        fun(*args)


VALUES = {
    "finite": np.float32([1, -2]),
    "nan": np.float32([1, np.nan]),
    "inf": np.float32([-np.inf, 1]),
    "both": np.float32([np.inf, np.nan]),
    "imaginary nan": np.complex64([complex(1, np.nan)]),
    "imaginary inf": np.complex64([complex(np.inf, 0)]),
    "one nan": np.float32(np.nan),
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("flags", [(True, False), (False, True), (True, True)])
def test_what_flags_forbid(name, flags):
    x = VALUES[name]
    parts = np.stack([np.real(x), np.imag(x)])
    want = (flags[0] and np.isnan(parts).any()) or (flags[1] and np.isinf(parts).any())
    with config.override("debug_nans", flags[0]), config.override("debug_infs", flags[1]):
        closed = calque.make_jaxpr(any_bad)(x)
    assert bool(calque.extend.core.jaxpr_as_fun(closed)(x)[0]) == want


def test_programs_that_can_give_no_nan_stay_as_they_are(nans):
    for f, x in ((lambda x: x + 1, 3), (jnp.sin, jnp.ones((0, 2))), (calque.random.split, KEY)):
        closed = calque.make_jaxpr(f)(x)
        assert checked(closed, "f") is closed
    closed = calque.make_jaxpr(lambda x: (x, x + 1))(1.0)
    looking = checked(closed, "f")
    names = [e.primitive.name for e in looking.eqns]
    assert names.count("cond") == 1 and looking.out_avals == closed.out_avals
    (branches,) = [list(subjaxprs(e.params)) for e in looking.eqns if e.primitive.name == "cond"]
    assert sum("debug_callback" in str(b) for b in branches) == 1


KEY = calque.random.key(0)


def test_programs_look_at_themselves(nans):
    """Calls are served by machine code, and sizes may be free."""
    f = calque.jit(lambda x: jnp.log(x) * 2)
    for _ in range(4):
        f(jnp.ones(3))
    assert callpath.entry_count(f) == 1
    refused(f, jnp.array([1.0, -1.0, 2.0]), name="log")
    for n in (5, 6, 7, 8):
        assert f(jnp.ones(n)).shape == (n,)
        refused(f, -jnp.ones(n), name="log")
    complexes = calque.jit(lambda x: jnp.log(x - 1) * 0)
    refused(complexes, jnp.ones(2, "complex64"), name="mul")
    keyed = calque.jit(lambda key, x: (calque.random.split(key), jnp.log(x)))
    with pytest.raises(FloatingPointError, match="the jitted function <lambda>"):
        keyed(calque.random.key(0), -1.0)
    assert callpath.entry_count(calque.jit(lambda x: x + 1)) == 0


def test_donated_arguments_are_kept(nans):
    x = jnp.full(3, -1.0)
    refused(calque.jit(lambda x: jnp.log(x), donate_argnums=0), x, name="log")
    assert np.asarray(x).tolist() == [-1.0] * 3


@needs_jaxlib
def test_programs_over_several_processes_are_not_looked_at():
    """One of them would stop while the others wait for it: all are told."""
    in_both("""
        import warnings
        with jax.debug_nans(True), warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for f in (jax.jit(lambda v: v / 0), lambda v: v / 0):
                assert len(parts(f(x))) == 2
            assert parts(x / 2) == [[v / 2] for v in numbers[2 * index : 2 * index + 2].tolist()]
        assert "several processes" in str(told[0].message)
    """)
