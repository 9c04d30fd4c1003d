"""Tracebacks show the user's frames."""

import subprocess
import sys
import traceback

import pytest

import calque
import calque.numpy as jnp

CODE = """
import calque, calque.numpy as jnp
def inner(x):
    return x @ jnp.ones(7)
def outer(x):
    return inner(x)
calque.jit(outer)(jnp.ones(3))
"""


def frames_of(e):
    return [
        f.name
        for f in traceback.extract_tb(e.__traceback__)
        if "calque" in f.filename and "tests" not in f.filename
    ]


def bad(x):
    raise ValueError("mine")


def test_frames_are_hidden_inside_jit():
    with pytest.raises(ValueError, match="mine") as e:
        calque.jit(bad)(1.0)
    assert (
        len(frames_of(e.value)) <= 1
        and traceback.extract_tb(e.value.__traceback__)[-1].name == "bad"
    )


def test_filtering_can_be_turned_off():
    with calque.config.override("calque_traceback_filtering", "off"):
        with pytest.raises(ValueError, match="mine") as e:
            calque.jit(bad)(1.0)
        assert len(frames_of(e.value)) > 3


def test_what_is_printed(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(CODE)
    r = subprocess.run([sys.executable, script], capture_output=True, text=True)
    assert r.returncode == 1 and "in inner" in r.stderr and "in outer" in r.stderr
    assert "/calque/" not in r.stderr and "incompatible shapes for contraction" in r.stderr


def test_library_errors_outside_of_jit():
    with pytest.raises(TypeError, match="incompatible shapes"):
        jnp.ones(2) + jnp.ones(3)
