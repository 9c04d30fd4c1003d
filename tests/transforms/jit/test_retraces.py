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
    def with_a_number(x, n):
        return x * n

    stepped = calque.jit(lambda x, n: x * n, static_argnums=1)
    for n in (2, 3):
        with_a_number(1.0, n)
        stepped(1.0, n)
    assert reasons(with_a_number, "with_a_number") == [] and len(reasons(stepped, "<lambda>")) >= 1


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


def test_misses_are_explained_in_the_log(caplog):
    f = calque.jit(lambda x, y=None: x + 1)
    with calque.explain_cache_misses(), caplog.at_level("WARNING"):

        def said(*args):
            caplog.clear()
            f(*args)
            return caplog.text

        assert "never seen function" in said(np.float32(1))
        weak = said(1.0)
        assert "now f32[]{weak_type=True} and before f32[]{weak_type=False}" in weak
        assert "type_promotion.html#weak-types" in weak
        f(np.float32(1), np.float32(2))
        assert "at y, now i32[] and before f32[]" in said(np.float32(1), np.int32(1))
        assert "different input pytree" in said(np.float32(1), ())
        with calque.numpy_rank_promotion("warn"):
            assert "different tracing context:\n    * now warn and before allow" in said(1.0)
        f(np.ones(2, np.float32))
        assert "at x, now f32[3] and before f32[2]" in said(np.ones(3, np.float32))


def test_stages_of_compiling_are_told_in_detail(caplog):
    with caplog.at_level("DEBUG", logger="calque"):
        calque.jit(lambda x: x * 3 - 1)(1.5)
    assert [r.message.split()[0] for r in caplog.records] == ["Finished", "Compiling", "Finished"]
    caplog.clear()
    calque.jit(lambda x: x * 3 - 2)(1.5)
    assert not caplog.records


def test_the_list_of_retraces_shows_words():
    f = calque.jit(lambda x: x + 1)
    f(jnp.ones(3)), f(jnp.arange(3))
    shown = str(list(calque.explain_retraces()))
    assert ("object at" not in shown and "f32[3]" in shown) or "i32[3]" in shown
