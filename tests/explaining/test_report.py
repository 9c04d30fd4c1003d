"""`explain`, the counters, and the reasons of retraces."""

import itertools

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.core.config import config
from calque.explaining import report
from calque.explaining.effects import side_effects
from calque.machine.call import functions as callpath
from calque.native import stored
from calque.transforms.jit.retraces import RetraceError

SCALE = 7.25


def scaled(x):
    return jnp.sin(x) * SCALE


def test_every_part_is_there():
    r = jax.explain(jax.jit(scaled), jnp.ones(3))
    assert (
        r.name == "scaled"
        and r.signature == [("x", "f32[3]")]
        and r.kernels == 1
        and r.host_calls == []
    )
    assert (
        [c.name for c in r.captured] == ["SCALE"]
        and r.effects == []
        and r.unrolled == []
        and r.retraced == ""
    )
    assert (
        r.costs["flops"] > 0
        and "lambda ;" in r.jaxpr
        and "for d0" in r.loops
        and len(r.assembly) > 100
    )
    text = str(r)
    for word in (
        "Signature",
        "x: f32[3]",
        "Passes",
        "1 kernel",
        "SCALE = 7.25",
        "Side effects",
        "Memory",
        "traced once",
    ):
        assert word in text


def test_host_calls_and_kernels_are_counted():
    r = jax.explain(lambda x: jnp.linalg.eigvals(x).sum(), jnp.eye(3))
    assert "eig" in r.host_calls and "eig x1" in str(r)


def test_side_effects_are_named_with_their_lines():
    seen, box = [], {}

    def noisy(x):
        global SCALE
        print("hello")
        seen.append(1)
        box["k"] = 2
        SCALE = SCALE + 0
        local = []
        local.append(x)
        return x + 1

    words = [e.what for e in jax.explain(noisy, 3.0).effects]
    assert words == [
        "print()",
        "seen.append()",
        "an item of box is assigned",
        "the global SCALE is assigned",
    ]
    assert all(e.line for e in jax.explain(noisy, 3.0).effects)


def test_items_and_attributes_of_what_is_captured():
    table = {"a": [0]}

    def f(self, x):
        table["a"][0] = 1
        table["n"] += 1
        self.cache["x"] = x
        del table["n"], self.y
        own = {}
        own["x"] = own["y"] = 1
        return x

    words = [e.what for e in side_effects(f)]
    assert words == [
        "an item of table is assigned",
        "an item of cache is assigned",
        "an item of table is deleted",
        "the attribute y is deleted",
    ]


def test_unrolled_loops_are_named():
    def f(x):
        for _ in range(40):
            x = x * 1.5
        return x

    r = jax.explain(f, 1.0)
    assert [n for _, n in r.unrolled] == [40] and "lax.scan" in str(r)


def test_free_sizes_and_their_guards():
    f = jax.jit(lambda x: x[2:].sum())
    for n in (5, 6):
        f(jnp.ones(n))
    traces = jax.stats()["traces"]
    r = jax.explain(f, jnp.ones(7))
    assert "n - 2 >= 0" in r.guards and r.sizes == {"n": 7} and r.signature == [("x", "f32[n]")]
    assert (
        r.memory.argument_size_in_bytes == 28
        and r.costs["flops"] > 0
        and "for d0 < (n0 + -2)" in r.loops
    )
    text = str(r)
    assert (
        "n = 7" in text
        and "f32[n]" in text
        and len(r.assembly) > 100
        and "f32[n]" in r._repr_html_()
    )
    assert jax.stats()["traces"] == traces  # the program that serves the call, not another one
    assert jax.explain(f, jnp.ones(5)).sizes == {}


def test_why_it_was_retraced():
    f = jax.jit(lambda x, y=1: x + y)
    f(jnp.ones(3))
    f(jnp.ones(3, jnp.int32))
    assert (
        jax.explain(f, jnp.ones(3, jnp.int32)).retraced
        == "argument x is int32[3], it was float32[3]"
    )
    f((1.0, 2.0)[0])
    assert "float32[] (weakly typed)" in jax.explain(f, 1.0).retraced
    text = str(jax.explain_retraces())
    assert "argument x is int32[3], it was float32[3]" in text and "test_report.py" in text


def test_statics_structures_and_captures_as_reasons(monkeypatch):
    f = jax.jit(lambda x, n: x["a"] * n, static_argnums=1)
    f({"a": 1.0}, 2)
    f({"a": 1.0}, 3)
    assert jax.explain_retraces()[-1][1] == "the static argument 1 is 3"
    g = jax.jit(lambda x: jnp.asarray(jax.tree.leaves(x)[0]))
    g((1.0,))
    g([1.0])
    assert "the arguments are" in jax.explain_retraces()[-1][1]
    h = jax.jit(lambda x: x * SCALE, on_stale="retrace")
    h(1.0)
    monkeypatch.setitem(globals(), "SCALE", 8.0)
    h(1.0)
    assert jax.explain_retraces()[-1][1] == "the captured value SCALE has changed"


def test_no_retrace():
    f = jax.jit(lambda x: x * 2)
    with jax.no_retrace():
        f(jnp.ones(3))
        f(jnp.ones(3))
        with pytest.raises(RetraceError, match=r"argument x is int32\[3\], it was float32\[3\]"):
            f(jnp.ones(3, jnp.int32))
    f(jnp.ones(3, jnp.int32))


def test_stats_count():
    before = jax.stats()
    x = jnp.ones(3, np.float32)
    jax.jit(lambda x: x * 1.2345 + jnp.cos(x) * 0.321)(x)
    after = jax.stats()
    assert after["traces"] == before["traces"] + 1
    found = sum(
        after[k] - before[k] for k in ("compiles", "kernels_from_disk", "kernels_from_memory")
    )
    assert found >= 1 and after["bytes_in_use"] > 0


def test_calls_are_counted():
    f, x = jax.jit(lambda x: x * 3.5), jnp.ones(3)
    before = jax.stats()
    for _ in range(100):
        f(x)
    after = jax.stats()
    assert after["calls"] - before["calls"] == 100
    through = after["calls_through_python"] - before["calls_through_python"]
    assert through <= 3 if callpath.LEARNS else through == 100


def test_what_is_no_function():
    with pytest.raises(TypeError, match="a function is needed"):
        jax.explain(3)


def test_passes_and_lines_are_counted():
    closed = jax.make_jaxpr(lambda x: (jax.jit(jnp.sin)(x) + jnp.sin(x) * 0, jnp.cos(x))[0])(1.0)
    passes = report.counted_passes(closed)
    before, after = passes[0][1], passes[-1][2]
    assert before == report.count(closed.jaxpr) == 6 and after <= 4
    assert all(a[2] == b[1] for a, b in itertools.pairwise(passes))
    assert all("_" not in name for name, _, _ in passes)


def test_loops_of_python_make_many_equations_on_one_line():
    def f(x):
        for _ in range(report.UNROLLED):
            x = jnp.sin(x)
        for _ in range(report.UNROLLED - 1):
            x = jnp.cos(x)
        return x

    first = f.__code__.co_firstlineno
    assert report.unrolled_lines(jax.make_jaxpr(f)(1.0).jaxpr) == [(first + 2, report.UNROLLED)]


def test_long_listings_are_clipped():
    assert report.clipped("a" * report.LONGEST) == "a" * report.LONGEST
    text = report.clipped("a" * (report.LONGEST + 1500))
    assert text.endswith("... 1,500 more characters") and len(text) < report.LONGEST + 50


def test_a_program_that_another_process_planned_is_explained_as_well():
    def made():
        def layers(x):
            for k in range(12):
                x = jnp.sin(x * k) + x.sum(0)
            return x

        return jax.jit(layers)

    with config.override("calque_verify_kernels", False):  # which asks for a plan in any case
        first = jax.explain(made(), jnp.ones((3, 4)))
        jax.clear_caches()
        found = stored.stats.found
        second = jax.explain(made(), jnp.ones((3, 4)))
    assert stored.stats.found > found
    assert second.loops == first.loops and second.kernels == first.kernels > 0
    assert "Machine code" in str(second) and second.assembly
