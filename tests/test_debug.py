import bdb
import io
import sys

import pytest

import calque
import calque.numpy as jnp
from calque import debug


@calque.jit
def stopping(x):
    y = 2 * x
    n = 3
    tree = {"a": x, "n": n}
    calque.debug.breakpoint(z=y + 1)
    return tree["a"] * n


@pytest.fixture
def session(monkeypatch, capsys):
    """Run something with these commands at the debugger's prompt; what was printed."""

    def run(call, *commands):
        monkeypatch.setattr(sys, "stdin", io.StringIO("\n".join(commands) + "\n"))
        call()
        return capsys.readouterr().out

    return run


def test_variables_of_the_function(session):
    out = session(
        lambda: stopping(1.0),
        "p float(x), float(y), n, int(tree['n']), float(z), list(values)",
        "p __name__",
        "c",
    )
    assert "(1.0, 2.0, 3, 3, 3.0, ['z'])" in out and __name__ in out
    assert (
        "in stopping" in out
        and "calque.debug.breakpoint(z=y + 1)" in out
        and "debug.py" not in out.replace(__file__, "")
    )


def test_under_transformations(session):
    out = session(
        lambda: calque.vmap(stopping)(jnp.arange(2.0)), "p float(x)", "c", "p float(x)", "c"
    )
    assert "(Pdb) 0.0" in out and "(Pdb) 1.0" in out
    out = session(lambda: calque.grad(stopping)(5.0), "p float(y)", "c")
    assert "(Pdb) 10.0" in out
    out = session(lambda: stopping.__wrapped__(jnp.float32(4)), "p float(z)", "c")
    assert "(Pdb) 9.0" in out


def test_frames_that_are_shown(session):
    def f(x):
        calque.debug.breakpoint(num_frames=1)
        return x

    out = session(lambda: f(1.0), "c")
    assert out.count('File "') == 1 and "in f" in out
    with pytest.raises(ValueError, match="num_frames must be at least 1"):
        calque.debug.breakpoint(num_frames=0)
    with pytest.raises(ValueError, match="only backend is 'cli'"):
        calque.debug.breakpoint(backend="web")


def test_printing_of_values(capsys: pytest.CaptureFixture[str]) -> None:
    debug.print("x = {x}", x=jnp.arange(2))
    calque.jit(lambda x: debug.callback(print, x + 1))(1)
    assert capsys.readouterr().out.splitlines() == ["x = [0 1]", "2"]


def test_visualising(capsys: pytest.CaptureFixture[str]) -> None:
    debug.visualize_array_sharding(jnp.ones((4, 4)))
    assert "CPU 0" in capsys.readouterr().out
    with pytest.raises(ValueError, match="1 and 2 dimensions"):
        debug.visualize_array_sharding(jnp.ones((2, 2, 2)))


def test_quitting_a_breakpoint_ends_the_program(monkeypatch) -> None:
    """What the debugger raises comes out as it is, not as the failure of a callback."""
    monkeypatch.setattr(sys, "stdin", io.StringIO("q\n"))
    with pytest.raises(bdb.BdbQuit) as e:
        stopping(1.0)
    assert type(e.value) is bdb.BdbQuit and "Callback" not in str(e.value)
