"""The bounds that docs/accuracy.md states, on fewer numbers than it was measured with."""

import importlib.util
import pathlib
import re
import sys
import zlib
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax

ROOT = pathlib.Path(__file__).resolve().parent.parent
pytest.importorskip("mpmath")


def load() -> ModuleType:
    spec = importlib.util.spec_from_file_location(
        "measure_accuracy", ROOT / "tools" / "measure_accuracy.py"
    )
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


accuracy = load()
MOST = 2.0


@pytest.mark.parametrize("name", accuracy.FUNCTIONS)
def test_real_numbers(name: str) -> None:
    for dtype in accuracy.HALF:
        assert accuracy.worst(name, accuracy.halves(dtype)[::7])[0] <= 0.51
    # each function sees other numbers
    for x in accuracy.singles(60_013, zlib.crc32(name.encode()) % 60_013):
        error, at = accuracy.worst(name, x)
        assert error <= MOST, (error, at)
    error, at = accuracy.worst_double(name, 20)
    assert error <= MOST, (error, at)


def test_atanh_where_its_quotient_mattered() -> None:
    """Every number beside those that were more than two last places off."""
    near = np.float32([0.17273006, 0.17772403, 0.1817438]).view(np.int32)
    bits = near[:, None] + np.arange(-20_000, 20_000)
    assert accuracy.worst("atanh", bits.ravel().astype(np.int32).view(np.float32))[0] < MOST


def test_erf_inv_where_its_polynomial_mattered() -> None:
    """Every number beside one that was more than two last places off."""
    bits = int(np.float32(0.035232037).view(np.int32)) + np.arange(-20_000, 20_000)
    assert accuracy.worst("erf_inv", bits.astype(np.int32).view(np.float32))[0] < 1.9


@pytest.mark.parametrize("name", ["exp", "log", "sin"])
def test_compiled_code_finds_the_largest_error(name: str) -> None:
    """Of every thousandth float32: as it is found by NumPy's function of float64."""
    stride = 1 << 10
    error, at = accuracy.worst_single(name, stride, 5)
    slow = max(accuracy.worst(name, x)[0] for x in accuracy.singles(stride, 5))
    assert abs(error - slow) < 1e-6 and error < MOST
    assert accuracy.worst(name, np.full(1, at, np.float32))[0] == pytest.approx(error)


@pytest.mark.parametrize("wrong", [np.nan, np.inf, 1.0])
def test_compiled_code_finds_the_one_number_that_is_wrong(wrong: float, monkeypatch: Any) -> None:
    at = np.float32(3)

    def planted(x: Any) -> Any:
        right = lax.exp(x)
        return jnp.where(x == at, np.float32(wrong), right) if x.dtype == at.dtype else right

    monkeypatch.setattr(lax, "planted", planted, raising=False)
    bits = at.view(np.uint32)
    with calque.enable_x64(True):
        error, found = accuracy.measured_singles("planted")(bits - np.uint32(1000), np.uint32(1))
    assert error > 1000 and int(found) == bits


@pytest.mark.parametrize("wrong", [np.nan, np.inf, -1.0, 1.0 + 2.0**-20])
def test_the_one_number_that_is_wrong_is_found(wrong: float, monkeypatch: Any) -> None:
    """Though only numbers with large errors are measured exactly."""
    x = np.linspace(1, 2, 1001, dtype=np.float32)
    right = np.exp(x)
    found = np.where(np.arange(1001) == 77, np.float32(wrong) * right, right)
    monkeypatch.setattr(accuracy, "run", lambda name, x: found)
    error, at = accuracy.worst("exp", x)
    assert error > 5 and at == x[77]


@pytest.mark.parametrize("name", [n for n, f in accuracy.FUNCTIONS.items() if f.complex])
def test_complex_numbers(name: str) -> None:
    for dtype in (np.complex64, np.complex128):
        error, at = accuracy.worst_complex(name, dtype, 30)
        assert error <= MOST, (error, at)


def test_new_rows_take_the_places_of_their_functions_alone() -> None:
    page = f"above\n{accuracy.BEGIN}\n| 函数 |\n|---|\n| f | 1 |\n| g | 2 |\n{accuracy.END}\nbelow"
    assert accuracy.with_rows(page, ["| f | 3 |"]) == page.replace("1", "3")


def test_every_function_of_one_float_is_in_the_table() -> None:
    page = (ROOT / "docs" / "accuracy.md").read_text()
    table = page.partition(accuracy.BEGIN)[2].partition(accuracy.END)[0]
    assert re.findall(r"^\| `(\w+)` \|", table, re.M) == [*accuracy.FUNCTIONS]
    assert all(hasattr(lax, name) for name in accuracy.FUNCTIONS)
