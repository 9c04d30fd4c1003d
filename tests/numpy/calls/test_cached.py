"""Library functions whose eager calls run as machine code: what is learned, and what is not."""

from types import SimpleNamespace

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.config import config
from calque.machine.call import functions as callpath
from calque.numpy.calls import cached as module
from calque.numpy.calls.cached import (
    CachedArguments,
    cached,
    flat_function,
    substituted,
    with_call_path,
)
from calque.transforms.jit.teaching import Inexpressible

X = jnp.arange(3.0)


def key(*args, **kwargs):
    return CachedArguments(args, kwargs).key


def test_keys_are_of_types_of_arrays_and_of_values_of_all_else():
    assert key(X, 2, axis=0) == key(X + 1, 2, axis=0)
    assert key(X, 1.5) == key(X, 2.5)  # a float is an operand
    for other in (
        key(X, 3, axis=0),
        key(X, 2, axis=1),
        key(X, 2, other=0),
        key(X, True, axis=0),
        key(X[:2], 2, axis=0),
        key([X], 2, axis=0),
    ):
        assert other != key(X, 2, axis=0)
    assert key([1, 2]) != key((1, 2)) and key((1,), 2) != key((1, 2))


def test_what_machine_code_cannot_recognise():
    placed = calque.device_put(
        X, calque.sharding.NamedSharding(calque.make_mesh((1,), ("x",)), calque.P("x"))
    )
    for a in (np.ones(2), {"a": 1}, object(), 1j, [np.ones(2)], placed):
        with pytest.raises(Inexpressible):
            key(a)
    assert CachedArguments((X, [X, 2.0], None), {"dtype": np.float32}).sizes == (3, 3)


def test_arrays_are_replaced_in_order():
    args = (X, [2.0, (X, 3)], None)
    got = [substituted(a, values, (type(X), float)) for values in [iter("abc")] for a in args]
    assert got == ["a", ["b", ("c", 3)], None]


def test_functions_whose_result_no_operation_makes_stay_python():
    fun, tree = flat_function(lambda x: {"s": x + 1}, CachedArguments((X,), {}))
    closed = calque.make_jaxpr(fun)(X)
    assert [e.primitive.name for e in closed.eqns] == ["add"] and tree[0].num_leaves == 1
    for f in (lambda x: x.shape[0], lambda x: (x, 3), lambda x: X):
        fun, _ = flat_function(f, CachedArguments((X,), {}))
        with pytest.raises(Inexpressible):
            calque.make_jaxpr(fun)(X)


@pytest.fixture
def asked():
    """A function, and the calls of it that ran Python."""
    log = []

    def f(x, n=1, *, out=None):
        log.append(n)
        return x * n

    return cached(f), log


needs_learning = pytest.mark.skipif(
    not callpath.LEARNS, reason="without machine code every call asks Python"
)


@needs_learning
def test_the_second_call_of_a_sort_is_the_last_in_python(asked):
    f, log = asked
    for _ in range(5):
        assert f(X, 2).tolist() == [0, 2, 4]
    before = len(log)
    assert f(X + 1, 2).tolist() == [2, 4, 6] and len(log) == before <= 3
    assert f(X, 3).tolist() == [0, 3, 6] and len(log) == before + 1  # another sort
    assert f.__wrapped__ is not None and f.__name__ == "f"


@needs_learning
def test_what_cannot_be_taught_is_refused_once(monkeypatch):
    tried = []
    teach = module.Teacher.teach
    monkeypatch.setattr(
        module.Teacher,
        "teach",
        lambda self, *a: tried.append((self, teach(self, *a))) or tried[-1][1],
    )
    f = cached(lambda x: float(x.sum()) * 2)
    assert [f(X) for _ in range(5)] == [6.0] * 5
    assert [came for t, came in tried if t.f is f.__wrapped__] == [module.REFUSED]


def calls(f, args, n):
    """How many of so many calls run Python, and their results."""
    ran = []
    g = cached(lambda *a: ran.append(1) or f(*a))
    return g, [g(*args) for _ in range(n)], ran


@needs_learning
def test_what_has_no_steps_is_a_whole_program_when_it_came_often(monkeypatch):
    """With the bits of the calls before: sums of a gather, a solution, random numbers."""
    monkeypatch.setattr(module, "OFTEN", 6)
    a = jnp.array([[4.0, 1.0], [1.0, 3.0]])
    key = calque.random.key(3)
    for f, args in (
        (lambda x, i: jnp.sin(x[i]).sum(), (X, jnp.array([2, 0, 2]))),
        (lambda a, b: jnp.linalg.solve(a, b), (a, X[:2])),
        (lambda a: jnp.linalg.slogdet(a), (a,)),
        (lambda k: calque.random.normal(k, (5,)), (key,)),
        (lambda k: list(calque.random.split(k)), (key,)),
    ):
        g, results, ran = calls(f, args, 12)
        before = len(ran)
        assert before < 12
        got = g(*args)
        assert len(ran) == before
        first, last = (calque.tree.leaves(r) for r in (results[0], got))
        for x, y in zip(first, last, strict=True):
            x, y = (calque.random.key_data(v) if v.dtype == key.dtype else v for v in (x, y))
            assert np.asarray(x).tobytes() == np.asarray(y).tobytes()


@needs_learning
@pytest.mark.parametrize(
    "f",
    [
        lambda x, i: x[i] @ x[i],
        lambda x, i: calque.lax.fori_loop(0, 3, lambda _, v: v[i] * 1.1 + 0.3, x),
        lambda x, i: calque.random.gamma(calque.random.key(0), x[i] + 1),
    ],
)
def test_what_exact_mode_rounds_otherwise_runs_one_equation_after_the_other(f, monkeypatch):
    """Products and loops of floats: their own kernels add products without a rounding between."""
    monkeypatch.setattr(module, "OFTEN", 3)
    asked = []
    compile_ = module.backend.compile

    def compile_noted(closed, options):
        if options.name != "getitem":  # which is a call of its own in steps
            asked.append(options)
        return compile_(closed, options)

    monkeypatch.setattr(module, "backend", SimpleNamespace(compile=compile_noted))
    args = (jnp.linspace(0.1, 0.9, 3), jnp.array([2, 0, 2]))
    _, results, ran = calls(f, args, 12)
    assert not asked and len({np.asarray(r).tobytes() for r in results}) == 1
    assert len(ran) < 12
    with config.override("calque_exact", True):
        _, results, _ = calls(f, args, 12)
    assert asked and len({np.asarray(r).tobytes() for r in results}) == 1


@needs_learning
def test_what_no_whole_program_serves_runs_its_meanings(monkeypatch):
    monkeypatch.setattr(module, "OFTEN", 4)
    monkeypatch.setattr(module, "whole", lambda f, arguments: 1 / 0)
    monkeypatch.setattr(module, "apart", lambda f, arguments: 1 / 0)
    g, results, ran = calls(lambda x, i: x[i], (X, jnp.array([2, 0])), 9)
    assert [r.tolist() for r in results] == [[2.0, 0.0]] * 9 and len(ran) < 9


@needs_learning
@pytest.mark.parametrize("forward", [True, False])
def test_functions_with_rules_of_their_own_keep_their_bits(forward, monkeypatch):
    """Their equations run one by one in eager calls, and so they do when they are learned."""
    monkeypatch.setattr(module, "OFTEN", 3)

    def plain(x, y):
        return (x @ y) * y + 1.1

    if forward:
        inner = calque.custom_jvp(plain)
        inner.defjvp(lambda xs, ts: (inner(*xs), ts[1]))
    else:
        inner = calque.custom_vjp(plain)
        inner.defvjp(lambda x, y: (inner(x, y), None), lambda _, ct: (ct, ct))
    x, i = jnp.linspace(0.1, 0.9, 7), jnp.array([2, 0, 2, 5, 6, 1, 3])
    _, results, ran = calls(lambda x, i: inner(x[i], x), (x, i), 12)
    assert len(ran) < 12 and len({np.asarray(r).tobytes() for r in results}) == 1


@needs_learning
def test_what_was_jitted_is_no_row_of_equations(monkeypatch):
    """It is one program where it runs by itself, of which products and sums are rounded once."""
    monkeypatch.setattr(module, "OFTEN", 3)
    inner = calque.jit(lambda x, y: x * y + 1.1)
    x, i = jnp.linspace(0.1, 0.9, 7), jnp.array([2, 0, 2, 5, 6, 1, 3])
    for f in (lambda x, i: inner(x[i], x), lambda x, i: inner(x, x)):
        _, results, _ = calls(f, (x, i), 12)
        assert len({np.asarray(r).tobytes() for r in results}) == 1


@needs_learning
def test_a_whole_program_has_no_effects(monkeypatch):
    monkeypatch.setattr(module, "OFTEN", 2)
    seen = []

    def f(x):
        calque.debug.callback(lambda v: seen.append(float(v)), x.sum())
        return x[jnp.array([1])]

    g, _, ran = calls(f, (X,), 8)
    assert len(seen) == 8 <= len(ran)


@needs_learning
def test_what_names_64_bits_is_told_of_each_time_and_served_with_32():
    log = []

    def f(x, dtype, mode="kept"):
        log.append(dtype)
        return jnp.astype(x, dtype) if dtype != "nested" else jnp.astype(x, "float64")

    f = cached(f)
    for dtype in ("float64", np.float64, np.dtype("float64"), jnp.float64):
        for _ in range(4):
            with pytest.warns(UserWarning, match="float64 is not available"):
                assert f(X, dtype, mode="kept").dtype == np.float32
    before = len(log)
    for call in (lambda: f(X, "float64", mode="kept"), lambda: f(X, np.float64, mode="kept")):
        with pytest.warns(UserWarning, match="float64 is not available"):
            call()
    assert len(log) == before
    for _ in range(4):  # which argument it is cannot be seen: each call runs Python
        with pytest.warns(UserWarning, match="float64 is not available"):
            f(X, "nested")
    assert log.count("nested") >= 4


def test_what_is_wrong_shows_in_the_call_itself():
    f = cached(lambda x, axis: jnp.sum(x, axis))
    for _ in range(4):
        with pytest.raises(ValueError, match="axis 3 is out of bounds"):
            f(X, 3)


def test_entries_are_for_the_configuration_that_they_were_made_in():
    f = cached(lambda x: jnp.multiply(x, 2))
    for _ in range(4):
        assert f(1.0).dtype == np.float32
    with config.override("enable_x64", True):
        for _ in range(4):
            assert f(1.0).dtype == np.float64
    assert f(1.0).dtype == np.float32


def test_ufuncs_keep_what_they_offer():
    def f(x):
        return x

    f.outer, f.reduce = len, max
    f.__module__ = "elsewhere"
    made = with_call_path("f", f)
    assert made.outer is len and made.reduce is max and jnp.add.nin == 2
    with pytest.raises(AttributeError, match="nin"):
        made.nin
    assert with_call_path("f", len) is len
