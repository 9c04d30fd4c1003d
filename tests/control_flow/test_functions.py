"""Which functions are converted, and what a converted function has in common with the one as it is
written."""

import dataclasses
import functools
import inspect
import traceback
import types

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.errors import ControlFlowError, StaleCaptureWarning

converted = functools.partial(jax.jit, control_flow="convert")
BIAS = 1.0
calls = []


class Ticks:
    count = 0

    def hit(self):
        self.count += 1


ticks = Ticks()


def positive(x, bias=BIAS, *more, scale: float = 2.0, **rest):
    """The doc."""
    if x > 0:
        return x * scale + bias + sum(more) + rest.get("extra", 0.0)
    return -x


def test_signature_and_names_stay():
    f = jax.convert(positive)
    assert inspect.signature(f) == inspect.signature(positive)
    assert (f.__name__, f.__qualname__, f.__doc__, f.__module__) == (
        "positive",
        "positive",
        "The doc.",
        __name__,
    )
    assert f.__annotations__ == {"scale": float} and f.__defaults__ is positive.__defaults__
    assert inspect.getsource(f) == inspect.getsource(positive)
    g = jax.jit(f)
    for args, kwargs in [
        ((2.0,), {}),
        ((2.0, 3.0, 4.0), {"scale": 5.0}),
        ((-2.0,), {"extra": 1.0}),
        ((2.0,), {"extra": 1.0}),
    ]:
        assert float(g(*args, **kwargs)) == positive(*args, **kwargs)


def test_converted_once():
    assert jax.convert(positive) is jax.convert(positive)
    assert jax.convert(jax.convert(positive)) is jax.convert(positive)
    assert jax.convert(jnp.sin) is jnp.sin


def test_a_rebuilt_lambda_is_traced_once():
    ticks.count = 0
    for _ in range(3):
        f = converted(lambda x: (ticks.hit(), x if x > 0 else -x)[1])
        assert float(f(-2.0)) == 2.0
    assert ticks.count == 1


def test_lambdas_of_one_line_are_told_apart():
    f, g = (lambda x: x if x > 0 else -x), (lambda x: x if x < 0 else 2 * x)
    assert float(converted(f)(-3.0)) == 3.0 and float(converted(g)(-3.0)) == -3.0

    def h(x):
        return (lambda y: y if y > x else x)(1.0)

    assert float(converted(h)(3.0)) == 3.0 and float(converted(h)(0.0)) == 1.0


def test_cells_stay_live():
    scale = 2.0

    def f(x):
        if x > 0:
            return x * scale
        return x

    g = jax.convert(f)
    assert g(3.0) == 6.0
    scale = 5.0
    assert g(3.0) == 15.0


def test_nonlocal_variables():
    seen = 0.0

    def f(x):
        nonlocal seen
        if x > 0:
            seen = x
        return seen

    assert jax.convert(f)(3.0) == 3.0 and seen == 3.0


def test_variables_that_functions_inside_set():
    def f(n):
        total, seen = 0, False

        def add(i):
            nonlocal total, seen
            total = total + i
            seen = True

        for i in range(n):
            if i > 2:
                add(i)
        return total + 100 * seen

    g = converted(f)
    for n in (0, 2, 3, 4, 6):
        assert int(g(n)) == f(n)


def test_stale_globals_are_reported(monkeypatch):
    monkeypatch.setitem(globals(), "BIAS", 1.0)

    def f(x):
        if x > 0:
            return x + BIAS
        return x

    g = converted(f)
    assert float(g(1.0)) == 2.0
    monkeypatch.setitem(globals(), "BIAS", 10.0)
    with pytest.warns(StaleCaptureWarning, match="BIAS"):
        g(1.0)


class Base:
    def __init__(self):
        self.__weight = 3.0

    def value(self, x):
        if x > 0:
            return self.__weight * x
        return -x


class Derived(Base):
    def value(self, x):
        if x > 5:
            return super().value(x) + 1
        return super().value(x)

    def __call__(self, x):
        while x > 10:
            x = self.lower(x)
        return x

    def lower(self, x):
        return x - 3 if x > 20 else x - 1

    @staticmethod
    def still(x):
        return x if x > 0 else 0.0

    @classmethod
    def of_the_class(cls, x):
        return cls.still(x) + 1.0


def test_methods_and_callable_objects():
    d = Derived()
    for x in (-1.0, 2.0, 7.0, 30.0):
        for f in (
            d.value,
            d,
            Derived.still,
            Derived.of_the_class,
            functools.partial(positive, scale=4.0),
            Base().value,
        ):
            assert float(converted(f)(x)) == f(x)


def with_a_local_class(x):
    class Local:
        def value(self, y):
            if y > 0:
                return y
            return -2 * y

    return Local().value(x)


def test_methods_of_local_classes():
    for x in (2.0, -3.0):
        assert float(converted(with_a_local_class)(x)) == with_a_local_class(x)


def test_an_edited_file_is_noticed(tmp_path):
    path = tmp_path / "edited.py"
    path.write_text("def f(x):\n    if x > 0:\n        return x\n    return -x\n")
    space = {"__name__": "edited"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    path.write_text("def f(x, y):\n    return x\n")
    with pytest.raises(ControlFlowError, match="edited since"):
        jax.convert(space["f"])


def helper(x):
    if x > 0:
        return x
    return -2 * x


@jax.jit
def jitted_helper(x):
    if x > 0:
        return x
    return -2 * x


def step(carry, x):
    if x > 0:
        carry = carry + x
    return carry, carry


@jax.custom_jvp
def custom(x):
    if x > 0:
        return 3 * x
    return x


@custom.defjvp
def custom_jvp(primals, tangents):
    if primals[0] > 1:
        return custom(*primals), 100 * tangents[0]
    return custom(*primals), 10 * tangents[0]


@jax.checkpoint
def remembered(x):
    if x > 0:
        return jnp.sin(x)
    return x


slope = jax.grad(remembered)


def factorial(n):
    if n <= 1:
        return 1
    return n * factorial(n - 1)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: helper(x) + (lambda v: v if v > 1 else 1.0)(x),
        lambda x: jitted_helper(x),
        lambda x: jax.grad(helper)(x),
        lambda x: jax.lax.scan(step, 0.0, jnp.stack([x, -x, x]))[0],
        lambda x: jax.lax.cond(True, helper, jnp.sin, x),
        lambda x: functools.partial(helper)(x),
        lambda x: functools.reduce(lambda a, b: a if a > b else b, [x, 1.0, 2 * x]),
    ],
    ids=["lambda", "jit", "grad", "scan", "cond", "partial", "reduce"],
)
def test_what_is_called_is_converted(f):
    g = converted(f)
    for x in (2.0, -3.0):
        with jax.disable_jit():
            want = f(jnp.float32(x))
        assert float(g(jnp.float32(x))) == float(want)


def test_functions_given_to_vmap_are_converted():
    f = converted(lambda xs: jax.vmap(helper)(xs) + jax.vmap(jitted_helper)(xs))
    np.testing.assert_array_equal(f(jnp.array([1.0, -2.0])), [2.0, 8.0])


def test_custom_rules_stay():
    f = converted(lambda x: custom(x) + 1000 * jax.grad(custom)(x))
    assert [float(f(x)) for x in (2.0, 0.5, -1.0)] == [100006.0, 10001.5, 9999.0]
    assert float(jax.jit(jax.convert(custom))(2.0)) == 6.0


def test_transformed_functions_are_converted_within():
    f = converted(lambda x: remembered(x) + slope(x))
    for x in (0.5, -0.5):
        np.testing.assert_allclose(f(x), np.sin(x) + np.cos(x) if x > 0 else x + 1, rtol=1e-6)
    np.testing.assert_allclose(converted(jax.grad(slope))(0.5), -np.sin(0.5), rtol=1e-6)
    np.testing.assert_allclose(
        converted(jax.value_and_grad(remembered))(0.5), (np.sin(0.5), np.cos(0.5)), rtol=1e-6
    )
    np.testing.assert_allclose(
        converted(jax.vmap(remembered))(jnp.array([1.0, -1.0])), [np.sin(1.0), -1.0], rtol=1e-6
    )


def test_recursion():
    assert jax.convert(factorial)(5) == 120
    with pytest.raises(ControlFlowError, match="calls itself"):
        converted(factorial)(5)

    def in_a_value(n):
        return 1 if n <= 1 else n * in_a_value(n - 1)

    def in_a_test(n):
        return n <= 1 or in_a_test(n - 1)

    for f in (in_a_value, in_a_test):
        with pytest.raises(ControlFlowError, match="calls itself"):
            converted(f)(5)


@dataclasses.dataclass
class Point:
    x: float
    y: float = 2.0


def moved(x):
    p = Point(x)
    if x > 1:
        p = dataclasses.replace(p, x=p.x * 2)
    return p.x - p.y


def test_objects_that_branches_set_are_pytrees():
    with pytest.raises(NameError, match=r"Point is no pytree: .*register_dataclass"):
        converted(moved)(3.0)
    Registered = jax.tree_util.register_dataclass(
        dataclasses.make_dataclass("Registered", ["x", ("y", float, 2.0)])
    )

    def f(x):
        p = Registered(x)
        if x > 1:
            p = dataclasses.replace(p, x=p.x * 2)
        return p.x - p.y

    for x in (0.5, 3.0):
        assert float(converted(f)(x)) == f(x)


def foreign(source):
    module = types.ModuleType("somewhere_else")
    exec(compile(source, "somewhere_else.py", "exec"), module.__dict__)
    return module


def test_other_packages_are_left_alone():
    other = foreign("def f(x):\n    return x if x > 0 else -x\n")

    def f(x):
        return other.f(x)

    with pytest.raises(jax.errors.TracerBoolConversionError):
        converted(f)(1.0)


def test_concrete_values_take_pythons_path():
    order = []

    def f(x, n, verbose):
        for name in ("a", "b", "c"):
            if verbose and name != "b":
                order.append(name)
            elif n > 3:
                break
        else:
            order.append("else")
        d = {}
        while n:
            d[n] = x
            n -= 1
        return d

    out = jax.jit(f, static_argnums=(1, 2), control_flow="convert")(1.0, 3, True)
    assert order == ["a", "c", "else"] and sorted(out) == [1, 2, 3]
    program = jax.make_jaxpr(jax.convert(lambda x: f(x, 5, False)[1]))(1.0)
    assert not program.eqns


def test_each_body_runs_once_while_tracing():
    def f(x):
        if x > 1:
            if x > 2:
                if x > 3:
                    if x > 4:
                        calls.append("deep")
                        return 4
                    return 3
                return 2
            return 1
        return 0

    calls.clear()
    assert [int(converted(f)(v)) for v in (0.5, 1.5, 2.5, 3.5, 4.5)] == [0, 1, 2, 3, 4]
    assert calls == ["deep"]


def test_containers_changed_in_place_stay_the_same_object():
    def f(x):
        kept = [x, 1.0]
        alias = kept
        if x > 0:
            kept[0] = 5.0 * x
        for _ in range(jnp.int32(x)):
            alias[1] += 1.0
        return alias[0] + kept[1]

    assert float(converted(f)(2.0)) == 13.0 and float(converted(f)(-2.0)) == -1.0


def test_refs_in_branches_and_loops():
    ref = jax.new_ref(jnp.float32(0.0))

    def f(xs, n):
        for x in xs:
            if x > 0:
                ref[...] = ref[...] + x
        for _ in range(n):
            ref[...] = ref[...] * 2
        while ref[...] > 30:
            ref[...] = ref[...] - 1
        return ref[...]

    assert float(converted(f)(jnp.array([1.0, -5.0, 2.0]), 3)) == 24.0
    assert float(ref[...]) == 24.0
    assert float(converted(f)(jnp.array([-1.0]), 1)) == 30.0


def test_checks_and_prints_in_branches(capsys):
    def f(x):
        if x > 0:
            jax.debug.print("positive {x}", x=x)
            jax.check(x < 3, "too large: {x}", x=x)
        return x

    g = converted(f)
    g(-5.0), g(1.0)
    jax.effects_barrier()
    assert capsys.readouterr().out == "positive 1.0\n"
    with pytest.raises(Exception, match="too large: 5"):
        g(5.0)


def test_random_keys_are_carried():
    def f(key, n):
        total = 0.0
        for _ in range(n):
            key, sub = jax.random.split(key)
            total = total + jax.random.uniform(sub)
        return total

    key = jax.random.key(0)
    np.testing.assert_allclose(converted(f)(key, 3), f(key, 3), rtol=1e-6)


def test_sizes_that_change():
    def f(xs):
        total = 0.0
        for x in xs:
            if x > 1:
                total = total + x
        for i in range(xs.shape[0]):
            total = total + i
        return total

    g = converted(f)
    for n in (3, 4, 5, 1, 0):
        assert float(g(jnp.arange(float(n)))) == f(np.arange(float(n)))


# ---------------------------------------------------------------- tracebacks


def fails_in_a_branch(x):
    if x > 0:
        for _ in range(3):
            y = (  # of scalars
                x @ x
            )
    else:
        y = x
    return y


def test_tracebacks_show_the_users_lines():
    with pytest.raises(ValueError, match="matmul") as e:
        converted(fails_in_a_branch)(1.0)
    start = fails_in_a_branch.__code__.co_firstlineno
    shown = [
        (f.name, f.lineno - start) for f in traceback.extract_tb(e.tb) if f.filename == __file__
    ][1:]
    assert shown == [("fails_in_a_branch", k) for k in (1, 2, 4)]
    assert all("calque/" not in f.filename for f in traceback.extract_tb(e.tb))


def test_equations_know_their_lines():
    def f(x):
        if x > 0:
            x = jnp.sin(x)
        return x

    (eqn,) = [e for e in jax.make_jaxpr(jax.convert(f))(1.0).eqns if e.primitive.name == "cond"]
    (sine,) = eqn.params["branches"][1].eqns
    assert (sine.source.function, sine.source.line) == ("f", f.__code__.co_firstlineno + 2)
