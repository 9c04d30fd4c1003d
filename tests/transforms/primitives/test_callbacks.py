"""Python called from inside programs: what it may return, lanes, failures."""

import logging
import sys

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core import pytrees
from calque.core.avals import ShapedArray
from calque.errors import JaxRuntimeError
from calque.transforms.primitives import callbacks
from calque.transforms.primitives.callbacks import (
    Fail,
    FlatCallback,
    io_callback_p,
    logger,
    pure_callback_p,
)

X = np.arange(3, dtype=np.float32)
SCALAR = calque.ShapeDtypeStruct((), np.float32)


def called(f, *leaves, out=None):
    tree = pytrees.structure((tuple(leaves), {}))
    return FlatCallback(f, tree, None if out is None else pytrees.structure(out))(*leaves)


def test_the_function_gets_arrays_and_runs_at_once():
    seen = []

    def f(x):
        seen.append((type(x), float(jnp.sin(x).sum())))
        return {"a": x + 1, "b": [2.0]}

    a, b = called(f, X, out={"a": 0, "b": [0]})
    assert isinstance(a, np.ndarray) and a.tolist() == [1, 2, 3] and float(b) == 2
    assert issubclass(seen[0][0], calque.Array) and seen[0][1] == pytest.approx(np.sin(X).sum())
    assert called(f, X) == []  # without results: whatever it returns is left
    with pytest.raises(RuntimeError, match="the callback f returned a value of structure"):
        called(f, X, out=(0, 0, 0))


def test_failures():
    class Mine(Exception):
        pass

    with pytest.raises(Mine, match=r"3.0"):
        called(Fail(lambda v: Mine(str(v))), np.float32(3))

    def broken(x):
        raise Mine("of the user") from KeyError("cause")

    with pytest.raises(Mine, match="of the user") as e:
        called(broken, X)
    assert isinstance(e.value.__cause__, KeyError)


@pytest.mark.parametrize(
    "out, ok",
    [
        (np.float64(1.0), True),  # of the same kind: converted
        (np.int32(1), True),
        (np.complex64(1j), False),
        (np.ones(1, np.float32), False),
    ],
)
def test_results_come_in_the_types_that_were_announced(out, ok):
    aval = ShapedArray((), np.float32)
    if ok:
        (got,) = callbacks._checked([np.asarray(out)], [aval], print)
        assert got.dtype == np.float32 and got.shape == ()
    else:
        with pytest.raises(JaxRuntimeError, match=r"output 0 .* result_shape_dtypes say f32\[\]"):
            callbacks._checked([np.asarray(out)], [aval], print)


@pytest.mark.parametrize(
    "out, dtype", [(np.float64(1), "float32"), (np.int64(1), "int32"), (1, "f8")]
)
def test_results_of_another_width_are_refused_where_there_are_64_bit_types(out, dtype):
    aval = ShapedArray((), np.dtype(dtype))
    with calque.enable_x64(True):
        with pytest.raises(RuntimeError, match="Incorrect output dtype for return value #0"):
            callbacks._checked([np.asarray(out)], [aval], print)
        (got,) = callbacks._checked([np.asarray(out, dtype)], [aval], print)
        f = calque.jit(lambda: calque.pure_callback(lambda: out, aval))
        with pytest.raises(Exception, match="result_shape_dtypes say"):
            f()
    assert got.dtype == aval.dtype


def lanes(method, n=3):
    """How often Python is called for so many lanes, and with what shapes; another operand is the
    same for all."""
    shapes = []

    def f(x, y):
        shapes.append((x.shape, y.shape))
        return np.asarray(x) + np.asarray(y)

    def one(x, y):
        return calque.pure_callback(f, SCALAR, x, y, vmap_method=method)

    run = calque.vmap(one, (0, None))
    got = calque.jit(run)(X[:n], np.float32(2))
    np.testing.assert_array_equal(got, X[:n] + 2)
    (e, *others) = calque.make_jaxpr(run)(X[:n], np.float32(2)).eqns
    return shapes, [q.primitive.name for q in (e, *others)].count("pure_callback")


def test_the_ways_of_vmap():
    assert lanes("sequential")[0] == [((), ())] * 3
    shapes, equations = lanes("sequential_unrolled")
    assert shapes == [((), ())] * 3 and equations == 3
    assert lanes("expand_dims") == ([((3,), (1,))], 1)
    assert lanes("broadcast_all") == ([((3,), (3,))], 1)
    assert lanes("legacy_vectorized") == ([((3,), ())], 1)


def test_derivatives_are_refused_in_the_words_of_the_kind():
    def pure(x):
        return calque.pure_callback(np.sin, SCALAR, x)

    def io(x):
        return calque.experimental.io_callback(np.sin, SCALAR, x)

    for f, kind in ((pure, "Pure"), (io, "IO")):
        with pytest.raises(ValueError, match=f"{kind} callbacks do not support JVP"):
            calque.grad(f)(1.0)
        assert float(calque.grad(lambda x, f=f: x * f(calque.lax.stop_gradient(x)))(1.0)) == (
            pytest.approx(np.sin(1))
        )


def test_order_of_effects_and_lanes():
    seen = []

    def f(x):
        return calque.experimental.io_callback(lambda v: seen.append(float(v)), None, x)

    calque.vmap(f)(X)
    calque.jit(calque.vmap(f))(X)
    assert sorted(seen[:3]) == sorted(seen[3:]) == [0, 1, 2]
    assert io_callback_p.effect and not pure_callback_p.effect


def test_a_failure_far_from_its_caller_is_logged(caplog):
    def lost(x):
        raise KeyError("lost")

    with caplog.at_level(logging.ERROR, logger="calque"), pytest.raises(KeyError, match="lost"):
        calque.pure_callback(lost, SCALAR, 1.0)
    assert "calque.pure_callback failed" in caplog.text


def test_a_part_has_a_logger_below_that_of_the_package(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    assert logger("callback").name == "calque.callback"
    assert logger("callback").parent.name == "calque"


def test_where_calque_is_served_as_jax_filters_of_its_programs_hold(monkeypatch, caplog):
    monkeypatch.setitem(sys.modules, "jax", calque)

    def fail(x):
        raise KeyError("lost")

    result = calque.ShapeDtypeStruct((), np.float32)
    with pytest.raises(KeyError, match="lost"):
        calque.block_until_ready(calque.jit(lambda x: calque.pure_callback(fail, result, x))(1.0))
    (record,) = caplog.records
    assert (record.name, record.getMessage()) == (
        "jax._src.callback",
        "jax.pure_callback failed",
    )
