"""What cannot be converted is named: the variable or statement, its line, and what to write
instead."""

import functools
import linecache
import warnings

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque.errors import ControlFlowError, TracerBoolConversionError

converted = functools.partial(jax.jit, control_flow="convert")
HOLDER = type("Holder", (), {})()
TABLE = {"a": 1.0}
TOTAL = 0.0


def line(f, offset):
    """The place `offset` lines below the `def` of a function."""
    return f"{f.__code__.co_filename}:{f.__code__.co_firstlineno + offset}"


def refused(f, kind, *args):
    with pytest.raises(kind) as e:
        converted(f)(*args)
    return str(e.value)


def test_a_variable_of_one_branch():
    def f(x):
        if x > 0:
            t = x
        return t + 1

    text = refused(f, NameError, 1.0)
    assert (
        "variable 't'" in text
        and "only one branch" in text
        and line(f, 1) in text
        and "before the `if`" in text
    )
    assert jax.convert(f)(1.0) == 2.0
    with pytest.raises(UnboundLocalError):
        jax.convert(f)(-1.0)


def test_branches_of_different_shapes_structures_and_kinds():
    def f(x, a, b):
        if x > 0:
            t = a
        else:
            t = b
        return t

    g = jax.convert(f)
    for a, b, texts in [
        (jnp.ones(2), jnp.ones(3), ("float32[2]", "float32[3]")),
        (jnp.ones(2), (jnp.ones(2),), ("float32[2]", "(float32[2],)")),
        ("a", "b", ("'a'", "'b'")),
        (1.0, None, ("float32[]", "None")),
    ]:
        with pytest.raises(NameError) as e:
            jax.jit(lambda x, a=a, b=b: g(x, a, b))(1.0)
        assert all(t in str(e.value) for t in (*texts, "variable 't'", line(f, 1)))


def test_a_variable_that_nobody_reads_may_differ():
    def f(x):
        if x > 0:
            t = jnp.ones(2)
            x = x + t.sum()
        else:
            t = "nothing"
        return x

    assert float(converted(f)(1.0)) == 3.0


def test_returned_values_that_differ():
    def f(x):
        if x > 0:
            return jnp.ones(2)
        return jnp.ones(3)

    text = refused(f, ControlFlowError, 1.0)
    assert (
        "returned" in text and "float32[2]" in text and "float32[3]" in text and line(f, 1) in text
    )

    def falls_off(x):
        if x > 0:
            return x

    text = refused(falls_off, ControlFlowError, 1.0)
    assert "nothing otherwise" in text and line(falls_off, 0) in text

    def nothing(x):
        if x > 0:
            return
        x = x + 1

    assert converted(nothing)(1.0) is None


def test_conditional_expressions_that_differ():
    def f(x):
        return jnp.ones(2) if x > 0 else None

    assert "conditional expression" in refused(f, ControlFlowError, 1.0)


def test_loops_that_change_types():
    def f(x, n):
        for _ in range(n):
            x = jnp.concatenate([x, x])
        return x

    text = refused(f, NameError, jnp.ones(2), 3)
    assert "variable 'x'" in text and "from float32[2] to float32[4]" in text and line(f, 1) in text

    def appends(n):
        out = []
        for i in range(n):
            out.append(i)
        return out

    text = refused(appends, NameError, 3)
    assert "variable 'out'" in text and "from [] to [int32[]]" in text


def test_a_variable_of_a_loop_that_may_not_run():
    def f(n):
        for i in range(n):
            y = i
        return y

    text = refused(f, NameError, 3)
    assert "variable 'y'" in text and "may run no round" in text and line(f, 1) in text
    assert jax.convert(f)(3) == 2


def test_a_variable_read_before_it_is_set_in_a_loop():
    def f(n):
        for i in range(n):
            if i > 0:
                z = y  # noqa: F821
            else:
                z = 0
            y = z + i  # noqa: F841
        return z

    refused(f, NameError, 3)


@pytest.mark.parametrize("step", [2, -2])
def test_steps_of_unknown_sign(step):
    def f(n):
        total = 0
        for i in range(0, 10, n):
            total += i
        return total

    assert "sign" in refused(f, ControlFlowError, step) and "while" in refused(
        f, ControlFlowError, step
    )
    assert jax.convert(f)(2) == 20


def test_bounds_must_be_integers():
    def f(n):
        total = 0
        for i in range(n):
            total += i
        return total

    assert "float32[]" in refused(f, TypeError, 2.5)
    assert "int32[2]" in refused(f, TypeError, jnp.arange(2))
    with pytest.raises(ValueError, match="must not be zero"):
        converted(lambda n: [range(0, n, 0)])(2)


def test_bounds_must_fit_their_type():
    def f(n):
        for i in range(n, -1, -1):
            n = i
        return n

    assert "the bound -1" in refused(f, ControlFlowError, np.uint8(3))
    assert "the step 200" in refused(lambda n: [range(0, n, 200)], ControlFlowError, np.int8(3))


def test_assert_on_a_traced_condition():
    def f(x):
        assert x > 0, "negative"
        return x

    text = refused(f, ControlFlowError, 1.0)
    assert f"line {f.__code__.co_firstlineno + 1}" in text and "calque.check" in text
    with pytest.raises(AssertionError, match="negative"):
        jax.convert(f)(-1.0)


def test_ranges_of_unknown_length_are_for_loops_only():
    assert "for i in range(n)" in refused(lambda n: [i for i in range(n)], ControlFlowError, 3)
    assert "enumerate" in refused(lambda n: list(enumerate(range(n))), ControlFlowError, 3)
    assert "length" in refused(lambda n: len(range(n)), ControlFlowError, 3)


def test_raise_under_a_traced_condition():
    def f(x):
        if x < 0:
            raise ValueError("negative")
        return x

    text = refused(f, ControlFlowError, 1.0)
    assert f"line {f.__code__.co_firstlineno + 2}" in text and "calque.check" in text
    with pytest.raises(ValueError, match="negative"):
        jax.convert(f)(-1.0)

    def static(x, n):
        if n < 0:
            raise ValueError("negative")
        return x

    with pytest.raises(ValueError, match="negative"):
        jax.jit(static, static_argnums=1, control_flow="convert")(1.0, -1)


def sets_an_attribute(x):
    if x > 0:
        HOLDER.value = 1.0
    return x


def sets_an_item(x):
    if x > 0:
        TABLE["a"] = 2.0
    return x


def sets_a_global(x):
    global TOTAL
    if x > 0:
        TOTAL = 1.0
    return x


def sets_in_a_numpy_array(x):
    a = np.zeros(2)
    if x > 0:
        a[0] = 1.0
    return x + a[0]


@pytest.mark.parametrize(
    "f", [sets_an_attribute, sets_an_item, sets_a_global, sets_in_a_numpy_array]
)
def test_stores_that_would_happen_in_either_case(f):
    text = refused(f, ControlFlowError, -1.0)
    assert "under a traced condition" in text and "sets" in text
    assert not hasattr(HOLDER, "value") and TABLE == {"a": 1.0} and TOTAL == 0.0


def test_conditions_of_more_than_one_element():
    def f(x):
        if x > 0:
            return x
        return -x

    for x in (jnp.ones(2), jnp.ones((1, 3)), jnp.ones(0)):
        assert "ambiguous" in refused(f, ValueError, x)
    assert converted(f)(-jnp.ones((1, 1))).tolist() == [[1.0]]


def generator(x):
    yield x


async def coroutine(x):
    return x


FINALLY = """
def leaves_finally(x):
    if x > 0:
        return x
    try:
        x = x + 1
    finally:
        return x

def holds_such_a_function(x):
    def inside(y):
        try:
            return undefined
        finally:
            return 2 * y
    return inside(x) if x > 0 else x
"""


@pytest.fixture
def leaving(tmp_path):
    """Functions that leave `finally`, of which the compiler warns from 3.14 on."""
    path = tmp_path / "leaving.py"
    path.write_text(FINALLY)
    space: dict[str, object] = {"__name__": __name__}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(FINALLY, str(path), "exec"), space)
    return space


def test_what_is_compiled_again_is_not_warned_of_again(leaving):
    f = leaving["holds_such_a_function"]
    assert f(3.0) == 6.0 and jax.convert(f)(3.0) == 6.0 and jax.convert(f)(-3.0) == -3.0


def test_functions_that_cannot_be_converted(leaving):
    space = {}
    exec("def unseen(x):\n    return x if x > 0 else -x", space)
    leaves_finally = leaving["leaves_finally"]
    for f, text in [
        (generator, "generator"),
        (coroutine, "coroutine"),
        (space["unseen"], "source"),
        (leaves_finally, f"line {leaves_finally.__code__.co_firstlineno + 6} leaves a `finally`"),
        (len, "no Python function"),
    ]:
        # a generator is refused by jit itself
        with pytest.raises(TypeError if f is generator else ControlFlowError, match=text):
            converted(f)
        with pytest.raises(ControlFlowError, match=text):
            jax.convert(f)


def test_what_is_no_function():
    for x in (3, int):
        with pytest.raises(TypeError, match="expected a function"):
            jax.convert(x)
    with pytest.raises(ValueError, match="control_flow"):
        jax.jit(lambda x: x, control_flow="auto")


def test_calls_of_functions_without_source():
    space = {"__name__": __name__}
    exec("def unseen(x):\n    return x if x > 0 else -x", space)
    unseen = space["unseen"]
    refused(lambda x: unseen(x), TracerBoolConversionError, 1.0)


def test_variables_are_as_before_after_an_error():
    state = 1.0

    def f(x):
        nonlocal state
        if x > 0:
            state = x
            raise KeyError
        return state

    with pytest.raises(ControlFlowError):
        converted(f)(2.0)
    assert state == 1.0


def test_the_error_without_the_option_mentions_it():
    with pytest.raises(TracerBoolConversionError, match='control_flow="convert"'):
        jax.jit(lambda x: 1 if x > 0 else 2)(1.0)


def test_a_text_of_that_name_is_of_another_code():
    """Some interpreters keep the text of `python -c` under the name that `exec` gives too."""
    space: dict[str, object] = {}
    exec("def unseen(x):\n    return x if x > 0 else -x", space)
    unseen = space["unseen"]
    for text in (
        "import sys\nprint(1)\n",
        "def unseen(x, y):\n    return x\n",
        "this is no Python (",
    ):
        linecache.cache["<string>"] = len(text), None, text.splitlines(True), "<string>"
        try:
            refused(lambda x: unseen(x), TracerBoolConversionError, 1.0)
        finally:
            del linecache.cache["<string>"]
