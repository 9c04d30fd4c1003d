"""The free sizes of one trace: bounds, questions and their guards, programs that work sizes out."""

import pytest

from calque.core.errors import ConcretizationTypeError
from calque.core.symbols import Symbols


def test_equal_expressions_are_one_size() -> None:
    symbols = Symbols((3, 4))
    n, m = symbols.sizes()
    assert (n + m) * 2 is m * 2 + 2 * n and n * m is m * n and n - n == 0
    assert symbols.dim((((), 7),)) == 7 and symbols.dim(()) == 0
    assert n // 2 is n // 2 and n % 3 is not n // 3


def test_questions_are_answered_by_bounds_or_by_the_hint() -> None:
    symbols = Symbols((3, 4))
    n, m = symbols.sizes()
    assert n > 0 and n + 1 != 0 and n // 2 <= n and not symbols.guards
    assert n < m and n != m and len(symbols.guards) == 2
    answers = dict(symbols.guards)
    assert n < m and symbols.guards == answers  # asked again: the same answer
    symbols.open = False
    assert n < 100 and symbols.guards == answers


def test_bounds_of_quotients() -> None:
    symbols = Symbols((7,))
    (n,) = symbols.sizes()
    assert symbols.bounds((n - n // 2).poly)[0] >= 0
    assert symbols.bounds((n % 5).poly) == (0, 4)
    assert symbols.bounds((2 * n + 1).poly)[0] == 3


def test_programs_give_values_for_other_sizes() -> None:
    symbols = Symbols((3, 4))
    n, m = symbols.sizes()
    wanted = [n * m + 1, (n + 5) // 2, (n * m) % 7]
    program = symbols.program([("value", d.poly) for d in wanted])
    for a in (1, 2, 10):
        for b in (1, 6):
            assert program(a, b) == (a * b + 1, (a + 5) // 2, (a * b) % 7)
    questions = symbols.program([("zero", (n - m).poly), ("negative", (n - m).poly)])
    assert [bool(x) for x in questions(3, 3)] == [True, False]
    assert [bool(x) for x in questions(2, 3)] == [False, True]


def test_found_sizes_have_bounds_and_no_answers() -> None:
    symbols = Symbols((6,))
    (n,) = symbols.sizes()
    k = symbols.found("nonzero", n)
    assert symbols.is_found(k.poly) and not symbols.is_found(n.poly)
    assert k >= 0 and n - k >= 0 and not symbols.guards
    with pytest.raises(ConcretizationTypeError, match=r"is it below 0\?.*nonzero"):
        symbols.ask("negative", (k - 2).poly)
    assert symbols.value(k.poly) is None and "nonzero" in symbols.maker(k)
    symbols.settle(k, 4)
    assert symbols.value((k * 2 + n).poly) == 14 and symbols.ask("negative", (k - 5).poly)


def test_names_for_people() -> None:
    symbols = Symbols((3, 4))
    n, m = symbols.sizes()
    assert symbols.text((2 * n * m - n + 1).poly, symbols.shown) == "2*n*m - n + 1"
    assert symbols.text(((n + 1) // 2).poly, symbols.shown) == "floordiv(n + 1, 2)"
    assert symbols.text((), symbols.shown) == "0"
