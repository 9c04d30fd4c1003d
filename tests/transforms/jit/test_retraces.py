"""What was traced more than once, and why."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.transforms.jit.retraces import RetraceError


def reasons(f, name):
    return [why for seen, why in calque.explain_retraces() if name in str(seen)]


def test_each_reason_names_what_differs():
    @calque.jit
    def varied(x, y=None, *, scale=1):
        return x * scale

    varied(np.ones(2, np.float32))
    varied(np.ones(2, np.int32))
    varied(np.ones((2, 2), np.float32))
    varied({"a": 1.0}["a"])
    found = reasons(varied, "varied")
    assert len(found) == 3
    assert "int32" in found[0] and "float32" in found[0]
    assert "[2,2]" in found[1] or "2, 2" in found[1]


def test_static_values():
    @calque.jit
    def plain(x, n):
        return x * n

    stepped = calque.jit(lambda x, n: x * n, static_argnums=1)
    for n in (2, 3):
        plain(1.0, n)
        stepped(1.0, n)
    assert reasons(plain, "plain") == [] and len(reasons(stepped, "<lambda>")) >= 1


def test_a_second_trace_may_be_forbidden():
    @calque.jit
    def once(x):
        return x + 1

    with calque.no_retrace():
        once(1.0)
        once(2.0)
        with pytest.raises(RetraceError, match="once"):
            once(jnp.arange(3))
    once(jnp.arange(4))  # outside it may


def test_the_table_is_text():
    f = calque.jit(lambda x: x - 1)
    f(1.0)
    f(1)
    text = str(calque.explain_retraces())
    assert "<lambda>" in text and len(text.splitlines()) >= 1
