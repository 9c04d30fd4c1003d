"""jaxlib as it is found, or is not: errors say what to install. What is asked of it."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from calque.core import backends
from calque.xla import jaxlib
from tests.xla.mlir import needs_jaxlib

SERVED = """
import calque
jax = calque.as_jax()
import jaxlib
text = jax.jit(lambda x: x + 1).lower(1.0).as_text("hlo")
assert text.startswith("HloModule") and jaxlib.__file__.startswith(calque.__path__[0]), text
import jax.numpy as jnp
for dtype in ("float32", "bool", "complex64", "bfloat16", "int4"):  # the last two have no buffers
    x = jnp.ones((2, 3), dtype)
    back = jax.export.export(jax.jit(lambda x: (x, x.ravel())))(x).call(x)
    assert [y.dtype.name for y in back] == [dtype, dtype] and all((y == 1).all() for y in back)
"""


def run(script: str, *folders: str) -> str:
    environment = {k: v for k, v in os.environ.items() if k != "CALQUE_PLATFORMS"}
    environment["PYTHONPATH"] = os.pathsep.join(
        [*folders, *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    done = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def fake(folder: pathlib.Path, version: str) -> str:
    package = folder / "fake" / "jaxlib"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "version.py").write_text(f"__version__ = {version!r}\n")
    return str(folder / "fake")


def test_it_is_too_old(tmp_path: pathlib.Path) -> None:
    folder = fake(tmp_path, "0.4.38")
    out = run("import calque as jax\ntry: jax.devices('xla_cpu')\n"
              "except RuntimeError as e: print(e)", folder)  # fmt: skip
    assert "XLA needs jaxlib 0.8.2 or newer, but 0.4.38 is installed" in out
    assert "pip install calque[xla]" in out


def module_with(names: Sequence[str]) -> Any:
    """A module that has all of these, the dotted ones in a class."""
    made: dict[str, Any] = {}
    for name in names:
        first, _, rest = name.partition(".")
        made.setdefault(first, SimpleNamespace())
        if rest:
            setattr(made[first], rest, None)
    return SimpleNamespace(**made)


def test_what_it_lacks_is_named_with_the_versions_that_work() -> None:
    extension = module_with(jaxlib.FROM_EXTENSION)
    client = module_with(jaxlib.FROM_CLIENT)
    jaxlib.refuse_unknown("0.99", extension, client)
    del extension.ArrayImpl, client.HloSharding.replicate
    with pytest.raises(
        jaxlib.XlaUnavailable, match=r"0\.99, which lacks ArrayImpl, HloSharding\.replicate"
    ) as e:
        jaxlib.refuse_unknown("0.99", extension, client)
    assert jaxlib.KNOWN in str(e.value) and "calque[xla]" in str(e.value)


def test_one_that_cannot_be_imported(tmp_path: pathlib.Path) -> None:
    folder = fake(tmp_path, "0.10.9")
    out = run("import calque as jax\ntry: jax.devices('xla_cpu')\n"
              "except RuntimeError as e: print(e)", folder)  # fmt: skip
    assert "jaxlib 0.10.9 at" in out and "cannot be imported: " in out
    assert "pip install calque[xla]" in out


@needs_jaxlib
def test_it_is_known_by_what_it_does(monkeypatch: pytest.MonkeyPatch) -> None:
    jaxlib.prove()
    real = jaxlib.LoadedProgram.run

    def no_more_arguments(self: Any, buffers: Any) -> Any:
        raise TypeError("execute_sharded() takes no arguments")

    monkeypatch.setattr(jaxlib.LoadedProgram, "run", no_more_arguments)
    with pytest.raises(
        jaxlib.XlaUnavailable, match=r"running a program fails, by TypeError: execute_sharded"
    ) as e:
        jaxlib.prove()
    assert jaxlib.KNOWN in str(e.value) and "calque[xla]" in str(e.value)
    monkeypatch.setattr(jaxlib.LoadedProgram, "run", real)
    monkeypatch.setattr(jaxlib, "parts_on_host", lambda _: [np.zeros(3)])
    with pytest.raises(jaxlib.XlaUnavailable, match=r"gives \[0\.0, 0\.0, 0\.0\] for"):
        jaxlib.prove()


def test_types_are_compared_by_what_they_are() -> None:
    f4 = np.dtype("f4")
    kind = jaxlib.array_type((2, 3), f4)
    assert kind is jaxlib.array_type((2, 3), f4) and kind == jaxlib.ArrayType((2, 3), f4)
    assert kind != jaxlib.array_type((3, 2), f4) and kind != "type"
    assert hash(kind) == hash(jaxlib.ArrayType((2, 3), f4))


@needs_jaxlib
def test_where_calque_is_served_as_jax_the_real_jaxlib_is_found() -> None:
    subprocess.run([sys.executable, "-c", SERVED], check=True)


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("0.10.2.dev20260101", (0, 10, 2)),
        ("0.5", (0, 5)),
        ("0.7.1+cuda", (0, 7, 1)),
        ("1.x.3", (1, 0, 3)),
    ],
)
def test_versions_are_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert jaxlib._numbers(text) == numbers


def test_without_jaxlib_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    with pytest.raises(jaxlib.XlaUnavailable, match=r"pip install calque\[xla\]"):
        jaxlib.folder()
    with pytest.raises(RuntimeError, match="not installed"):
        jaxlib.jaxlib.__wrapped__()
    assert "xla_cpu" in backends.known.devices


def test_what_is_served_under_its_name_is_not_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Any
) -> None:
    served, real = tmp_path / "compat" / "served", tmp_path / "real"
    for place in (served, real):
        (place / "jaxlib").mkdir(parents=True)
        (place / "jaxlib" / "__init__.py").touch()
    (real / "jaxlib" / "version.py").write_text("__version__ = '9.8.7'\n")
    monkeypatch.setattr(sys, "path", [str(served) + os.sep, str(real)])
    assert jaxlib.folder() == str(real / "jaxlib")
    assert jaxlib._version(jaxlib.folder()) == "9.8.7"
    assert "jaxlib.version" not in sys.modules or "9.8.7" not in str(sys.modules["jaxlib.version"])


@needs_jaxlib
def test_arrays_go_to_a_device_and_come_back() -> None:
    device = jaxlib.cpu_client(1).devices()[0]
    data = np.arange(6, dtype=np.int16).reshape(2, 3)
    kind = jaxlib.array_type(data.shape, data.dtype)
    array = jaxlib.put([data], kind, jaxlib.one_device(device), [device], shared=False)
    assert isinstance(array, jaxlib.buffer_class())
    data[:] = 0  # it was copied
    (back,) = jaxlib.parts_on_host(array)
    assert back.tolist() == [[0, 1, 2], [3, 4, 5]] and back.dtype == np.int16


@needs_jaxlib
def test_parts_of_another_type_are_no_array() -> None:
    (device,) = jaxlib.cpu_client(1).devices()
    kind, where = jaxlib.array_type((2,), np.dtype(np.float32)), jaxlib.one_device(device)
    for wrong in (np.ones(2), np.ones(3, np.float32), np.ones((2, 1), np.float32)):
        with pytest.raises(TypeError, match=r"cannot be of float32\(2,\)"):
            jaxlib.put([wrong], kind, where, [device])


@needs_jaxlib
def test_tiles_of_arrays() -> None:
    devices = jaxlib.cpu_client(2).devices()
    parts = [np.zeros(2, np.float32), np.ones(2, np.float32)]
    rows = [slice(0, 2), slice(2, 4)]
    cut = jaxlib.tiled(devices, np.array([[0], [1]]), rows)
    assert cut.indices == tuple(rows) and cut.spanned == 2
    assert not cut._hlo_sharding.is_replicated()
    array = jaxlib.put(parts, jaxlib.array_type((4,), np.dtype("float32")), cut, devices)
    assert [p.tolist() for p in jaxlib.parts_on_host(array)] == [[0, 0], [1, 1]]
    twice = jaxlib.tiled(devices, np.array([[0], [1]]), rows)
    for part in (np.ones(2, np.float32), np.ones(0, np.float32)):  # copied from one place
        kind = jaxlib.array_type((2 * part.size,), part.dtype)
        array = jaxlib.put([part, part[:]], kind, twice, devices, shared=False)
        assert [p.tolist() for p in jaxlib.parts_on_host(array)] == [part.tolist()] * 2
    whole = jaxlib.tiled(devices, np.array([[0, 1]]), [slice(None)] * 2)
    assert whole._to_xla_hlo_sharding(1).is_replicated()


@needs_jaxlib
def test_programs_run_and_tell_what_they_are() -> None:
    client = jaxlib.cpu_client(1)
    device = client.devices()[0]
    kind = jaxlib.array_type((3,), np.dtype("float32"))
    where = jaxlib.one_device(device)
    text = """module @m { func.func public @main(%a: tensor<3xf32>) -> tensor<3xf32> {
    %0 = stablehlo.add %a, %a : tensor<3xf32>
    return %0 : tensor<3xf32> } }"""
    loaded = jaxlib.LoadedProgram(client, [device], text, [])
    loaded.gives([jaxlib.Result(kind, where)])
    array = jaxlib.put([np.float32([1, 2, 3])], kind, where, [device])
    (out,) = loaded.run([array])
    assert jaxlib.parts_on_host(out)[0].tolist() == [2, 4, 6] and not loaded.has_effects
    assert "HloModule" in loaded.hlo() and loaded.costs()["flops"] == 3
    assert loaded.memory().argument_size_in_bytes == 12
    with pytest.raises(jaxlib.runtime_errors()):
        jaxlib.LoadedProgram(client, [device], "module { no }", [])


@needs_jaxlib
def test_text_becomes_a_module() -> None:
    text = "func.func @main(%a: tensor<f32>) -> tensor<f32> { return %a : tensor<f32> }"
    assert "@main" in str(jaxlib.mlir_module(text))
    with pytest.raises(Exception, match=r"unregistered|not registered|Unable to parse"):
        jaxlib.mlir_module('"no.such"() : () -> ()')


@needs_jaxlib
def test_programs_for_several_devices_are_partitioned() -> None:
    devices = jaxlib.cpu_client(2).devices()
    assert jaxlib.compile_options(devices[:1]).num_partitions == 1
    options = jaxlib.compile_options(devices)
    assert options.num_partitions == 2
    assert options.executable_build_options.use_shardy_partitioner
