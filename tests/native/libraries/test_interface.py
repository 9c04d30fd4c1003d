"""Names and types as C has them."""

import pytest

import calque as jax
import calque.numpy as jnp
from calque.native.libraries.interface import Interface, identifiers, is_name
from tests.native.libraries.shared import S, exported, needs_images


def test_names_of_arguments_become_identifiers():
    names = ["x", "params['w'][0]", "int", "x", "2nd", "params['w']_0", "lambda", "[0]"]
    assert identifiers(names, ["n"]) == [
        "x", "params_w_0", "int_", "x_2", "x2nd", "params_w_0_2", "lambda_", "x0",
    ]  # fmt: skip
    assert identifiers(["n"], ["n"]) == ["n_2"]


def test_names_of_functions():
    assert all(map(is_name, ("f", "_f", "f_2", "F")))
    assert not any(map(is_name, ("", "2f", "f-2", "int", "class", "lambda", "f g", "é")))


def test_statuses_are_given_once():
    interface = Interface("f", (), (), ())
    first = interface.status("one")
    assert interface.status("two") == first + 1
    assert interface.status("one") == first >= 10
    assert interface.messages[first] == "one"


@needs_images
def test_types_that_c_has_not_are_bits(tmp_path):
    def f(x):
        return x * 2, x.astype(jnp.float16), x.astype(jnp.float8_e4m3fn), x > 0

    g, module = exported(tmp_path, f, (S((3,), jnp.bfloat16),))
    assert [dtype for _, dtype, _ in module.RESULTS] == ["uint16", "float16", "uint8", "bool"]
    x = jnp.array([1.5, -2, 3], jnp.bfloat16)
    got = g(x.view(jnp.uint16))
    want = f(x)
    for a, b in zip(got, want, strict=True):
        assert a.tobytes() == b.tobytes()
    text = (tmp_path / "f.h").read_text()
    assert "bfloat16[3], the bits of an element" in text and "const uint16_t *x" in text


@needs_images
def test_types_without_a_form_in_c_are_refused(tmp_path):
    with pytest.raises(NotImplementedError, match="random keys as jax"):
        jax.export_library(jax.random.normal, (jax.random.key(0),), tmp_path / "f")
    with pytest.raises(NotImplementedError, match=r"i4\[3\], which has no type in C"):
        jax.export_library(lambda x: x, (S((3,), jnp.int4),), tmp_path / "f")
