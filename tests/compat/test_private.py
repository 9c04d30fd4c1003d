"""Names that libraries import from `jax._src`: each is there, and does what they want of it."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import calque
import calque.numpy as jnp
from calque.compat import private, switch
from calque.compat.private import ad_util, api, core, dispatch, util
from tests.xla.mlir import is_there

MODULES = [m.name for m in pkgutil.walk_packages(private.__path__, "calque.compat.private.")]


@pytest.mark.parametrize("name", MODULES)
def test_every_name_is_there(name):
    if name == "calque.compat.private.lib.mlir" and not is_there():
        pytest.skip("jaxlib is not installed")
    module = importlib.import_module(name)
    names = [n for n in dir(module) if not n.startswith("__")]
    assert names and all(getattr(module, n, private) is not private for n in names)


def test_trace_state_clean():
    seen = []

    def f(x):
        seen.append(core.trace_state_clean())
        return x * 2

    f(1.0)
    calque.jit(f)(1.0)
    calque.grad(f)(1.0)
    calque.vmap(f)(jnp.ones(2))
    assert seen == [True, False, False, False] and core.trace_state_clean()


def test_primitives_run():
    assert dispatch.apply_primitive(calque.lax.neg_p, jnp.ones(2)).tolist() == [-1, -1]
    assert "stop_gradient" in str(calque.make_jaxpr(lambda x: ad_util.stop_gradient_p.bind(x))(1.0))
    assert dispatch.wait_for_tokens() is None


def test_lists():
    assert util.safe_map(lambda a, b: a + b, [1, 2], (3, 4)) == [4, 6]
    assert util.safe_zip([1], [2]) == [(1, 2)]
    with pytest.raises(ValueError, match="length mismatch"):
        util.safe_zip([1], [2, 3])
    assert util.unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4))
    assert util.split_list([1, 2, 3, 4], [1, 2]) == [[1], [2, 3], [4]]
    assert util.partition_list([True, False, True], "abc") == (["b"], ["a", "c"])
    assert util.prod([2, 3]) == 6


def test_the_import_of_calque_does_not_import_this_room():
    mine = "[m for m in sys.modules if m.startswith('calque.compat')]"
    code = f"import sys, calque, calque.numpy; print({mine})"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_core_has_what_is_public():
    from calque.extend import core as public

    assert all(getattr(core, n) is getattr(public, n) for n in public.__all__ if n in dir(core))
    assert set(public.__all__) <= set(dir(core))


def test_transformations_are_those_of_the_package():
    assert api.grad is calque.grad and api.jit is calque.jit and api.vmap is calque.vmap


def test_packages_have_the_modules_that_are_served_in_them():
    places = {"lax": switch._LAX, "numpy": switch._NUMPY}
    for package, modules in places.items():
        served = importlib.import_module(f"calque.compat.private.{package}")
        assert all(getattr(served, m) is getattr(calque, package) for m in modules)


def test_slices_of_a_fixed_size():
    from calque.compat.private.state import indexing

    assert indexing.dslice is calque.ds and indexing.dslice(1, 2) == indexing.Slice(1, 2)
