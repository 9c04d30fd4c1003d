"""`import jax` served by calque: in processes of their own, because the switch stays on."""

import pytest

from calque.compat import switch
from tests.compat.shared import SOURCE, run, served


def test_modules_are_the_same_objects():
    code = """
import sys
import jax, jax.numpy as jnp, jax.numpy.linalg, jax.scipy.special
from jax import lax, tree_util as jtu
from jax.experimental import checkify
import jax.tree_util
import calque.numpy, calque.lax, calque.experimental.checkify
print(jax is calque, jnp is calque.numpy, lax is calque.lax,
    checkify is calque.experimental.checkify)
print(sys.modules["jax.numpy.linalg"] is calque.numpy.linalg, jtu is calque.tree_util)
print(isinstance(jnp.ones(2), jax.Array), jnp.__spec__.name, jnp.__name__)
"""
    assert served(code).split("\n") == [
        "True True True True",
        "True True",
        "True calque.numpy calque.numpy",
    ]


def test_modules_that_stand_elsewhere_inside_of_jax():
    code = """
import jax, jax._src.lax.lax, jax._src.interpreters.batching
import jax._src.lax.slicing as slicing
from jax._src import interpreters, lax as private
from jax._src.lax import lax, control_flow, parallel
from jax._src.interpreters import ad, mlir
from jax._src.interpreters.partial_eval import dce_jaxpr
import calque.lax, calque.interpreters.ad
print({m is calque.lax for m in (slicing, lax, control_flow, parallel, private.slicing)})
print(ad is calque.interpreters.ad is jax.interpreters.ad, interpreters is jax.interpreters)
print(lax.__name__, hasattr(calque.lax, "lax"), jax._src.lax.lax.sin_p is jax.lax.sin_p)
print(sorted(n for n in dir(private) if not n.startswith("_")))
"""
    assert served(code).split("\n") == [
        "{True}",
        "True True",
        "calque.lax False True",
        str(sorted(switch._LAX)),
    ]


def test_modules_of_sparse_arrays():
    code = """
import jax.experimental.sparse.util
from jax.experimental import sparse
from jax.experimental.sparse import ad, util
from jax.experimental.sparse.api import empty, eye, todense
from jax.experimental.sparse.coo import COO, coo_fromdense
from jax.experimental.sparse.csr import CSC, CSR, csr_matvec
from jax.experimental.sparse.random import random_bcoo
from jax.experimental.sparse.transform import SparseTracer, sparsify
print(all([sparse.eye is eye, sparse.COO is COO, sparse.CSR is CSR, sparse.sparsify is sparsify]))
print(util.SparseEfficiencyWarning is sparse.SparseEfficiencyWarning, ad.grad is sparse.grad)
print(util.SparseInfo((2, 3)).shape, sparse.util is util)
"""
    assert served(code).split("\n") == ["True", "True True", "(2, 3) True"]


def test_versions():
    code = """
import importlib.metadata as m
import jax, jaxlib, jax.version, jax.lib, jaxlib.version
print({m.version("jax"), m.version("jaxlib"), jax.__version__, jaxlib.__version__,
    jax.version.__version__, jax.lib.__version__, jaxlib.version.__version__})
print(jax.__version_info__, jax.version.__version_info__ == jax.__version_info__)
print(m.distribution("jax").metadata["Name"], m.version("numpy") != "")
"""
    versions, numbers, metadata = served(code).split("\n")
    assert len(eval(versions)) == 1 and eval(numbers.rpartition(" ")[0]) >= (0, 10)
    assert numbers.endswith("True") and metadata == "jax True"


def test_as_jax_twice_and_as_a_value():
    assert served("j = calque.as_jax(); import jax; print(j is jax is calque)") == "True"


def test_pickles_agree():
    code = """
import pickle, jax, jax.numpy as jnp
text = pickle.dumps([jnp.arange(3), jax.Array, jax.tree_util.tree_structure((1, [2])), jnp.float32])
import calque.numpy
x, array, tree, f32 = pickle.loads(text)
print(x.tolist(), array is calque.Array, tree, f32 is calque.numpy.float32)
"""
    assert served(code) == "[0, 1, 2] True PyTreeDef((*, [*])) True"


def test_names_that_do_not_exist():
    code = """
try:
    import jax.no_such_module
except ModuleNotFoundError as e:
    print(e.name, "calque.no_such_module" in str(e))
try:
    import jax._src.no_such_module
except ModuleNotFoundError as e:
    print(e.name)
import jax
print(hasattr(jax, "no_such_name"))
"""
    assert served(code).split("\n") == [
        "jax.no_such_module True",
        "jax._src.no_such_module",
        "False",
    ]


def test_a_real_jax_that_is_loaded_already(tmp_path):
    (tmp_path / "jax").mkdir()
    (tmp_path / "jax" / "__init__.py").write_text("")
    code = f"""
import sys; sys.path.insert(0, {str(tmp_path)!r})
import jax, calque
try:
    calque.as_jax()
except RuntimeError as e:
    print(e)
"""
    message = run("-c", code)
    assert "jax (the real one) is imported already" in message and "python -m calque" in message


def test_child_processes_inherit_the_switch(tmp_path):
    code = """
import subprocess, sys, multiprocessing
import jax
code = "import jax, jaxlib; print(jax.__name__, jaxlib.__name__)"
print(subprocess.run([sys.executable, "-c", code],
    capture_output=True, text=True, cwd=%r, env={**__import__("os").environ}).stdout.strip())
"""
    assert served(code % str(tmp_path)) == "calque calque.compat.jaxlib"


def test_a_child_finds_calque_where_its_parent_did(tmp_path):
    """Also when the parent found it only on its own `sys.path`."""
    code = f"""
import sys; sys.path.insert(0, {SOURCE!r})
import calque; calque.as_jax()
import subprocess
print(subprocess.run([sys.executable, "-c", "import jax; print(jax.__name__)"],
    capture_output=True, text=True).stdout.strip())
"""
    assert run("-c", code, PYTHONPATH="") == "calque"


@pytest.mark.parametrize(
    ("name", "place"),
    [
        ("jax", "calque"),
        ("jax._src.core", "calque.compat.private.core"),
        ("jax._src.interpreters", "calque.interpreters"),
        ("jax._src.interpreters.ad", "calque.interpreters.ad"),
        ("jax._src.lax", "calque.compat.private.lax"),
        ("jax._src.lax.slicing", "calque.lax"),
        ("jax.lib", "calque.compat.lib"),
        ("jaxlib.version", "calque.compat.jaxlib.version"),
        ("jax.experimental.sparse", "calque.experimental.sparse"),
    ],
)
def test_places(name, place):
    assert switch.place_of(name) == place


def test_variables_of_the_environment():
    code = """
import jax
print(jax.config.jax_enable_x64, jax.config.jax_numpy_rank_promotion, jax.config.jax_debug_nans)
"""
    program = "import calque; calque.as_jax()" + code
    said = {"JAX_ENABLE_X64": "true", "JAX_NUMPY_RANK_PROMOTION": "raise"}
    assert run("-c", program, **said) == "True raise False"
    ours = {**said, "CALQUE_ENABLE_X64": "0"}
    assert run("-c", program, **ours) == "False raise False"  # calque's own go before
    unserved = "import calque; print(calque.config.enable_x64)"
    assert run("-c", unserved, **said) == "False"
