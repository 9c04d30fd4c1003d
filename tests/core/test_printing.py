"""The printed form of programs."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.printing import Names, as_lists, indent, letters, literal, param


@pytest.mark.parametrize("n, text", [(0, "a"), (25, "z"), (26, "ba"), (27, "bb"), (26 * 26, "baa")])
def test_names_are_numbers(n, text):
    assert letters(n) == text


def test_many_names_differ():
    assert len({letters(n) for n in range(2000)}) == 2000


def test_a_short_program_is_one_line():
    assert str(calque.make_jaxpr(lambda x: x * 2)(1.0)) == (
        "{ lambda ; a:f32[]. let b:f32[] = mul a 2.0:f32[] in (b,) }"
    )


def test_a_long_program_has_a_line_for_each_equation():
    text = str(calque.make_jaxpr(lambda x: (jnp.sin(x), jnp.cos(x)))(1.0))
    assert text.split("\n") == [
        "{ lambda ; a:f32[]. let",
        "    b:f32[] = sin a",
        "    c:f32[] = cos a",
        "  in (b, c) }",
    ]


def test_constants_stand_before_the_bar_and_unread_results_have_no_name():
    k = jnp.arange(3.0)
    text = str(calque.make_jaxpr(lambda x: lax.top_k(x * k, 1)[0])(k))
    assert text.startswith("{ lambda a:f32[3]; b:f32[3]. let") and " _:i32[1] = top_k" in text


def test_inner_programs_are_indented():
    text = str(calque.make_jaxpr(lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x))(1.0))
    (sin,) = [line for line in text.split("\n") if "sin" in line]
    assert "branches=(" in text and sin.startswith("      ")


@pytest.mark.parametrize(
    "value, text", [(np.float32(2), "2.0"), (np.int32(3), "3"), (np.bool_(True), "True")]
)
def test_literals(value, text):
    assert literal(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(frozenset(), "frozenset({})"), (frozenset((2, 1)), "frozenset({1, 2})")],
)
def test_sets_are_printed_in_order(value, text):
    assert param(value, Names()) == text


def test_layout():
    assert indent("a\nb", 2) == "  a\n  b"
    assert as_lists((((1,), (0,)), ((), ()))) == (([1], [0]), ([], []))
    assert Names().count == 0


def scoped(x):
    with calque.named_scope("outer"):
        y = jnp.sin(x)
    return lax.scan(lambda c, v: (c * v, c), y, jnp.ones(3))[0]


def test_the_options_of_the_printed_form():
    program = calque.make_jaxpr(scoped)(1.0)
    line = scoped.__code__.co_firstlineno + 2
    placed = program.pretty_print(source_info=True)
    (sine,) = [text for text in placed.splitlines() if " sin " in text]
    assert sine.endswith(f"test_printing.py:{line} (scoped)") and " # " in sine
    (product,) = [text for text in placed.splitlines() if " mul " in text]
    assert product.endswith("(<lambda>)")  # inside programs inside
    columns = {
        t.index(" # ") for t in placed.splitlines() if t.startswith("    ") and "(scoped)" in t
    }
    assert len(columns) == 1
    assert "sin a # outer" in " ".join(program.pretty_print(name_stack=True).split())
    assert ":f32" not in program.pretty_print(print_shapes=False)
    assert "shape=(3,)" in program.pretty_print(custom_pp_eqn_rules=False)
    assert program.pretty_print() == str(program) == program.jaxpr.pretty_print(width=None)


def test_options_of_the_printed_form_that_are_refused():
    program = calque.make_jaxpr(jnp.sin)(1.0)
    with pytest.raises(NotImplementedError, match="use_color can only be one of"):
        program.pretty_print(use_color=True)
    with pytest.raises(TypeError, match="unexpected keyword argument 'colour'"):
        program.jaxpr.pretty_print(colour=True)


def test_equations_by_themselves():
    program = calque.make_jaxpr(lambda x, y: jnp.sin(x) @ y)(jnp.ones((2, 3)), jnp.ones(3))
    first, last = program.eqns
    assert str(first) == repr(first) == "a:f32[2,3] = sin b"
    assert str(last).startswith("a:f32[2] = dot_general[\n") and str(last).endswith("\n] b c")
    call = calque.make_jaxpr(calque.jit(jnp.sin))(1.0).eqns[0]
    inner = "jaxpr={ lambda ; b:f32[]. let a:f32[] = sin b in (a,) }"
    assert str(call) == f"a:f32[] = jit[name=sin {inner}] b"
