"""Sizes with names: what is known of them, and as text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import calque as jax
from calque.core.errors import InconclusiveDimensionOperation
from calque.core.symbols import Symbols
from calque.xla.exporting.scopes import Scope, least, most, scope_of, shape_of


def sizes(text: str, *constraints: str) -> tuple[Any, ...]:
    return shape_of(text, Scope(constraints))


def test_texts_come_back() -> None:
    for text in ("a", "b + 2*a", "3*a^2", "floordiv(a, 2)", "mod(b + a, 3)", "max(a - 5, 0)"):
        scope = Scope()
        (d,) = shape_of(text, scope)
        assert shape_of(str(d), scope) == (d,), (text, str(d))
    assert str(sizes("a*b - a + 7")[0]) == "a*b - a + 7"


def test_what_bounds_answer() -> None:
    a, b = sizes("a, b")
    assert a >= 1 and a > 0 and a + b >= 2 and not a < 1 and 2 * a != a
    assert (a == b) is False and (a == 1) is False  # what may be different is
    assert least(a, 0) == 0 and most(a, 1) == a and str(least(a, b)) == "min(a, b)"
    for question in (lambda: a < b, lambda: a > 1, lambda: b - a >= 0, lambda: int(a)):
        with pytest.raises(InconclusiveDimensionOperation, match="Symbolic dimension"):
            question()


def test_constraints() -> None:
    a, b, c = sizes("a, b, c", "a >= 3", "b <= 2*a", "c == 4*b")
    assert a >= 3 and a - 2 > 0 and 2 * a - b >= 0 and c == 4 * b
    assert str(c) == "4*b"
    for wrong in ("a", "a > 3", "a >= "):
        with pytest.raises(ValueError, match=r"constraint|symbolic shape"):
            Scope([wrong])
    with pytest.raises(ValueError, match="sequence of strings"):
        Scope("a >= 3")
    assert "with the constraints a >= 3" in str(Scope(["a >= 3"]))


def test_values() -> None:
    scope = Scope()
    shape = shape_of("a*b + 3, floordiv(a, b), mod(a, b), max(a, b), min(a - b, 0)", scope)
    for a, b in ((7, 2), (3, 5)):
        values = {"a": a, "b": b}
        found = [scope.at_values(d.poly, values) for d in shape]
        assert found == [a * b + 3, a // b, a % b, max(a, b), min(a - b, 0)]
    assert scope.variables(shape) == ["a", "b"] and scope_of((1, *shape)) is scope
    assert scope_of((1, 2)) is None


@pytest.mark.parametrize(
    "text", ["a, _", "a, ...", "a b", "a/2", "f(a, 2)", "(a, 2", "a, 'b'", "sin(a)", "a, 1.5"]
)
def test_what_is_no_shape(text: str) -> None:
    with pytest.raises(ValueError, match=r"symbolic shape|leaves out"):
        sizes(text)


def test_what_another_shape_gives() -> None:
    scope = Scope()
    assert shape_of("_, a, ...", scope, (2, 3, 4, 5))[2:] == (4, 5)
    for text in ("_, _", "_, a, 5, ..., b, c", "4, _, _", "..., ..."):
        with pytest.raises(ValueError, match="dimension"):
            shape_of(text, scope, (2, 3, 4))


def test_types_with_such_sizes() -> None:
    scope = Scope()
    spec = jax.ShapeDtypeStruct(shape_of("a, 2*a", scope), np.float32)
    out = jax.eval_shape(lambda x: x.reshape(-1), spec)
    assert str(out.shape) == "(2*a^2,)"


def test_sizes_know_their_scope() -> None:
    (a,) = jax.export.symbolic_shape("a", constraints=("a >= 8",))
    (b,) = jax.export.symbolic_shape("b", scope=a.scope)
    assert b.scope is a.scope and (a + 1).scope is a.scope and "a >= 8" in str(a.scope)
    assert str(a + b) == "b + a" and a + b >= 9
    given = jax.export.SymbolicScope(["c >= 2"])
    assert jax.export.symbolic_shape("c", scope=given)[0].scope is given
    with pytest.raises(AttributeError, match="no scope"):
        Symbols((3,)).sizes()[0].scope


def test_scopes_are_not_mixed() -> None:
    (a,), (c,) = sizes("a", "a >= 8"), sizes("a")
    assert (a == c) is False and (a != c) is True
    for mixed in (
        lambda: a + c, lambda: c - a, lambda: a * c, lambda: a // c, lambda: a % c,
        lambda: a < c, lambda: a >= c, lambda: max(a, c),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="Invalid mixing of symbolic scopes"):
            mixed()


def test_sizes_of_shapes_are_not_negative() -> None:
    size, n = sizes("n - 2, n")
    assert size >= 0 and n >= 2 and str(size) == "n - 2"
    with pytest.raises(InconclusiveDimensionOperation):
        _ = size >= 1


def test_what_is_made_of_sizes_is_bounded_by_their_constraints() -> None:
    (n,) = sizes("n", "n >= 4", "n <= 9")
    assert n // 2 - 2 >= 0 and n % (n - 2) >= 0 and n // (n - 3) <= 9
    with pytest.raises(InconclusiveDimensionOperation):
        _ = n // 2 >= 3


def test_what_a_program_asked_is_not_asked_again_when_it_is_read() -> None:
    scope = Scope()
    for text in ("n - 2", "floordiv(n - 3, n - 2)", "n*n - m", "mod(n - 5, 3)"):
        size = scope.of_program(text)
        assert size >= 0
    with pytest.raises(InconclusiveDimensionOperation):
        _ = scope.of_program("n") >= 5
