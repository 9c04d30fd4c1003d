"""Variables of the environment whose values say nothing."""

import os
import subprocess
import sys
import warnings

import pytest

from calque.machine import variables


@pytest.fixture
def heard(monkeypatch):
    monkeypatch.setattr(variables, "_told", set())
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        yield found


@pytest.mark.parametrize("value", ["off", " OFF ", "0", "no", "False"])
def test_choices_in_any_letters(value, monkeypatch, heard) -> None:
    monkeypatch.setenv("CALQUE_TRIED", value)
    assert variables.choice("CALQUE_TRIED", variables.OFF) in variables.OFF and not heard


def test_a_value_that_is_no_choice_is_told_once(monkeypatch, heard) -> None:
    monkeypatch.setenv("CALQUE_TRIED", "offf")
    assert variables.choice("CALQUE_TRIED", ("on", "off")) == ""
    assert variables.choice("CALQUE_TRIED", ("on", "off")) == ""
    (warning,) = heard
    text = str(warning.message)
    assert "CALQUE_TRIED" in text and "'offf'" in text and "on, off" in text


@pytest.mark.parametrize(
    ("text", "bytes_"),
    [("0", 0), ("17", 17), ("4k", 4096), ("2M", 2 << 20), ("1 GiB", None), ("1GiB", 1 << 30),
     ("3GB", 3 << 30), ("1T", 1 << 40), ("", None)],
)  # fmt: skip
def test_sizes(text, bytes_, monkeypatch, heard) -> None:
    monkeypatch.setenv("CALQUE_TRIED", text)
    assert variables.size("CALQUE_TRIED", 5) == (5 if bytes_ is None else bytes_)
    assert len(heard) == (text == "1 GiB")


@pytest.mark.parametrize("text", ["much", "-1", "1.5G", "M", "12KK", "²"])
def test_sizes_that_say_nothing(text, monkeypatch, heard) -> None:
    monkeypatch.setenv("CALQUE_TRIED", text)
    assert variables.size("CALQUE_TRIED", 5) == 5
    assert "CALQUE_TRIED" in str(heard[0].message) and "512M" in str(heard[0].message)


def test_not_set(monkeypatch, heard) -> None:
    monkeypatch.delenv("CALQUE_TRIED", raising=False)
    assert (
        variables.choice("CALQUE_TRIED", ("on",)) == "" and variables.size("CALQUE_TRIED", 5) == 5
    )
    assert not heard


def test_every_variable_that_is_nonsense_is_told_by_name() -> None:
    nonsense = {
        "CALQUE_MEMORY_IDLE": "-1", "CALQUE_CACHE_SIZE": "much", "CALQUE_CALLPATH": "offf",
        "CALQUE_LINKER": "gold", "CALQUE_CACHE": "maybe",
    }  # fmt: skip
    code = "import calque.numpy as jnp; print(float((jnp.ones(3) + 1).sum()))"
    ran = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **nonsense}, capture_output=True, text=True
    )
    assert ran.returncode == 0 and ran.stdout.strip() == "6.0", ran.stderr
    for name, value in nonsense.items():
        assert ran.stderr.count(f"variable {name} is {value!r}") == 1, ran.stderr
