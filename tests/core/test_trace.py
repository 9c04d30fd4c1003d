"""Evaluation and recording: types of values, equations, constants, programs run again, leaks."""

import subprocess
import sys
import weakref

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core import jaxprs
from calque.core import trace as t
from calque.core.avals import ShapedArray
from calque.core.config import config
from calque.core.jaxprs import DropVar, Literal
from calque.core.origins import origin
from calque.core.trace_state import Tracer
from calque.errors import UnexpectedTracerError

F32 = np.dtype("float32")


class Holder:
    """An object of a user that holds a value."""

    def __init__(self, value):
        self.value = value

    def __jax_array__(self):
        return self.value


# ---------------------------------------------------------------- types of values


def test_the_type_of_an_array_is_at_hand(monkeypatch):
    """No class of its own is looked for, also where classes have types above arrays."""

    def asked(x):
        raise AssertionError("an array has no type above arrays")

    x = jnp.ones((2, 3))
    monkeypatch.setitem(t.HIGH_TYPES, Holder, asked)
    monkeypatch.setattr(t, "high_type_of", asked)
    assert t.placed_typeof(x) is x.aval
    with pytest.raises(AssertionError):
        t.placed_typeof(2.0)


@pytest.mark.parametrize(
    "x, want",
    [
        (True, ShapedArray((), np.dtype(bool))),
        (3, ShapedArray((), np.dtype("int32"), True)),
        (2.5, ShapedArray((), F32, True)),
        (1j, ShapedArray((), np.dtype("complex64"), True)),
        (np.float64(1), ShapedArray((), F32)),
        (np.zeros((2, 0), np.int64), ShapedArray((2, 0), np.dtype("int32"))),
        (np.zeros(3, calque.dtypes.float0), ShapedArray((3,), calque.dtypes.float0)),
        (Holder(np.ones(2)), ShapedArray((2,), F32)),
        (type("Whole", (int,), {})(3), ShapedArray((), np.dtype("int32"), True)),
    ],
)
def test_types(x, want):
    assert t.typeof(x) is want


@pytest.mark.parametrize(
    "x, error, words",
    [
        ("text", TypeError, "'text' with type <class 'str'> is not a valid calque type"),
        ([1.0], TypeError, "not a valid calque type"),
        (np.ma.masked_array([1.0], [True]), ValueError, "masked arrays"),
        (2**31, OverflowError, "too large to convert to int32.*enable_x64"),
        (-(2**31) - 1, OverflowError, "too large"),
        (None, TypeError, "not a valid"),
    ],
)
def test_what_has_no_type(x, error, words):
    with pytest.raises(error, match=words):
        t.typeof(x)


def test_wide_numbers():
    with config.override("enable_x64", True):
        assert t.typeof(2**40).dtype == np.int64
        with pytest.raises(OverflowError, match="too large to convert to int64; give"):
            t.typeof(2**63)


# ---------------------------------------------------------------- recording


def record(f, *avals):
    return t.trace_to_jaxpr(f, [ShapedArray(s, F32) for s in avals], "f")


def test_constants_are_one_variable_for_each_object():
    a, b = np.ones(3, np.float32), jnp.ones(3)
    closed = record(lambda x: [x + a + b, x * a, b], (3,))
    assert len(closed.consts) == 2
    a[:] = 7  # they are kept as they were
    assert [np.asarray(v).tolist() for v in t.jaxpr_as_fun(closed)(np.zeros(3, np.float32))] == [
        [2, 2, 2], [0, 0, 0], [1, 1, 1],
    ]  # fmt: skip


def test_numbers_are_written_into_the_program():
    closed = record(lambda x: [lax.mul(x, np.float32(3)), 2.0, jnp.float32(4)], ())
    assert closed.consts == [] and isinstance(closed.eqns[0].invars[1], Literal)
    literals = closed.jaxpr.outvars[1:]
    assert [v.aval.weak_type for v in literals] == [True, False]
    assert [v.val.item() for v in literals] == [2, 4]


def test_how_values_were_made():
    """Equal keys for what is computed in the same way from the same."""
    seen = {}

    def f(x):
        trace = x._trace
        key = lambda v: trace.made_as(v._var)  # noqa: E731
        seen["same"] = key(jnp.sin(x) * 2) == key(jnp.sin(x) * 2)
        seen["other number"] = key(jnp.sin(x) * 2) == key(jnp.sin(x) * 3)
        seen["other order"] = key(jnp.sin(jnp.cos(x))) == key(jnp.cos(jnp.sin(x)))
        deep = [x, x]
        for _ in range(12):
            deep = [jnp.sin(v) for v in deep]
        seen["too deep"] = key(deep[0]) == key(deep[1])
        return [x]

    record(f, (3,))
    assert seen == {"same": True, "other number": False, "other order": False, "too deep": False}


def test_results_that_nobody_reads():
    closed = record(lambda x: [jnp.sin(x), jnp.cos(x)][:1], ())
    jaxpr = jaxprs.drop_unused(closed.jaxpr)
    assert [type(e.outvars[0]) is DropVar for e in jaxpr.eqns] == [False, True]


# ---------------------------------------------------------------- running programs


def test_values_are_let_go_after_their_last_use():
    alive = []

    def look(x):
        alive.append([r() is not None for r in refs])
        return x

    refs = []

    def noted(x):
        refs.append(weakref.ref(x))
        return x

    p = calque.extend.core.Primitive("noted_value")
    p.def_abstract_eval(lambda x: x)
    p.def_impl(lambda x: noted(x + 1))
    q = calque.extend.core.Primitive("looked_at")
    q.def_abstract_eval(lambda x: x)
    q.def_impl(look)

    def f(x):
        a = p.bind(x)
        b = p.bind(a)
        return q.bind(b)

    closed = calque.make_jaxpr(f)(1.0)
    t.eval_jaxpr(closed.jaxpr, closed.consts, jnp.float32(1))
    assert alive == [[False, True]]
    last = t.last_uses(closed.jaxpr)
    assert [len(v) for v in last.values()] == [1, 1, 1] or sum(map(len, last.values())) == 3


def test_literals_of_64_bits_where_those_are_not_enabled():
    with config.override("enable_x64", True):
        closed = calque.make_jaxpr(lambda x: x + np.float64(0.1))(np.float64(1))
    (wide,) = [a for a in closed.eqns[0].invars if isinstance(a, Literal)]
    value = t.literal_value(wide)
    assert calque.typeof(value).dtype == np.float64 and float(value) == 0.1
    weak = Literal(np.asarray(2.0, np.float32), ShapedArray((), F32, True))
    assert type(t.literal_value(weak)) is float and t.literal_value(weak) == 2


def test_operations_may_be_replaced():
    from calque.core import primitives

    seen = []
    primitives.replacements["sin"] = lambda x: seen.append(1) or lax.cos_p.bind(x)
    primitives.on_replacement.tell()
    try:
        assert float(lax.sin_p.bind(0.0)) == 1 and seen == [1]
        inner = calque.checkpoint(lambda x: lax.sin(x) * 2)
        assert float(inner(0.0)) == 2
    finally:
        del primitives.replacements["sin"]
        primitives.on_replacement.tell()
    assert float(lax.sin_p.bind(0.0)) == 0


# ---------------------------------------------------------------- leaks and origins


def test_a_leak_names_function_type_and_line():
    kept = []

    def leaky(x):
        kept.append(jnp.sin(x))
        return x

    line = leaky.__code__.co_firstlineno + 1
    calque.jit(leaky)(jnp.ones(2))
    words = rf"type float32\[2\].*\(of function leaky.*test_trace.py:{line}"
    with pytest.raises(UnexpectedTracerError, match=words):
        jnp.cos(kept[0])
    with pytest.raises(UnexpectedTracerError, match="of function leaky"):
        calque.jit(lambda y: y + kept[0])(jnp.ones(2))
    assert isinstance(kept[0], Tracer) and t._created(None) == ""


def test_where_a_traced_value_came_from():
    seen = []

    def f(first, second):
        seen.extend([origin(first), origin(jnp.sin(second) + 1), origin(jnp.zeros(3) + 1)])
        return first

    calque.jit(f)(1.0, 2.0)
    assert "the argument first of the function f" in seen[0]
    assert "made by `add` at" in seen[1] and "depends on the argument second" in seen[1]
    assert "depends on" not in seen[2]


def test_tracing_numbers_of_numpy_imports_no_masked_arrays():
    code = """
import sys
import numpy as np
import calque
before = "numpy.ma" in sys.modules
calque.make_jaxpr(lambda x: x * np.float32(3))(np.float32(2))
print(before, "numpy.ma" in sys.modules)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    before, after = done.stdout.split()
    assert before == after


NUMBERS = {
    "array": lambda: jnp.array(3),
    "asarray of NumPy's": lambda: jnp.asarray(np.float32(3)),
    "scalar type": lambda: jnp.int8(3),
    "bool": lambda: jnp.array(True),
    "convert_element_type": lambda: lax.convert_element_type(3, np.float32),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_made_in_a_trace_are_values_of_its_program(name):
    """... which code that asks for tracers sees, and which tell their value all the same."""
    seen = []

    def f(x):
        number = NUMBERS[name]()
        seen.append(number)
        assert isinstance(number, Tracer) and isinstance(number, calque.Array)
        assert int(number) == number.item() and bool(number) and np.asarray(number) == int(number)
        return x + number

    closed = calque.make_jaxpr(f)(1.0)
    assert not closed.consts and any(isinstance(a, Literal) for e in closed.eqns for a in e.invars)
    assert calque.jit(f)(1.0) == 1 + int(seen[0])
    assert not isinstance(NUMBERS[name](), Tracer)


def test_numbers_of_an_outer_program_are_constants_of_a_program_made_inside():
    outside = jnp.float32(5)
    counts = []

    def f(x):
        inside = jnp.array(2.0)
        for c in (inside, outside):
            counts.append(len(calque.make_jaxpr(lambda y: y + c)(x).consts))
            assert (
                calque.closure_convert(lambda y: y * c, x)[0](x, *[c] * (c is inside)) is not None
            )
        return lax.scan(lambda a, _: (a + inside, None), x, None, length=2)[0]

    assert calque.jit(f)(1.0) == 5.0 and counts == [1, 1]
    assert "num_consts=0" in str(calque.make_jaxpr(f)(1.0))


def test_numbers_made_in_a_trace_are_sizes_indices_and_bounds():
    def f(x):
        n = jnp.array(2)
        parts = x[:n], x[n], x.at[n].set(0.0), jnp.zeros(n), jnp.arange(n), jnp.split(x, [n])[0]
        assert [p.shape for p in parts] == [(2,), (), (4,), (2,), (2,), (2,)]
        looped = lax.fori_loop(jnp.array(0), n, lambda i, c: c + i, 0)
        assert f"{n:03d}" == "002" and jnp.array(True) and not jnp.array(0)
        return parts, looped

    parts, looped = calque.jit(f)(jnp.arange(4.0))
    assert parts[1] == 2 and parts[2].tolist() == [0, 1, 0, 3] and looped == 1
    assert "scan" in str(calque.make_jaxpr(f)(jnp.arange(4.0)))


def test_a_number_of_a_program_that_has_ended_is_refused():
    kept = []
    calque.jit(lambda x: kept.append(jnp.array(2.0)) or x)(1.0)
    with pytest.raises(UnexpectedTracerError):
        calque.jit(lambda x: x + kept[0])(1.0)


@pytest.mark.peer
def test_programs_have_the_constants_of_jax():
    jax = pytest.importorskip("jax")

    def texts(m):
        small = m.numpy.float32(5)

        def f(x):
            inside = m.numpy.array(2.0)
            assert isinstance(inside, m.core.Tracer)
            inner = m.make_jaxpr(lambda y: y * inside + small)(x)
            found.append((len(inner.consts), str(inner)))
            return x + inside

        found: list = []
        return [str(m.make_jaxpr(f)(1.0)), *found]

    assert texts(calque) == texts(jax)
