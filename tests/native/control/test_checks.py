"""Was every number finite, in all rounds? As a sum, which no finite number changes."""

from typing import Any

import numpy as np
import pytest

from calque.native.control import checks
from calque.native.loops.tree import Let, LoopValue, Recurrence, Store
from calque.native.scalars.expr import (
    FALSE,
    TRUE,
    Buffer,
    Expr,
    cast,
    const,
    either,
    ex,
    invert,
    load,
    ref,
    var,
)
from tests.native.run_kernel import run

n = var("n")
I = var("i", n)
X, Y, OUT = Buffer("x", (n,), "f32"), Buffer("y", (n,), "f32"), Buffer("out", (1,), "i1")
BAD = ref("bad", "i1")


def finite(x: Expr) -> Expr:
    return ex("lt", ex("abs", x), const(float("inf"), x.dtype))


def loop(following: Expr, init: Expr = FALSE, **more: Any) -> Recurrence:
    return Recurrence(
        (LoopValue("bad", init, following),), more.pop("body", ()), more.pop("var", I), **more
    )


AFTER = (Store(OUT, (const(0),), BAD),)
V, W = load(X, (I,)), load(Y, (I,))
FAILS = either(BAD, invert(finite(V)))


@pytest.mark.parametrize("wrong", [None, np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("where", [0, 7, 19])
def test_the_answer_is_the_same(wrong: float | None, where: int) -> None:
    """Of one number and of two, written in any of the forms that programs have."""
    forms = [
        FAILS,
        either(invert(finite(V)), BAD),
        either(BAD, either(invert(finite(V)), invert(finite(W)))),
        either(BAD, invert(ex("and", finite(V), finite(W)))),
        either(BAD, ex("ne", cast(invert(finite(V)), "i32"), const(0, "i32"))),
    ]
    for following in forms:
        made, after = checks.late_checks(loop(following), AFTER)
        assert made.states[0].init is const(0.0, "f32") and after != AFTER
        for a in (X, Y) if W in (following.args[1].args or ()) else (X,):
            values = {b: np.linspace(-3e38, 3e38, 20).astype("f4") for b in (X, Y)}
            if wrong is not None:
                values[a][where] = wrong
            got, want = np.zeros(1, bool), np.zeros(1, bool)
            run((made, *after), {**values, OUT: got, "n": 20})
            run((loop(following), *AFTER), {**values, OUT: want, "n": 20})
            assert got[0] == want[0] == (wrong is not None)


def same(made: tuple[Recurrence, Any], given: Recurrence) -> bool:
    return made[0] is given and made[1] is AFTER


def test_what_stays_a_test_in_each_round() -> None:
    """Loops with a condition, which could not be left; states that are read; other tests."""
    whole = ref("k", "i32")
    for given in (
        loop(FAILS, cond=ex("lt", ref("c", "f32"), const(1.0, "f32")), var=None),
        loop(FAILS, init=TRUE),
        loop(either(BAD, ex("lt", V, const(0.0, "f32")))),
        loop(invert(finite(V))),  # of the last round only
        loop(either(BAD, invert(finite(load(Buffer("h", (n,), "f16"), (I,)))))),
        loop(either(BAD, invert(finite(ex("add", cast(BAD, "f32"), V))))),
        loop(FAILS, body=(Let("seen", ex("and", BAD, TRUE)),)),
    ):
        assert same(checks.late_checks(given, AFTER), given), given
    others = Recurrence(
        (
            LoopValue("bad", FALSE, FAILS),
            LoopValue("k", const(0, "i32"), ex("add", whole, cast(BAD, "i32"))),
        ),
        (),
        I,
    )
    assert same(checks.late_checks(others, AFTER), others)


def test_other_states_stay_as_they_are() -> None:
    total = LoopValue("s", const(0.0, "f32"), ex("add", ref("s", "f32"), V))
    given = Recurrence((total, LoopValue("bad", FALSE, FAILS)), (), I)
    made, after = checks.late_checks(given, (*AFTER, Store(Y, (const(0),), ref("s", "f32"))))
    assert made.states[0] is total and made.var is I
    assert after[1] == Store(Y, (const(0),), ref("s", "f32"))
    assert after[0].value.op == "ne" and after[0].value.args[0].dtype == "f32"  # type: ignore[union-attr]


def test_two_numbers_of_different_dtypes_are_no_sum() -> None:
    wide = load(Buffer("w", (n,), "f64"), (I,))
    assert checks.numbers_of(LoopValue("bad", FALSE, either(FAILS, invert(finite(wide))))) is None
    assert checks.numbers_of(LoopValue("bad", FALSE, either(BAD, invert(finite(wide))))) == [wide]


def test_flags_in_disguise() -> None:
    flag = ref("b", "i1")
    e = ex("ne", cast(flag, "i32"), const(0, "i32"))
    assert checks.as_bool(e) is flag
    assert checks.as_bool(ex("ne", cast(e, "i8"), const(0, "i8"))) is flag
    other = ex("ne", cast(flag, "i32"), const(1, "i32"))
    assert checks.as_bool(other) is other
