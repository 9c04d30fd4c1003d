"""jit: when it traces, what it accepts, what it gives back."""

import collections
import functools
import inspect
import threading

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.transforms.jit.traced import stats


class Counter:
    def __init__(self, f):
        self.f, self.n = f, 0

    def __call__(self, *args, **kwargs):
        self.n += 1
        return self.f(*args, **kwargs)


def counted(f, **options):
    c = Counter(f)
    functools.update_wrapper(c, f)
    return calque.jit(c, **options), c


def test_one_trace_for_each_type():
    f, c = counted(lambda x: x * 2)
    for x in (
        1.0,
        2.0,
        np.float32(3),
        jnp.float32(3),
        1,
        jnp.ones(2),
        np.zeros(2, np.float32),
        jnp.ones(2),
    ):
        np.testing.assert_allclose(f(x), np.asarray(x) * 2)
    assert c.n == 4  # weak float, float32[], weak int, float32[2]


def test_structures():
    Point = collections.namedtuple("Point", "x y")

    def f(a, *rest, key=None, **more):
        return {"sum": a["v"] + sum(rest), "p": Point(a["w"][0], key), "more": more, "none": None}

    f = calque.jit(f)
    for _ in range(3):
        out = f({"v": 1.0, "w": [2, 3]}, 10.0, 20.0, key=jnp.ones(2), z=5)
        assert (
            float(out["sum"]) == 31
            and isinstance(out["p"], Point)
            and int(out["p"].x) == 2
            and out["none"] is None
        )
        assert int(out["more"]["z"]) == 5
        np.testing.assert_array_equal(out["p"].y, [1, 1])


def test_keyword_order_does_not_matter():
    f, c = counted(lambda a, b: a - b)
    assert float(f(a=3.0, b=1.0)) == 2 and float(f(b=1.0, a=3.0)) == 2 and float(f(3.0, b=1.0)) == 2
    assert float(f(b=1.0, a=3.0)) == 2 and float(f(a=5.0, b=1.0)) == 4
    assert c.n == 2


def test_dict_order_does_not_matter():
    f, c = counted(lambda d: d["a"] - d["b"])
    for d in ({"a": 3.0, "b": 1.0}, {"b": 1.0, "a": 3.0}) * 2:
        assert float(f(d)) == 2
    assert c.n == 1


@pytest.mark.parametrize(
    "how",
    [
        {"static_argnums": 1},
        {"static_argnums": (1,)},
        {"static_argnames": "n"},
        {"static_argnums": -1},
    ],
)
def test_statics(how):
    def power(x, n):
        for _ in range(n):
            x = x * 2
        return x

    f, c = counted(power, **how)
    assert [float(f(1.0, n)) for n in (1, 3, 1, 3, 2)] == [2, 8, 2, 8, 4]
    assert float(f(1.0, n=3)) == 8
    assert 3 <= c.n <= 4


def test_statics_of_equal_value_and_other_type_are_different():
    f, c = counted(lambda x, s: x * s, static_argnums=1)
    assert (
        f(1, 2).dtype == np.int32 and f(1, 2.0).dtype == np.float32 and f(1, True).dtype == np.int32
    )
    assert c.n == 3


@pytest.mark.parametrize(
    "wrap",
    [lambda v: (v,), lambda v: (None, ("a", (v,))), lambda v: frozenset([v]), lambda v: (str, v)],
)
def test_parts_of_statics_of_equal_value_and_other_type_are_different(wrap):
    """(2,) equals (2.0,), also in machine code that has learned such a call."""

    def inner(s):
        return (
            next((inner(v) for v in s if isinstance(v, (tuple, int, float))), None)
            if (isinstance(s, (tuple, frozenset)))
            else s
        )

    f = calque.jit(lambda x, s: x * inner(s), static_argnums=1)
    x = np.arange(3)
    for _ in range(6):
        for v in (2, 2.0, 1, True, 1.0, 2):
            assert f(x, wrap(v)).dtype == ("float32" if type(v) is float else "int32")
            assert np.asarray(f(x, wrap(v))).tolist() == [0, int(v), 2 * int(v)]


def test_statics_that_are_zeros_of_both_signs():
    f = calque.jit(lambda x, s: x / (s[0] if isinstance(s, tuple) else s), static_argnums=1)
    for _ in range(5):
        assert [float(f(1.0, s)) for s in (0.0, -0.0, (0.0,), (-0.0,))] == [
            np.inf,
            -np.inf,
            np.inf,
            -np.inf,
        ]
        assert np.isnan(float(f(1.0, float("nan"))))


def test_statics_that_are_equal_but_not_identical():
    f, c = counted(lambda x, s: x + len(s), static_argnums=1)
    for _ in range(3):
        assert int(f(1, "".join(["a", "b"]))) == 3 and int(f(1, tuple([1, 2, 3]))) == 4
    assert c.n == 2


def test_statics_must_be_hashable():
    f = calque.jit(lambda x, s: x, static_argnums=1)
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        f(1, [1])
    with pytest.raises(ValueError, match="invalid argnums 5"):
        calque.jit(lambda x: x, static_argnums=5)
    with pytest.raises(ValueError, match="invalid argnames"):
        calque.jit(lambda x: x, static_argnames="nonsense")
    with pytest.raises(TypeError, match="callable"):
        calque.jit(3)


def test_a_rebuilt_lambda_is_not_traced_again():
    before = stats.traces
    for i in range(10):
        assert int(calque.jit(lambda x: x * 2 + 1)(i)) == 2 * i + 1
    assert stats.traces == before + 1


def test_captured_values_are_part_of_the_identity():
    def make(c):
        return calque.jit(lambda x: x + c)

    assert [float(make(c)(1.0)) for c in (1.0, 2.0, 1.0, -0.0)] == [2, 3, 2, 1]
    before = stats.traces
    make(2.0)(1.0)
    assert stats.traces == before
    a, b = jnp.ones(2), jnp.zeros(2)
    np.testing.assert_array_equal(make(a)(1.0), [2, 2])
    np.testing.assert_array_equal(make(b)(1.0), [1, 1])
    table = {"k": 1.0}
    assert float(calque.jit(lambda x: x + table["k"])(1.0)) == 2
    table["k"] = 5.0
    assert float(calque.jit(lambda x: x + table["k"])(1.0)) == 6


def test_globals_are_part_of_the_identity(monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", 2.0)

    def make():
        return calque.jit(lambda x: x * SCALE)  # noqa: F821

    assert float(make()(3.0)) == 6
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    assert float(make()(3.0)) == 15


def test_the_same_function_keeps_its_programs(monkeypatch):
    monkeypatch.setitem(globals(), "SCALE", 2.0)

    def f(x):
        return x * SCALE  # noqa: F821

    assert float(calque.jit(f)(3.0)) == 6
    monkeypatch.setitem(globals(), "SCALE", 5.0)
    with pytest.warns(calque.errors.StaleCaptureWarning, match="SCALE"):
        assert float(calque.jit(f)(3.0)) == 6  # as in JAX: a captured value belongs to the trace
    assert float(calque.jit(f)(np.float32(3.0))) == 15


def test_partials_share():
    def f(a, x):
        return a * x

    before = stats.traces
    for _ in range(5):
        assert float(calque.jit(functools.partial(f, 2.0))(3.0)) == 6
    assert stats.traces == before + 1
    assert float(calque.jit(functools.partial(f, 4.0))(3.0)) == 12


def test_methods():
    class Model:
        scale = 3.0

        @functools.partial(calque.jit, static_argnums=0)
        def __call__(self, x):
            return x * self.scale

        @calque.jit
        def plain(x):
            return x + 1

    assert float(Model()(2.0)) == 6 and float(Model.plain(1.0)) == 2


def test_nested_jit_is_one_call():
    inner = calque.jit(lambda x: x + 1)
    text = str(calque.make_jaxpr(lambda x: inner(x) * 2)(1.0))
    assert "jit[" in text and "name=<lambda>" in text
    inlined = calque.jit(lambda x: x + 1, inline=True)
    assert "jit[" not in str(calque.make_jaxpr(lambda x: inlined(x) * 2)(1.0))


def test_inner_jit_may_capture_traced_values():
    def f(x):
        g = calque.jit(lambda y: y * x)
        return g(2.0) + g(3.0)

    for transform in (lambda f: f, calque.jit, calque.grad):
        assert float(transform(f)(4.0)) == (5.0 if transform is calque.grad else 20.0)
    np.testing.assert_allclose(calque.vmap(f)(jnp.arange(3.0)), [0, 5, 10])


def test_disable_jit():
    seen = []
    f = calque.jit(lambda x: seen.append(x) or x + 1)
    with calque.config.override("calque_disable_jit", True):
        assert f(1) == 2 and seen == [1]
    assert int(f(1)) == 2 and len(seen) == 2


def test_configuration_is_part_of_the_key():
    f, c = counted(lambda x: x * 2)
    assert f(1.0).dtype == np.float32
    with calque.config.override("calque_enable_x64", True):
        assert f(1.0).dtype == np.float64
    assert f(1.0).dtype == np.float32
    assert c.n == 2


def test_clear_caches():
    f, c = counted(lambda x: x * 2)
    f(1.0)
    calque.clear_caches()
    f(1.0)
    f.clear_cache()
    f(1.0)
    assert c.n == 3


def test_stages():
    f = calque.jit(lambda x, n: {"y": x * 2, "n": n}, static_argnames=())
    x = jnp.arange(3.0)
    lowered = f.lower(x, 1)
    assert lowered.as_text("jaxpr") == str(f.trace(x, 1).jaxpr)
    assert "mul" in lowered.as_text("jaxpr") and "stablehlo.multiply" in lowered.as_text()
    compiled = lowered.compile()
    np.testing.assert_array_equal(compiled(x, 1)["y"], [0, 2, 4])
    assert compiled.out_info["y"].shape == (3,) and compiled.cost_analysis()["flops"] > 0
    assert compiled.memory_analysis().argument_size_in_bytes == 16
    with pytest.raises(TypeError, match="differ from the types"):
        compiled(jnp.arange(4.0), 1)
    with pytest.raises(TypeError, match="does not match the input pytree"):
        compiled(x)
    assert f.eval_shape(calque.ShapeDtypeStruct((5,), np.float32), 1)["y"].shape == (5,)
    assert f.lower(calque.ShapeDtypeStruct((5,), np.float32), 1).out_info["y"].shape == (5,)


def test_an_exception_leaves_no_trace_behind():
    @calque.jit
    def f(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        f(1.0)
    assert float(calque.jit(lambda x: x + 1)(1.0)) == 2 and float(jnp.float32(1) + 1) == 2


def test_many_threads():
    f = calque.jit(lambda x: jnp.tanh(x) * 2)
    x = jnp.linspace(0, 1, 100)
    want = np.asarray(f(x))
    wrong = []

    def work():
        for i in range(50):
            g = calque.jit(lambda x: jnp.tanh(x) * 2 + i) if i % 10 == 0 else f
            y = np.asarray(g(x)) - (i if i % 10 == 0 else 0)
            if not np.allclose(y, want, atol=1e-5):
                wrong.append(i)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_recursion_and_signature():
    @calque.jit
    def fact(n, acc):
        "Doc."
        return acc if n == 0 else fact(n - 1, acc * n)

    assert fact.__name__ == "fact" and fact.__doc__ == "Doc." and "fact" in repr(fact)
    static = calque.jit(fact.__wrapped__, static_argnums=0)
    with pytest.raises(calque.errors.TracerBoolConversionError):
        fact(3, 1)
    assert callable(static)


def test_device_and_backend():
    d = calque.devices()[-1]
    f = calque.jit(lambda x: {"y": x * 2}, device=d)
    assert f(jnp.ones(3))["y"].devices() == {d} and f(jnp.ones(3))["y"].tolist() == [2, 2, 2]
    assert float(calque.jit(lambda x: x + 1, backend="cpu")(1.0)) == 2
    for options, error, text in (
        ({"backend": "gpu"}, RuntimeError, "Unknown backend gpu"),
        ({"device": "cpu:0"}, TypeError, "must be one of calque.devices()"),
        ({"device": d, "backend": "cpu"}, ValueError, "both a device and a backend"),
        ({"device": d, "out_shardings": d}, ValueError, "together with in_shardings"),
    ):
        with pytest.raises(error, match=text.replace("(", r"\(").replace(")", r"\)")):
            calque.jit(lambda x: x, **options)


def test_how_a_jitted_function_shows_itself():
    @calque.jit
    def f(x, *, scale=2):
        return x * scale

    assert repr(f).startswith("<PjitFunction of <function ") and "PjitFunction" in str(type(f))
    for follow in (True, False):
        assert str(inspect.signature(f, follow_wrapped=follow)) == "(x, *, scale=2)"


def test_static_arguments_that_cannot_be_compared():
    class Unequal:
        def __hash__(self):
            return 1

        def __eq__(self, other):
            raise NotImplementedError("never equal")

    f = calque.jit(lambda x, s: x, static_argnums=1)
    with pytest.raises(ValueError, match=r"should be comparable using __eq__.*never equal"):
        f(1, Unequal())
        f(1, Unequal())


def test_stages_of_what_is_jitted_do_not_hide_its_own():
    def f(x):
        return x + 1

    f.lower = f.trace = f.note = "of the function"
    jitted = calque.jit(f)
    assert jitted.note == "of the function"
    assert "stablehlo.add" in jitted.lower(1.0).as_text()
    assert str(jitted.trace(1.0).jaxpr).count("add") == 1
