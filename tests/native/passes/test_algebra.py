"""Identities that keep every bit, and those that would not."""

from typing import Any

import numpy as np
import pytest

import calque as cq
import calque.numpy as jnp
from calque import lax
from calque.core import reference
from calque.core.arrays import to_array
from calque.core.config import config
from calque.core.jaxprs import check_jaxpr
from calque.core.primitives import do
from calque.native.passes import algebra, pipeline
from tests.native.passes.shared import X, named, names, outputs
from tests.native.programs import normal, traced


def test_algebra_keeps_bits() -> None:
    same = (
        lambda x: x * 1.0,
        lambda x: 1.0 * x,
        lambda x: x - 0.0,
        lambda x: x / 1.0,
        lambda x: -(-x),
        lambda x: jnp.maximum(x, -jnp.inf),
        lambda x: lax.stop_gradient(x),
        lambda x: x.reshape(5),
        lambda x: x[:],
        lambda x: jnp.concatenate([x]),
    )
    for f in same:
        assert names(f, X) == []
    assert names(lambda x: x + 0.0, X) == ["add"]
    assert names(lambda x: x * 0.0, X) == ["mul"]
    assert names(lambda x: x / 8.0, X) == ["mul"]
    assert names(lambda x: x / 3.0, X) == ["div"]
    assert names(lambda i: i + 0, np.arange(5, dtype=np.int32)) == []


def test_zeros_of_both_signs_are_different_constants() -> None:
    closed = traced(lambda x: [x + 0.0, x + (-0.0)], X)
    assert len(pipeline.run(closed).eqns) == 1  # x + -0.0 is x, x + 0.0 is not


def test_powers_by_roots() -> None:
    """A number in the text of the program; a number that is computed, or an array, is an exponent
    like any other."""
    (e,) = pipeline.run(traced(lambda x: do.pow(x, np.float32(1.5)), X)).eqns
    assert len(e.invars) == 1 and e.params == {"exponent": 1.5}
    (e,) = pipeline.run(traced(lambda x: do.pow(x, np.float32(1.7)), X)).eqns
    assert len(e.invars) == 2
    captured, half = jnp.float32(1.5), np.float32(3)
    for f in (
        lambda x: do.pow(x, captured),
        lambda x: do.pow(x, do.div(half, np.float32(2))),
        lambda x: cq.jit(lambda a, b: do.pow(a, b))(x, 1.5),
    ):
        (e,) = pipeline.run(traced(f, X)).eqns
        assert len(e.invars) == 2 and not e.params
        with config.override("calque_exact", True):
            x = jnp.linspace(0.1, 3.0, 5, dtype="float32")
            assert np.asarray(cq.jit(f)(x)).tobytes() == np.asarray(f(x)).tobytes()


def test_a_transposed_product_is_the_product_of_the_transposed() -> None:
    a, b, c = normal(20, 30), normal(30, 40, seed=1), normal(3, 7, 5)
    assert names(lambda a, b: (a @ b).T, a, b) == ["dot_general"]

    def both(p):
        return [p.T, p]

    assert names(lambda a, b: both(a @ b), a, b) == [
        "dot_general",
        "transpose",
    ]  # read twice: made once

    def flip(c):
        return jnp.einsum("bij,bkj->bki", c, c[:, :4])

    assert "transpose" not in names(flip, c)
    for fun, args in ((lambda a, b: (a @ b).T, (a, b)), (flip, (c,))):
        closed = traced(fun, *args)
        done = pipeline.run(closed)
        check_jaxpr(done.jaxpr)
        got, want = (reference.run(p, *map(to_array, args)) for p in (done, closed))
        np.testing.assert_allclose(np.asarray(got[0]), np.asarray(want[0]), rtol=1e-5, atol=1e-5)


AWKWARD = np.array([0.0, -0.0, 1.5, -1.5, np.inf, -np.inf, np.nan, 1e-40, 3e38], np.float32)
LITERALS = (0.0, -0.0, 1.0, -1.0, 8.0, 3.0, -0.25, 2.0**-126, 2.0**127, np.inf, -np.inf, np.nan)


@pytest.mark.parametrize("op", ["add", "sub", "mul", "div", "max", "min"])
@pytest.mark.parametrize("literal", LITERALS)
def test_every_literal_on_either_side(op: str, literal: float) -> None:
    """Whatever is rewritten, no bit of any number changes, that of a zero's sign included."""
    v = np.float32(literal)
    for f in (lambda x: getattr(do, op)(x, v), lambda x: getattr(do, op)(v, x)):
        closed = traced(f, AWKWARD)
        done = pipeline.run(closed)
        check_jaxpr(done.jaxpr)
        with np.errstate(all="ignore"):
            (got,), (want,) = outputs(done, AWKWARD), outputs(closed, AWKWARD)
        nan = np.isnan(want)
        assert (np.isnan(got) == nan).all()
        assert (got.view("u4")[~nan] == want.view("u4")[~nan]).all(), named(done)


def test_divisions_that_are_exact_products() -> None:
    """By a power of two whose reciprocal is a normal number; of halves and integers never."""
    for divisor, op in ((8.0, "mul"), (-0.5, "mul"), (2.0**-100, "mul"), (2.0**126, "div"), (3.0,
    "div"), (0.0, "div"), (np.inf, "div")):  # fmt: skip
        assert names(lambda x, d=divisor: do.div(x, np.float32(d)), X) == [op], divisor
    assert names(lambda x: do.div(x, np.float16(8)), X.astype(np.float16)) == ["div"]
    assert names(lambda i: do.div(i, np.int32(8)), np.arange(5, dtype=np.int32)) == ["div"]
    assert names(lambda i: do.div(i, np.int32(1)), np.arange(5, dtype=np.int32)) == []


def test_a_scalar_is_no_array() -> None:
    """What stands for a result has its shape and its dtype."""
    spread = {"shape": (5,), "broadcast_dimensions": (), "sharding": None}
    assert names(lambda x: do.broadcast_in_dim(x, **spread), np.float32(3)) == ["broadcast_in_dim"]
    assert names(lambda x: lax.convert_element_type(x, np.float16), X) == ["convert_element_type"]
    assert names(lambda x: lax.convert_element_type(x, np.float32), X) == []


def test_what_is_undone() -> None:
    i = np.arange(5, dtype=np.int32)
    assert names(lambda i: do.neg(do.neg(i)), i) == [] and names(lambda i: ~~i, i) == []
    assert names(lambda x: do.rev(do.rev(x, dimensions=(0,)), dimensions=(0,)), X) == []
    two = normal(2, 3)
    assert names(lambda x: do.rev(do.rev(x, dimensions=(0,)), dimensions=(1,)), two) == [
        "rev",
        "rev",
    ]
    assert names(lambda x: do.rev(x, dimensions=()), X) == []


def test_numbers_that_are_kept_apart_are_known() -> None:
    """XLA is to take them as they come; here they are constants. Arrays stay apart."""
    two = np.float32(2)
    assert names(lambda x: x * lax.optimization_barrier(two), X) == ["mul"]
    assert names(lambda x: lax.optimization_barrier(x), X) == ["optimization_barrier"]
    both = names(lambda x: [*lax.optimization_barrier((x, two))], X)
    assert both == ["optimization_barrier"]


def test_choices_that_are_known() -> None:
    a, b = X, X + 1
    yes, flags = np.bool_(True), np.array([True, False, True, False, True])
    chosen = pipeline.run(traced(lambda a, b: do.select_n(yes, a, b), a, b))
    np.testing.assert_array_equal(outputs(chosen, a, b)[0], b)
    assert names(lambda a, b: do.select_n(yes, a, b), a, b) == []
    assert names(lambda p, a: do.select_n(p, a, a), flags, a) == []
    assert names(lambda p, a, b: do.select_n(p, a, b), flags, a, b) == ["select_n"]


def test_layout_that_moves_nothing() -> None:
    two = normal(2, 3)
    assert names(lambda x: do.transpose(x, permutation=(0, 1)), two) == []
    assert (
        names(lambda x: do.pad(x, np.float32(0), padding_config=((0, 0, 0), (0, 0, 0))), two) == []
    )
    assert names(
        lambda x: do.pad(x, np.float32(0), padding_config=((0, 0, 1), (0, 0, 0))), two
    ) == ["pad"]
    assert names(lambda x: x[:, ::1], two) == [] and names(lambda x: x[:, ::2], two) != []
    assert names(lambda x: do.reduce_sum(x, axes=(), out_sharding=None), two) == []
    empty = np.zeros((0, 3), np.float32)
    assert names(lambda x, e: jnp.concatenate([e, x, e]), two, empty) == []
    assert names(lambda x, e: jnp.concatenate([e, x, x]), two, empty) == ["concatenate"]


@pytest.mark.parametrize("start", [-5, -1, 0, 2, 3, 99])
def test_known_starts_are_clamped_as_unknown_ones(start: int) -> None:
    def f(x: Any) -> Any:
        return do.dynamic_slice(x, np.int32(start), slice_sizes=(2,))

    closed = traced(f, X)
    done = pipeline.run(closed)
    assert named(done) == ["slice"]
    assert outputs(done, X)[0].tolist() == outputs(closed, X)[0].tolist()


def test_which_exponents_are_fixed() -> None:
    assert algebra.fixed_exponent(np.float32(1.5)) == 1.5
    assert algebra.fixed_exponent(np.array(-0.5)) == -0.5
    for other in (1.7, 2, np.int32(2), np.array([1.5]), None, float("nan"), 0.0):
        assert algebra.fixed_exponent(other) is None
