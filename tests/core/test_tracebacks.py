"""Tracebacks show the user's frames."""

import contextlib
import os
import subprocess
import sys
import traceback

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core import tracebacks

CODE = """
import calque, calque.numpy as jnp
def inner(x):
    return x @ jnp.ones(7)
def outer(x):
    return inner(x)
calque.jit(outer)(jnp.ones(3))
"""


LIBRARY = os.path.dirname(calque.__file__)


def frames_of(e):
    return [f.name for f in traceback.extract_tb(e.__traceback__) if f.filename.startswith(LIBRARY)]


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


def scanned(x):
    return calque.lax.scan(lambda c, y: (bad(c), y), x, jnp.ones(3))


def chosen(x):
    return calque.lax.cond(True, bad, bad, x)


@calque.custom_jvp
def customised(x):
    return bad(x)


customised.defjvps(lambda t, out, x: t)


CALLS = {
    "grad": lambda: calque.grad(bad)(1.0),
    "value_and_grad": lambda: calque.value_and_grad(bad)(1.0),
    "jvp": lambda: calque.jvp(bad, (1.0,), (1.0,)),
    "vjp": lambda: calque.vjp(bad, 1.0),
    "linearize": lambda: calque.linearize(bad, 1.0),
    "jacfwd": lambda: calque.jacfwd(bad)(1.0),
    "jacrev": lambda: calque.jacrev(bad)(1.0),
    "hessian": lambda: calque.hessian(bad)(1.0),
    "vmap": lambda: calque.vmap(bad)(jnp.ones(2)),
    "jit of vmap": lambda: calque.jit(calque.vmap(bad))(jnp.ones(2)),
    "make_jaxpr": lambda: calque.make_jaxpr(bad)(1.0),
    "eval_shape": lambda: calque.eval_shape(bad, 1.0),
    "checkpoint": lambda: calque.checkpoint(bad)(1.0),
    "custom_jvp": lambda: customised(1.0),
    "scan": lambda: scanned(1.0),
    "cond": lambda: chosen(1.0),
    "while": lambda: calque.lax.while_loop(lambda x: x < 1, bad, 0.0),
    "map": lambda: calque.lax.map(bad, jnp.ones(2)),
    "associative_scan": lambda: calque.lax.associative_scan(lambda a, b: bad(a), jnp.ones(2)),
}


def raised(call):
    with pytest.raises(ValueError, match="mine") as e:
        call()
    return e.value


@pytest.mark.parametrize("name", CALLS)
def test_every_function_that_takes_functions_hides_its_frames(name):
    e = raised(CALLS[name])
    assert traceback.extract_tb(e.__traceback__)[-1].name == "bad"
    assert set(frames_of(e)) <= {"call"} and len(frames_of(e)) <= 1
    assert [n for n in e.__notes__ if "CALQUE_TRACEBACK_FILTERING" in n] == e.__notes__
    assert len(e.__notes__) == 1


@pytest.mark.parametrize(
    "call", [lambda: jnp.dot(jnp.ones(2), jnp.ones(3)), lambda: "a" @ jnp.ones(2)]
)
def test_functions_of_arrays(call):
    with pytest.raises(TypeError) as e:
        call()
    assert len(frames_of(e.value)) <= 1


def test_the_whole_traceback_as_a_cause():
    with calque.config.override("calque_traceback_filtering", "remove_frames"):
        e = raised(CALLS["vmap"])
    whole = e.__cause__
    assert type(whole).__name__ == "UnfilteredStackTrace" and len(frames_of(e)) <= 1
    assert len(frames_of(whole)) > 1 and "vmap" in str(whole) and not hasattr(e, "__notes__")


def test_frames_marked_as_hidden():
    with calque.config.override("calque_traceback_filtering", "tracebackhide"):
        e = raised(CALLS["grad"])
    shown = [
        f for f, _ in traceback.walk_tb(e.__traceback__) if "__tracebackhide__" not in f.f_locals
    ]
    assert [f.f_code.co_name for f in shown][-1] == "bad" and len(frames_of(e)) > 1
    assert not any("src/calque" in f.f_code.co_filename for f in shown)


def test_unknown_modes_are_refused():
    with pytest.raises(ValueError, match="traceback_filtering must be one of"):
        calque.config.update("calque_traceback_filtering", "sometimes")


def test_the_outermost_boundary_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    hidden: list[str] = []
    monkeypatch.setattr(tracebacks, "hide", lambda e: hidden.append(str(e)))

    @tracebacks.boundary
    def inner(message: str) -> None:
        raise ValueError(message)

    @tracebacks.boundary
    def outer(message: str) -> None:
        with contextlib.suppress(ValueError):
            inner("caught inside")
        inner(message)

    for message in ("first", "second"):
        with pytest.raises(ValueError, match=message):
            outer(message)
        with pytest.raises(ValueError, match="alone"):
            inner(f"alone after {message}")
    assert hidden == ["first", "alone after first", "second", "alone after second"]


def test_memory_that_is_not_there_is_told_in_words_of_our_own():
    with pytest.raises(MemoryError) as told:
        tracebacks.boundary(lambda: np.ones(2**45))()
    assert type(told.value) is MemoryError and told.value.__cause__ is None
    assert str(told.value).startswith("no memory for an array of shape (35184372088832,)")
    assert f"{2**48} bytes" in str(told.value)
