"""Facades that import names when they are first asked for."""

import importlib
import os
import pathlib
import pkgutil
import subprocess
import sys
from types import ModuleType

import pytest

import calque
from calque.core import lazy
from calque.machine.code import image

FACADES = ["calque", "calque.numpy"]


def table(name: str) -> dict[str, tuple[str, str]]:
    module = importlib.import_module(name)
    return lazy.imports_of(lazy.source_of(name, str(module.__file__)))


@pytest.mark.parametrize("name", FACADES)
def test_every_name_is_found_and_listed(name):
    module, names = importlib.import_module(name), table(name)
    assert names
    for n, (place, own) in names.items():
        value = getattr(module, n)
        assert n in dir(module)
        if place == name:
            assert value is importlib.import_module(f"{name}.{own}")
        else:
            held = getattr(importlib.import_module(place), own)
            assert value is held or getattr(value, "__wrapped__", None) is held
    assert "TYPE_CHECKING" not in dir(module)
    space: dict[str, object] = {}
    exec(f"from {name} import *", space)
    assert not [n for n in names if n not in space and n in getattr(module, "__all__", names)]


@pytest.mark.parametrize(
    "name",
    ["calque", "calque.experimental", "calque.extend", "calque.extend.core", "calque.interpreters"],
)
def test_what_is_listed_for_type_checkers_is_what_is_offered(name):
    """Checkers take a name for public only if `__all__` has it."""
    module = importlib.import_module(name)
    assert vars(module)["__all__"] == sorted(set(vars(module)["__all__"]))
    assert set(vars(module)["__all__"]) == {n for n in table(name) if not n.startswith("_")}


@pytest.mark.parametrize("name", FACADES)
def test_no_name_is_also_a_module(name):
    """Importing such a module would put it in the place of what the facade offers."""
    module, names = importlib.import_module(name), table(name)
    modules = {m.name for m in pkgutil.iter_modules(module.__path__)}
    assert not [n for n in modules & set(names) if names[n] != (name, n)]


@pytest.mark.parametrize("name", FACADES)
def test_unknown_names(name):
    module = importlib.import_module(name)
    with pytest.raises(AttributeError, match=f"module '{name}' has no attribute 'nonsense'"):
        _ = module.nonsense
    assert not hasattr(module, "__nonsense__")


def test_imports_are_read_from_the_source():
    source = """
if TYPE_CHECKING:
    from a.b import c, d as e  # comment
    from a import (
        f,  # why
        g as h,
    )
from z import y
"""
    assert lazy.imports_of(source) == {
        "c": ("a.b", "c"),
        "e": ("a.b", "d"),
        "f": ("a", "f"),
        "h": ("a", "g"),
    }


def test_a_source_in_an_archive(tmp_path):
    import zipfile

    archive = tmp_path / "package.zip"
    with zipfile.ZipFile(archive, "w") as z:
        z.writestr("zipped_package.py", "if True:\n    from math import pi\n")
    sys.path.insert(0, str(archive))
    try:
        importlib.import_module("zipped_package")
        assert lazy.imports_of(lazy.source_of("zipped_package", "/nowhere")) == {
            "pi": ("math", "pi")
        }
    finally:
        sys.path.remove(str(archive))
        del sys.modules["zipped_package"]


UNWANTED = [
    "scipy",
    "numpy.random",
    "hashlib",
    "pathlib",
    "json",
    "calque.lax",
    "calque.random",
    "calque.nn",
    "calque.numpy.linalg",
    "calque.transforms.jit.pmap",
    "calque.native.emit.emitter",
    "calque.machine.lang.emit",
    "calque.transforms.functions.key_reuse",
    "calque.transforms.functions.nan_checks",
    "calque.transforms.functions.branches",
    "calque.transforms.functions.loops",
    "calque.transforms.functions.vmap",
    "calque.transforms.functions.autodiff",
    "calque.transforms.functions.custom_jvp",
]


@pytest.mark.skipif(not image.usable(), reason="code on disk is linked by LLVM on this system")
def test_what_a_small_program_does_not_need_is_not_imported(tmp_path):
    """By a process that finds all machine code on disk."""
    code = """
import sys, numpy
before = set(sys.modules)  # NumPy 1.26 imports much by itself
import calque, calque.numpy as jnp
assert calque.jit(lambda x: x * 2)(jnp.ones(3)).tolist() == [2, 2, 2]
print(" ".join(m for m in sys.modules if m not in before))
"""
    root = str(pathlib.Path(calque.__file__).parent.parent)
    env = {**os.environ, "CALQUE_CACHE_DIR": str(tmp_path), "CALQUE_VERIFY_KERNELS": "0"}
    for _ in range(2):
        out = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=root,
            env=env,
        )
    loaded = set(out.stdout.split())
    assert "calque.numpy" in loaded
    assert not [name for name in UNWANTED if name in loaded]


def test_a_function_that_waits_for_its_module():
    f = lazy.function("calque.core.dtypes", "is_integer")
    assert f("int32") and not f("float32")


def test_a_package_is_offered_names_of_a_higher_floor():
    package = ModuleType("lower_package")
    lazy.offer(package, "calque.core.lazy", ("imports_of", "source_of"))
    assert "source_of" in dir(package)
    assert "imports_of" not in vars(package)
    assert package.imports_of is lazy.imports_of
    assert "imports_of" in vars(package)  # asked for once
    with pytest.raises(AttributeError, match="module 'lower_package' has no attribute 'facade'"):
        _ = package.facade


def test_folds_of_segments_are_offered_to_the_vocabulary():
    assert calque.ops.segment_sum.__module__ == "calque.numpy.segments"
    assert "segment_max" in dir(calque.ops)


def test_names_that_are_gone_say_what_took_their_place():
    for name in ("device_put_sharded", "device_put_replicated"):
        with pytest.raises(AttributeError, match=f"jax.{name} is deprecated; use jax.device_put"):
            getattr(calque, name)
        assert name not in dir(calque)
