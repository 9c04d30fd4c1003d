"""The step from a program to machine code, watched and forbidden."""

import pytest

import calque
import calque.numpy as jnp
from calque.compat.private import compiler


def test_compilations_can_be_forbidden(monkeypatch):
    def forbid(backend, *args):
        raise RuntimeError(f"no compilation for {backend.platform}")

    f = calque.jit(lambda x: x * 3 + 1)
    monkeypatch.setattr(compiler, "backend_compile_and_load", forbid)
    with pytest.raises(RuntimeError, match="no compilation for cpu"):
        f(jnp.ones(3))
    monkeypatch.undo()
    assert f(jnp.ones(3)).tolist() == [4, 4, 4]


def test_every_compilation_is_seen_and_no_other_call(monkeypatch):
    seen = []
    monkeypatch.setattr(compiler, "backend_compile_and_load", lambda b, *a: seen.append(b.platform))
    f = calque.jit(lambda x: x * 5 - 2)
    x = jnp.ones(3)
    before = len(seen)
    assert f(x).tolist() == [3, 3, 3]
    first = len(seen)
    f(x)
    assert first > before and len(seen) == first and set(seen) == {"cpu"}
