"""Errors of traced values: the class, the argument, the line, the remedy."""

import os
import pickle
import re

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import errors


def branch(x, unrelated):
    y = x * 2
    if y > 3:
        return y
    return unrelated


@pytest.mark.parametrize(
    "transform", [calque.jit, calque.make_jaxpr, lambda f: calque.jit(calque.grad(f))]
)
def test_truth_value(transform):
    with pytest.raises(errors.TracerBoolConversionError) as e:
        transform(branch)(2.0, 1.0)
    text = str(e.value)
    assert "bool[]" in text and "lax.cond" in text


def test_the_error_names_argument_function_and_line():
    with pytest.raises(errors.TracerBoolConversionError) as e:
        calque.jit(branch)(2.0, 1.0)
    text = str(e.value)
    assert re.search(r"depends on the argument x of the function branch", text)
    assert os.path.basename(__file__) in text and f":{branch.__code__.co_firstlineno + 2}" in text
    with pytest.raises(errors.TracerBoolConversionError, match=re.escape("params['w'][1]")):
        calque.jit(lambda params: 1 if params["w"][1] else 2)({"w": [1.0, 2.0]})


CASES = {
    "float": (lambda x: float(x), errors.ConcretizationTypeError),
    "int": (lambda x: int(x), errors.ConcretizationTypeError),
    "complex": (lambda x: complex(x), errors.ConcretizationTypeError),
    "item": (lambda x: x.item(), errors.ConcretizationTypeError),
    "tolist": (lambda x: x.tolist(), errors.ConcretizationTypeError),
    "index": (lambda x: [1, 2][x.astype(int)], errors.TracerIntegerConversionError),
    "range": (lambda x: range(x.astype(int)), errors.TracerIntegerConversionError),
    "numpy": (lambda x: np.sin(x), errors.TracerArrayConversionError),
    "and": (lambda x: x and 1, errors.TracerBoolConversionError),
    "mask": (lambda x: jnp.ones(3)[x > 0], errors.NonConcreteBooleanIndexError),
}


@pytest.mark.parametrize("name", CASES)
def test_values_are_not_known_while_tracing(name):
    f, error = CASES[name]
    with pytest.raises(error) as e:
        calque.jit(f)(2.0)
    assert len(str(e.value)) > 80


def test_iterating_over_a_0_d_array():
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        list(jnp.float32(1))


def test_what_is_no_array():
    with pytest.raises(TypeError, match=r"at path x\['a'\].*<object object"):
        calque.jit(lambda x: 1)({"a": object()})
    with pytest.raises(TypeError, match="returned a value of type <class 'str'>"):
        calque.jit(lambda x: "text")(1)


def test_what_callbacks_raise():
    class Refusal(ValueError):
        def __init__(self, code, *, hint):
            super().__init__(code)
            self.hint = hint

    def refuse(x):
        raise Refusal(7, hint="none")

    shape = calque.ShapeDtypeStruct((), np.float32)
    for run in (lambda f: f, calque.jit):
        with pytest.raises(Refusal, match=r"CpuCallback error.*Refusal: 7") as caught:
            run(lambda x: calque.pure_callback(refuse, shape, x))(1.0)
        assert isinstance(caught.value, calque.errors.JaxRuntimeError)
        assert (caught.value.args, getattr(caught.value, "hint", "none")) == ((7,), "none")

        def coded(x):
            raise UnicodeDecodeError("utf-8", b"x", 0, 1, "a reason")

        with pytest.raises(calque.errors.JaxRuntimeError, match="a reason"):
            run(lambda x: calque.pure_callback(coded, shape, x))(1.0)


class ValueOfUsers(calque.core.Tracer):
    """A traced value of a class that calque does not know."""

    def __init__(self, aval):
        super().__init__(None, aval)


PAGES = {
    "ConcretizationTypeError": errors.ConcretizationTypeError,
    "NonConcreteBooleanIndexError": errors.NonConcreteBooleanIndexError,
    "TracerArrayConversionError": errors.TracerArrayConversionError,
    "TracerBoolConversionError": errors.TracerBoolConversionError,
    "TracerIntegerConversionError": errors.TracerIntegerConversionError,
    "UnexpectedTracerError": errors.UnexpectedTracerError,
    "KeyReuseError": errors.KeyReuseError,
    "JAXIndexError": errors.JAXIndexError,
}


@pytest.mark.parametrize("name", PAGES)
def test_an_error_made_from_a_value_says_its_type_and_where_to_read_on(name):
    kind = PAGES[name]
    of_type = kind(ValueOfUsers(calque.core.ShapedArray((2, 3), np.dtype("float32"))))
    assert "f32[2,3] (ValueOfUsers)" in str(of_type)
    assert str(of_type).endswith(f"errors.html#jax.errors.{name}")
    assert str(kind(ValueOfUsers(None))).endswith(f"#jax.errors.{name}")  # of no type
    made = []
    calque.make_jaxpr(lambda x: made.append(kind(x, "It came from above.")))(1)
    (of_argument,) = made
    assert "i32[]" in str(of_argument) and "It came from above." in str(of_argument)
    assert str(pickle.loads(pickle.dumps(of_argument))) == str(of_argument)


def test_an_error_made_from_a_text_is_that_text():
    for kind in (errors.JAXTypeError, *PAGES.values()):
        assert str(kind("only this")) == "only this" and kind("a", 2).args == ("a", 2)
        assert str(kind()) == ""
