"""Values that a function reads besides its arguments: found, watched by the machine code, reported
as `on_stale` says."""

import functools
import warnings

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.core.errors import StaleCaptureError, StaleCaptureWarning
from calque.experimental import io_callback
from calque.transforms.jit.captures import captured, is_transparent

SCALE = 2.0
TABLE = {"a": 1.0, "b": [1, 2]}
UNUSED = 5.0


class Model:
    kind = 3.0

    def __init__(self, w):
        self.w, self.calls, self.layers = w, 0, [1.0, 2.0]

    def __call__(self, x):
        return self.scaled(x) + self.kind

    def scaled(self, x):
        self.calls += 1
        return x * self.w

    @property
    def twice(self):
        return 2 * self.w


def scaled(x):
    return x * SCALE


def through(x):
    return scaled(x) + 1


def names(f):
    return sorted(r.name for r in captured(f).reads)


@pytest.fixture
def scale(monkeypatch):
    def change(value):
        monkeypatch.setitem(globals(), "SCALE", value)

    jax.clear_caches()
    change(2.0)
    return change


def silent(call):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return call()


def test_what_is_found():
    k, rows, model = 3.0, [1.0, 2.0], Model(4.0)
    assert names(scaled) == ["SCALE"] and names(through) == ["SCALE", "scaled"]
    assert names(lambda x: x * k + rows[0]) == ["k", "rows"]
    assert names(lambda x: x + TABLE["a"]) == ["TABLE"]
    assert names(model.scaled) == ["self.w"] and names(model) == ["self.kind", "self.w"]
    assert names(lambda x: model(x)) == ["self.kind", "self.w"]
    assert names(lambda x: x * model.twice) == ["self.w"]
    assert names(lambda x: [model.w * y for y in (x,)]) == ["model.w"]
    assert names(functools.partial(scaled)) == ["SCALE"] and names(jax.grad(scaled)) == ["SCALE"]
    assert names(lambda x: jnp.sin(x) * np.pi) == []


def test_a_change_warns_once(scale):
    f = jax.jit(scaled)
    assert float(f(3.0)) == 6.0
    for _ in range(3):
        assert float(silent(lambda: f(3.0))) == 6.0
    scale(10.0)
    with pytest.warns(
        StaleCaptureWarning, match=r"SCALE was 2.0 when scaled was traced and is now 10.0"
    ):
        assert float(f(3.0)) == 6.0
    assert float(silent(lambda: f(3.0))) == 6.0
    assert float(silent(lambda: f(jnp.ones(2))[0])) == 10.0  # a new trace sees the new value


def test_functions_that_are_static_arguments_are_watched(scale):
    """Alone, bound, by name, and in tuples: what they read is a constant of the program, too."""
    calls = {
        "by place": (jax.jit(lambda f, x: f(x), static_argnums=0), (scaled, 3.0), {}),
        "by name": (jax.jit(lambda x, f: f(x), static_argnames="f"), (3.0,), {"f": scaled}),
        "partial": (
            jax.jit(lambda f, x: f(x), static_argnums=0),
            (functools.partial(scaled), 3.0),
            {},
        ),
        "several": (
            jax.jit(lambda fs, x: fs[1](x), static_argnums=0),
            ((None, scaled), 3.0),
            {},
        ),
    }
    for f, args, kwargs in calls.values():
        assert float(silent(lambda: f(*args, **kwargs))) == 6.0
    scale(10.0)
    for name, (f, args, kwargs) in calls.items():
        with pytest.warns(StaleCaptureWarning, match="SCALE was 2.0"):
            assert float(f(*args, **kwargs)) == 6.0, name
    anew = jax.jit(lambda f, x: f(x), static_argnums=0, on_stale="retrace")
    for value in (2.0, 10.0, 2.0):
        scale(value)
        assert float(silent(lambda: anew(scaled, 3.0))) == 3 * value


def test_retrace(scale):
    f = jax.jit(through, on_stale="retrace")
    for value in (2.0, 10.0, 10.0, 2.0):
        scale(value)
        assert float(silent(lambda: f(3.0))) == 3 * value + 1


def test_error_and_ignore(scale):
    strict, careless = jax.jit(scaled, on_stale="error"), jax.jit(scaled, on_stale="ignore")
    strict(3.0), careless(3.0)
    scale(7.0)
    with pytest.raises(StaleCaptureError, match="SCALE"):
        strict(3.0)
    assert float(silent(lambda: careless(3.0))) == 6.0
    with pytest.raises(ValueError, match="on_stale must be"):
        jax.jit(scaled, on_stale="shout")


def test_the_default_is_a_setting(scale):
    f = jax.jit(scaled)
    f(3.0)
    scale(4.0)
    with jax.config.override("calque_on_stale", "error"), pytest.raises(StaleCaptureError):
        f(3.0)


def test_attributes_of_self():
    model = Model(2.0)
    f = jax.jit(model.scaled)
    assert float(f(3.0)) == 6.0 and float(silent(lambda: f(3.0))) == 6.0
    model.calls = 100  # the function itself counts there
    assert float(silent(lambda: f(3.0))) == 6.0
    model.w = 5.0
    with pytest.warns(StaleCaptureWarning, match=r"self.w was 2.0"):
        f(3.0)


def test_cells_lists_and_dicts():
    k, rows, table = 2.0, [1.0, 2.0], {"a": 1.0}
    f = jax.jit(lambda x: x * k + rows[0] + table["a"], on_stale="retrace")
    assert float(f(1.0)) == 4.0 and float(f(1.0)) == 4.0
    rows[0] = 5.0
    assert float(f(1.0)) == 8.0
    table["a"] = 2.0
    assert float(f(1.0)) == 9.0
    k = 10.0
    assert float(f(1.0)) == 17.0
    rows.append(1.0)
    assert float(f(1.0)) == 17.0


def test_what_a_function_changes_itself_is_no_capture():
    seen = []

    box = {}

    def noisy(x):
        seen.append(1)
        box["x"] = len(seen)
        return x + 1

    f = jax.jit(noisy)
    for _ in range(3):
        silent(lambda: f(1.0))
    assert len(seen) == 1


def test_an_equal_value_is_no_change(scale):
    f = jax.jit(scaled)
    f(3.0)
    scale(float("2.0"))
    assert float(silent(lambda: f(3.0))) == 6.0


def test_programs_with_free_sizes_watch_too(scale):
    f = jax.jit(scaled, on_stale="retrace")
    for n in (2, 3, 4):
        f(jnp.ones(n))
    scale(3.0)
    for n in (4, 5, 2):
        np.testing.assert_array_equal(f(jnp.ones(n)), np.full(n, 3.0))


def test_a_new_size_sees_the_new_value(scale):
    f = jax.jit(scaled)
    for n in (2, 3, 4):
        f(jnp.ones(n))
    scale(3.0)
    for n in (5, 6, 5):
        np.testing.assert_array_equal(silent(lambda n=n: f(jnp.ones(n))), np.full(n, 3.0))
    with pytest.warns(StaleCaptureWarning):
        np.testing.assert_array_equal(f(jnp.ones(4)), np.full(4, 2.0))


def test_functions_made_anew_share_what_was_traced():
    model, traces = Model(2.0), []

    def make():
        def f(x):
            traces.append(1)
            return x * model.w

        return jax.jit(f)

    assert [float(make()(1.0)) for _ in range(3)] == [2.0] * 3
    first = len(traces)
    model.w = 3.0
    assert float(silent(lambda: make()(1.0))) == 3.0
    assert len(traces) == first + 1


def test_objects_that_go_elsewhere_are_not_shared():
    model = Model(2.0)
    assert is_transparent(lambda x: x * model.w) and is_transparent(lambda x: model.scaled(x))
    assert not is_transparent(lambda x: getattr(model, "w") * x)  # noqa: B009
    assert not is_transparent(lambda x, m=model: x * m.w)

    def make():
        return jax.jit(lambda x: getattr(model, "w") * x)  # noqa: B009

    assert float(make()(1.0)) == 2.0
    model.w = 3.0
    assert float(make()(1.0)) == 3.0


class Rate:
    step = 0.5

    def __init__(self, k):
        self.k = k

    def scaled(self, x):
        return x * self.k * self.step


class Holder:
    def __init__(self, k):
        self.rate = Rate(k)


def helper(x):
    return x * 2


holder, nested, table = Holder(2.0), [[1.0], {"a": [2.0]}], {"deep": {"k": 3.0}}
CHANGES = {
    "an object on the way is replaced": (
        lambda x: x * holder.rate.k,
        lambda: setattr(holder, "rate", Rate(7.0)),
        "holder.rate.k",
    ),
    "the object of a method is replaced": (
        lambda x: holder.rate.scaled(x),
        lambda: setattr(holder, "rate", Rate(8.0)),
        "self.k",
    ),
    "an attribute of the class": (
        lambda x: holder.rate.scaled(x),
        lambda: setattr(Rate, "step", 0.25),
        "self.step",
    ),
    "of the class itself": (
        lambda x: x * Rate.step,
        lambda: setattr(Rate, "step", 0.125),
        "Rate.step",
    ),
    "a list in a list": (
        lambda x: x * nested[0][0],
        lambda: nested[0].append(5.0),
        r"nested was \[\[1.0\], .* now \[\[1.0, 5.0\]",
    ),
    "a list in a dict in a list": (
        lambda x: x * nested[1]["a"][0],
        lambda: nested[1]["a"].clear(),
        "nested",
    ),
    "a dict in a dict": (
        lambda x: x * table["deep"]["k"],
        lambda: table["deep"].update(k=9.0),
        "'k': 3.0.*'k': 9.0",
    ),
    "a function is defined anew": (
        lambda x: helper(x),
        lambda: globals().update(helper=lambda x: x * 5),
        "helper was <function helper",
    ),
}


@pytest.mark.parametrize("what", CHANGES)
def test_what_is_reached_through_objects_and_containers(what):
    f, change, message = CHANGES[what]
    g = jax.jit(f)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = [float(g(1.0)) for _ in range(4)]
    change()
    with pytest.warns(StaleCaptureWarning, match=message):
        assert float(g(1.0)) == before[0]


def test_sets_defaults_and_bound_arguments():
    seen, rows = {1, 2}, [1.0]
    for f, change, message in (
        (lambda x: x * len(seen), lambda: seen.add(7), r"seen was \{1, 2\}"),
        (lambda x, k=rows: x * k[0], lambda: rows.append(3.0), r"was \[1.0\].* now \[1.0, 3.0\]"),
        (
            functools.partial(lambda k, x: x * len(k), rows),
            lambda: rows.append(3.0),
            r"was \[1.0, 3.0\]",
        ),
    ):
        g = jax.jit(f)
        first = [float(g(2.0)) for _ in range(3)]
        change()
        with pytest.warns(StaleCaptureWarning, match=message):
            assert float(g(2.0)) == first[0]


def test_equal_objects_and_functions_are_no_change():
    def make():
        return Holder(3.0), (lambda x: x * 2)

    model, twice = make()
    f = jax.jit(lambda x: twice(x) * model.rate.k)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(5):
            assert float(f(1.0)) == 6.0
            model, twice = make()
    model.rate.k = 4.0
    with pytest.warns(StaleCaptureWarning, match="model.rate.k was 3.0"):
        f(1.0)


def test_functions_of_one_code_that_capture_other_values():
    def made(table):
        return lambda x: x * table["k"]

    one, two = {"k": 2.0}, {"k": 3.0}
    first, second = made(one), made(two)
    f = jax.jit(lambda x: first(x) + second(x))
    assert float(f(1.0)) == 5.0
    two["k"] = 4.0
    with pytest.warns(StaleCaptureWarning, match=r"table was \{'k': 3.0\}"):
        f(1.0)


def test_reads_in_classes_and_in_lines_of_several_steps():
    k = 3.0

    def with_class(x):
        class Inside:
            rate = k
            scale = SCALE

        return x * Inside.rate * Inside.scale

    assert {"SCALE", "k"} <= set(names(with_class))

    class Several(Model):
        # fmt: off
        def several(self, x):
            y = x; return self.w * y  # noqa: E702
        # fmt: on

        def listed(self, xs):
            return [self.w * x for x in xs]

    model = Several(2.0)
    assert names(model.several) == names(model.listed) == ["self.w"]


def test_what_inner_functions_change_is_no_capture():
    seen = []

    def noting(x):
        def note(v):
            seen.append(v)

        note(1)
        return x

    class Inner(Model):
        def inner(self, x):
            def scaled(v):
                return self.w * v

            return scaled(x)

    assert names(noting) == [] and names(Inner(2.0).inner) == ["self.w"]
    assert is_transparent(Inner(2.0).inner)


def test_what_callbacks_read_is_no_capture():
    """They run at each call: what they find then is what they use."""

    class History:
        def __init__(self):
            self.values, self.calls = [], 0

        def note(self, x):
            self.calls += 1
            if len(self.values) < 2:
                self.values.append(float(x))

    history, log, seen, limit = History(), [], {}, {"most": 1}

    def count(x):
        log.append(float(x))
        return np.float32(len(log))

    def stored(by, x):
        seen[int(x)] = by
        return np.float32(min(len(seen), limit["most"]))

    shape = jax.ShapeDtypeStruct((), np.float32)

    @jax.jit(on_stale="error")
    def f(x):
        def nested(y):
            return np.float32(len(log) + y)

        jax.debug.callback(history.note, x)
        x = jax.pure_callback(count, shape, x)
        y = io_callback(functools.partial(stored, "f"), shape, x)
        return x + y + jax.pure_callback(nested, shape, x)

    first, second = float(f(0.0)), float(f(0.0))
    limit["most"] = 5
    third = float(f(0.0))
    jax.effects_barrier()
    assert (first, second, third) == (1 + 1 + 2, 2 + 1 + 4, 3 + 3 + 6)
    assert history.values == [0, 0] and history.calls == 3


def test_what_is_read_beside_a_callback_is_watched(scale):
    held = {"by": 2.0}

    @jax.jit(on_stale="retrace")
    def f(x):
        jax.debug.callback(lambda v: held.get("other"), x)
        return x * held["by"]

    assert float(f(3.0)) == 6
    held["by"] = 5.0
    assert float(f(3.0)) == 15


class Asked:
    """Says of each attribute that it does not have that it was asked for it."""

    def __init__(self):
        self.asked = []

    def __getattr__(self, name):
        if name != "asked":
            self.asked.append(name)
        raise AttributeError(name)

    def __call__(self, x):
        return x


def test_objects_are_not_asked_for_attributes():
    whole = Asked()
    held = [whole]

    def f(x):
        return whole(x) + len(held)

    for g in (f, whole, functools.partial(f), functools.partial(whole)):
        captured(g)
        is_transparent(g)
    jax.jit(f)(1.0)
    jax.jit(jax.checkpoint(f))(1.0)
    assert whole.asked == []


def test_wrappers_say_what_they_wrap():
    @functools.wraps(len)
    def plain(x):
        return SCALE * x

    class Wrapper:
        def __init__(self, f):
            functools.update_wrapper(self, f)

        def __call__(self, x):
            return self.__wrapped__(x)

    assert names(jax.jit(lambda x: SCALE * x)) == ["SCALE"] == names(jax.vmap(lambda x: SCALE * x))
    assert names(Wrapper(lambda x: SCALE * x)) == ["SCALE"] == names(plain)
