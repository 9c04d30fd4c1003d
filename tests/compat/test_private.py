"""Names that libraries import from `jax._src`: each is there, and does what they want of it."""

import importlib
import pkgutil
import subprocess
import sys

import pytest

import calque
import calque.numpy as jnp
from calque.compat import private
from calque.compat.private import ad_util, compiler, core, dispatch, traceback_util, tree_util, util
from calque.core.source import excluded_files

MODULES = [m.name for m in pkgutil.walk_packages(private.__path__, "calque.compat.private.")]


@pytest.mark.parametrize("name", MODULES)
def test_every_name_is_there(name):
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


def test_registry_of_containers():
    class Plain:
        pass

    @calque.tree_util.register_pytree_node_class
    class Node:
        def tree_flatten(self):
            return (), None

        @classmethod
        def tree_unflatten(cls, aux, children):
            return cls()

    registry = tree_util._registry
    assert list in registry and dict in registry and type(None) in registry and Node in registry
    assert Plain not in registry and int not in registry
    assert tree_util.flatten_one_level((1, [2, 3])) == ([1, [2, 3]], None)


def test_excluded_files(tmp_path):
    """The user's line is looked for beyond the files of a library that asks for it."""
    library = tmp_path / "library.py"
    library.write_text("def call(f, *args):\n    return f(*args)\n")
    spec = importlib.util.spec_from_file_location("library", library)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def place():
        jaxpr = calque.make_jaxpr(lambda x: module.call(jnp.sin, x))(1.0)
        return jaxpr.jaxpr.eqns[0].source.file

    assert place() == str(library)
    traceback_util.register_exclusion(str(library))
    try:
        assert place() == __file__
    finally:
        excluded_files.remove(str(library))


def test_compilations_can_be_forbidden(monkeypatch):
    def forbid(backend, *args):
        raise RuntimeError(f"no compilation for {backend.platform}")

    f = calque.jit(lambda x: x * 3 + 1)
    monkeypatch.setattr(compiler, "backend_compile_and_load", forbid)
    with pytest.raises(RuntimeError, match="no compilation for cpu"):
        f(jnp.ones(3))
    monkeypatch.undo()
    assert f(jnp.ones(3)).tolist() == [4, 4, 4]


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
    code = "import sys, calque, calque.numpy; print([m for m in sys.modules if '.compat' in m])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_core_has_what_is_public():
    from calque.extend import core as public

    assert all(getattr(core, n) is getattr(public, n) for n in public.__all__ if n in dir(core))
    assert set(public.__all__) <= set(dir(core))
