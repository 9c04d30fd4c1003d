import numpy as np
import pytest

import calque
import calque.core
import calque.experimental
import calque.numpy as jnp
from calque import debug
from calque.transforms.functions.autodiff import grad
from calque.transforms.functions.callbacks import (
    VMAP_METHODS,
    debug_callback,
    debug_print,
    io_callback,
    pure_callback,
)
from calque.transforms.functions.loops import scan
from calque.transforms.functions.shapes import ShapeDtypeStruct, make_jaxpr
from calque.transforms.functions.vmap import vmap
from calque.transforms.jit.decorator import jit
from tests.transforms.programs import close, primitives_of, reference_backend  # noqa: F401

pytestmark = pytest.mark.usefixtures("reference_backend")
X = np.arange(3, dtype=np.float32)


def sine(x, method=None):
    result = ShapeDtypeStruct(x.shape, np.float32)
    return pure_callback(lambda v: np.sin(np.asarray(v)), result, x, vmap_method=method)


def test_pure_callback():
    close([sine(X), jit(sine)(X)], [np.sin(X), np.sin(X)])
    out = jit(
        lambda x: pure_callback(
            lambda a, k: {"s": a + k}, {"s": ShapeDtypeStruct((3,), np.float32)}, x, k=2.0
        )
    )(X)
    close(out, {"s": X + 2})


@pytest.mark.parametrize("method", VMAP_METHODS)
def test_pure_callback_of_batches(method):
    close(vmap(lambda x: sine(x, method))(X), np.sin(X))
    close(jit(vmap(lambda x: sine(x, method)))(X), np.sin(X))


def test_pure_callback_refuses():
    with pytest.raises(NotImplementedError, match="vmap_method"):
        vmap(sine)(X)
    with pytest.raises(ValueError, match="do not support JVP"):
        grad(lambda x: sine(x))(np.float32(1.0))
    with pytest.raises(RuntimeError, match=r"float32\[4\].*f32\[3\]"):
        pure_callback(lambda: np.ones(4, np.float32), ShapeDtypeStruct((3,), np.float32))
    with pytest.raises(RuntimeError, match="structure"):
        pure_callback(lambda: (1.0, 2.0), ShapeDtypeStruct((), np.float32))
    with pytest.raises(ValueError, match="vmap_method"):
        sine(X, "fast")


def test_an_exception_comes_back_as_itself():
    def broken(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        pure_callback(broken, ShapeDtypeStruct((), np.float32), 1.0)


def test_io_callbacks_keep_their_order():
    seen = []

    @jit
    def f(x):
        io_callback(lambda v: seen.append(("a", float(v))), None, x, ordered=True)
        io_callback(lambda v: seen.append(("b", float(v))), None, x * 2, ordered=True)
        return x

    f(1.0)
    f(2.0)
    assert seen == [("a", 1.0), ("b", 2.0), ("a", 2.0), ("b", 4.0)]
    with pytest.raises(ValueError, match="ordered IO"):
        vmap(lambda x: io_callback(lambda v: None, None, x, ordered=True))(X)


def test_effects_are_kept_in_programs():
    names = primitives_of(
        make_jaxpr(grad(lambda x: (debug_callback(lambda v: None, x), x * x)[1]))(1.0)
    )
    assert "debug_callback" in names


def test_debug_print(capsys):
    jit(lambda x: debug_print("x = {x}, {}", x + 1, x=x))(2.0)
    vmap(lambda x: debug_print("lane {}", x))(np.arange(2))
    scan(
        lambda c, x: (debug_print("round {x} of {name}", x=x, name="loop"), (c, None))[1],
        0,
        np.arange(2),
    )
    assert float(grad(lambda x: (debug_print("at {}", x), x * x)[1])(3.0)) == 6.0
    assert capsys.readouterr().out.splitlines() == [
        "x = 2.0, 3.0",
        "lane 0",
        "lane 1",
        "round 0 of loop",
        "round 1 of loop",
        "at 3.0",
    ]


def test_debug_print_checks_its_format():
    with pytest.raises(ValueError, match="Unused positional arguments"):
        debug_print("nothing", 1.0)
    with pytest.raises((IndexError, KeyError)):
        debug_print("{} {}", 1.0)


def test_wrong_results_name_the_callback():
    def measure(x):
        return np.ones(3, np.float32)

    with pytest.raises(
        RuntimeError,
        match=r"the callback measure returned at output 0 .* result_shape_dtypes say f32\[\]",
    ):
        pure_callback(measure, ShapeDtypeStruct((), np.float32), 1.0)


def test_the_facade():
    from calque import experimental

    assert experimental.io_callback is io_callback


@pytest.mark.parametrize("call", [calque.pure_callback, calque.experimental.io_callback])
def test_results_need_not_be_numpy_arrays_of_the_same_tree(call, caplog):
    class Foreign:
        def __array__(self, dtype=None, copy=None):
            return np.array(42.0, np.float32)

    shape = calque.ShapeDtypeStruct((), np.float32)
    assert float(calque.jit(lambda x: call(lambda x: Foreign(), shape, x))(1.0)) == 42.0
    out = calque.jit(lambda x: call(lambda x: {"y": [x]}, {"y": [shape]}, [x]))(jnp.float32(2.0))
    assert float(out["y"][0]) == 2.0
    with pytest.raises(ValueError, match="result_shape_dtypes cannot specify 64-bit types"):
        call(lambda: 1.0, calque.core.ShapedArray((), np.dtype("float64")))

    def fail(x):
        raise KeyError("lost")

    with pytest.raises(Exception, match="lost"):
        calque.jit(lambda x: call(fail, shape, x))(1.0)
    assert "_callback failed" in caplog.text and "Traceback" in caplog.text


# ---------------------------------------------------------------- options first


def test_options_may_be_given_before_the_function(capsys):
    got = []
    debug.callback(ordered=True)(lambda *args, **named: got.append((args, named)), 1, ordered=2)
    calque.jit(lambda x: debug.callback(partitioned=True)(got.append, x))(3.0)
    debug.print(ordered=True)("{fmt} {ordered}", fmt=4, ordered=5)
    calque.effects_barrier()
    assert [int(x) for x in (got[0][0][0], got[0][1]["ordered"], got[1])] == [1, 2, 3]
    assert capsys.readouterr().out == "4 5\n"


@pytest.mark.parametrize("function", [debug.print, debug.callback, debug.log])
def test_options_alone_are_given_before(function):
    for args, named in (((None, 42), {}), ((), {"a": 42})):
        with pytest.raises(TypeError, match=r"two-call form.*(42|'a')"):
            function(*args, ordered=True, **named)
    wrong = TypeError if function is debug.callback else ValueError  # a format is no function
    with pytest.raises(wrong, match=r"must be callable|Unused keyword arguments.*partitioned"):
        function(ordered=True)("x = {x}", x=1, partitioned=True)


def test_values_without_a_place_pass_if_asked(capsys):
    debug.print("{} {x:.2f}", 1, 2, x=jnp.ones(()) * 3, y=4, skip_format_check=True)
    calque.jit(lambda x: debug.print("{:.1f}", x, x, skip_format_check=True))(1.0)
    calque.effects_barrier()
    assert capsys.readouterr().out == "1 3.00\n1.0\n"
    with pytest.raises(KeyError, match="no keyword argument"):
        debug.print("{missing}", skip_format_check=True)


def test_values_are_logged_with_their_line(caplog):
    @calque.jit
    def f(x):
        debug.log("x = {x}", x=x * x)
        return x

    with caplog.at_level("INFO", "calque.debugging"):
        f(2.0)
        f(3.0)
        calque.vmap(lambda x: debug.log(ordered=False)("{}", x))(jnp.arange(2.0))
        calque.effects_barrier()
    assert [r.getMessage() for r in caplog.records] == ["x = 4.0", "x = 9.0", "0.0", "1.0"]
    record = caplog.records[0]
    assert (record.name, record.levelname) == ("calque.debugging", "INFO")
    assert (
        record.pathname == __file__ and record.lineno == f.__wrapped__.__code__.co_firstlineno + 2
    )
    caplog.clear()
    f(2.0)
    calque.effects_barrier()
    assert not caplog.records


@pytest.mark.parametrize("through", [lambda f: f, calque.jit])
def test_random_keys_in_callbacks(through, capsys):
    key, words = calque.random.key(3), np.array([0, 3], np.uint32)
    seen = []
    through(lambda k: calque.debug.callback(seen.append, k))(key)
    calque.effects_barrier()
    assert calque.random.key_data(seen[0]).tolist() == [0, 3]
    through(lambda k: calque.debug.print("{}", k))(key)
    calque.effects_barrier()
    assert "[0 3]" in capsys.readouterr().out
    total = calque.ShapeDtypeStruct((), np.uint32)
    count = through(
        lambda k: calque.pure_callback(lambda w: w.sum(), total, k, vmap_method="sequential")
    )
    assert count(key) == 3 and calque.vmap(count)(calque.random.split(key, 2)).shape == (2,)
    through(lambda k: io_callback(seen.append, None, k))(key)
    np.testing.assert_array_equal(seen[1], words)


@pytest.mark.parametrize("through", [lambda f: f, calque.jit])
def test_printed_values_have_the_form_that_numpy_was_asked_for(through, capsys):
    def show(x):
        with np.printoptions(precision=2, suppress=True):
            calque.debug.print("{}", x)

    through(show)(np.array([1.2345, 1e-7], np.float32))
    calque.effects_barrier()
    assert capsys.readouterr().out == "[1.23 0.  ]\n"
