"""`calque.profile`."""

import json

import pytest

import calque as jax
import calque.numpy as jnp
from calque import lax
from calque.native.emit import kernels
from calque.profiling.report import duration, quantity
from tests.xla.mlir import needs_jaxlib


def layer(x, w):
    return jnp.tanh(x @ w)


def model(x, w):
    y = layer(x, w)
    return jnp.sin(y).sum(0)


X, W = jnp.ones((200, 100)), jnp.ones((100, 50))


def test_the_table_says_where_the_time_goes():
    report = jax.profile(jax.jit(model), X, W)
    assert report.calls >= 1 and report.seconds > 0 and report.name == "model"
    product = next(r for r in report.rows if r.name.startswith("matmul tanh"))
    assert product.function == "model" and product.kind == "kernel" and product.turns == 1
    assert product.code == "return jnp.tanh(x @ w)"
    assert product.line == layer.__code__.co_firstlineno + 1 and product.file == __file__
    assert 0 < product.share <= 1 and product.of_limit > 0 and product.limit in ("flops", "bytes")
    assert product.flops_per_second * product.seconds == pytest.approx(2 * 200 * 100 * 50, rel=0.2)
    assert [r.seconds for r in report.rows] == sorted([r.seconds for r in report.rows])[::-1]
    text = str(report)
    for word in ("model: ", "of limit", "matmul tanh", "test_report.py:", "flop/s", "in Python"):
        assert word in text
    assert report.elapsed == pytest.approx(report.compiled_seconds + report.python_seconds)


def test_host_calls_are_named():
    report = jax.profile(jax.jit(lambda x: jnp.linalg.eigvals(x).real.sum()), jnp.eye(3))
    assert [r.name for r in report.host_calls] == ["eig"]
    assert "host call eig" in str(report) and "in host calls" in str(report)


def test_functions_that_are_not_jitted():
    def steps(x):
        for _ in range(3):
            x = lax.cbrt(x)
        return jax.jit(model)(x, W)

    rows = jax.profile(steps, X).rows
    (single,) = [r for r in rows if r.name == "cbrt"]
    assert single.turns == 3 and single.function == "single operation"
    assert single.code == "x = lax.cbrt(x)" and single.file == __file__
    assert any(r.function == "model" for r in rows)


def test_single_operations_are_told_apart_by_the_lines_that_call_them():
    def steps(x):
        a = lax.cbrt(x)
        for _ in range(3):
            a = lax.cbrt(a)
        s = jnp.linalg.svd(W.T, compute_uv=False)
        return jnp.sort(a), jnp.sort(s), X @ W

    rows = jax.profile(steps, X).rows
    roots = {r.code: r for r in rows if r.name == "cbrt"}
    assert {code: r.turns for code, r in roots.items()} == {
        "a = lax.cbrt(x)": 1,
        "a = lax.cbrt(a)": 3,
    }
    assert {r.function for r in rows} == {"single operation"}
    named = {r.name: r.code.split(" ")[0] for r in rows if r.kind == "routine"}
    assert named["svd"] == "s" and named["sort"] == "return"
    assert all(r.file == __file__ for r in rows if r.kind == "kernel")


def test_kernels_that_left_the_table_keep_their_names():
    lax.cbrt(X)
    kernels._codes.clear()
    (row,) = jax.profile(lax.cbrt, X).rows
    assert row.name == "cbrt"


def test_donated_arguments_are_copied():
    x = jnp.ones(1000)
    report = jax.profile(jax.jit(lambda x: x + 1, donate_argnums=0), x)
    assert not x.is_deleted() and [r.name for r in report.rows] == ["add"]


def test_nothing_compiled_and_no_function():
    assert "no compiled program has run" in str(jax.profile(lambda: 3))
    with pytest.raises(TypeError, match="a function is needed"):
        jax.profile(3)


def test_the_timeline(tmp_path):
    path = tmp_path / "trace.json"
    jax.profile(jax.jit(model), X, W).save(str(path))
    events = json.loads(path.read_text())["traceEvents"]
    assert any(
        e["name"].startswith("matmul tanh") and e["args"]["function"] == "model" for e in events[1:]
    )


def test_an_exception_of_the_function_is_its_own():
    def fails(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        jax.profile(fails, X)


def test_times_and_quantities_have_three_digits():
    assert [duration(s) for s in (2.5, 0.0123456, 4.56e-5, 7e-9)] == [
        "2.5 s",
        "12.3 ms",
        "45.6 us",
        "7 ns",
    ]
    assert [quantity(x) for x in (2.5e12, 1.234e10, 999, 4500)] == [
        "2.5 T",
        "12.3 G",
        "999 ",
        "4.5 k",
    ]


@needs_jaxlib
def test_programs_of_xla_are_timed_as_a_whole(tmp_path):
    f = jax.jit(model, backend="xla_cpu")
    report = jax.profile(f, X, W)
    (row,) = [r for r in report.rows if r.kind == "XLA"]
    assert (row.name, row.function, row.turns) == ("jit_model", "model", 1)
    assert row.file == __file__ and row.line == layer.__code__.co_firstlineno + 1
    assert model.__code__.co_firstlineno + 2 in row.other_lines
    assert row.flops_per_second * row.seconds > 2 * 200 * 100 * 50
    assert row.bytes_per_second > 0 and row.threads is None and row.of_limit is None
    text = str(report)
    assert "timed as a whole" in text and "XLA jit_model" in text and "not known here" in text
    assert report.compiled_seconds == pytest.approx(row.seconds)
    report.save(str(tmp_path / "t.json"))
    events = json.loads((tmp_path / "t.json").read_text())["traceEvents"]
    one = next(e for e in events if e.get("cat") == "XLA")
    assert one["name"] == "model" and one["args"]["executable"] == "jit_model"
    assert one["args"]["flops"] > 0 and one["args"]["bytes"] > 0
    assert "report.py:" in one["args"]["called"] and __file__ in one["args"]["line"]
    assert "timed as a whole" not in str(jax.profile(jax.jit(model, backend="cpu"), X, W))
