"""The walk that rewrites: substitution, fresh equations, until nothing matches."""

import numpy as np

import calque.numpy as jnp
from calque.core.jaxprs import Eqn, Literal, check_jaxpr
from calque.core.primitives import REGISTRY, do
from calque.native.passes.sweep import Sweep, rewrite
from tests.native.passes.shared import X, named
from tests.native.programs import traced


def swap(_: Sweep, e: Eqn) -> Eqn:
    """sin x -> cos x"""
    return Eqn(REGISTRY["cos"], e.invars, e.outvars, e.params, e.source)


def test_without_rules_that_match_the_program_is_given_back() -> None:
    jaxpr = traced(lambda x: jnp.sin(x) + 1, X).jaxpr
    assert rewrite(jaxpr, {}) is jaxpr
    assert rewrite(jaxpr, {"sin": (lambda s, e: None,), "cos": (swap,)}) is jaxpr


def test_one_equation_for_another() -> None:
    closed = traced(lambda x: jnp.sin(x) + 1, X)
    done = rewrite(closed.jaxpr, {"sin": (swap,)})
    check_jaxpr(done)
    assert named(done) == ["cos", "add"] and named(closed) == ["sin", "add"]
    assert done.eqns[0].outvars[0] is closed.jaxpr.eqns[0].outvars[0]


def test_a_result_that_is_an_operand_is_read_by_its_name_from_there_on() -> None:
    """Also what the program gives, and through several such equations."""
    closed = traced(lambda x: [jnp.sin(jnp.sin(x)), jnp.sin(x) * 2], X)
    done = rewrite(closed.jaxpr, {"sin": (lambda s, e: e.invars[0],)})
    check_jaxpr(done)
    assert named(done) == ["mul"]
    assert done.outvars[0] is done.invars[0] is done.eqns[0].invars[0]


def test_what_a_rule_gives_is_looked_at_again() -> None:
    """cos x, made of sin x, has a rule of its own; rules that undo each other come to an end."""
    jaxpr = traced(jnp.sin, X).jaxpr
    chain = {"sin": (swap,), "cos": (lambda s, e: e.invars[0],)}
    assert rewrite(jaxpr, chain).eqns == []

    def back(_: Sweep, e: Eqn) -> Eqn:
        return Eqn(REGISTRY["sin"], e.invars, e.outvars, e.params, e.source)

    (e,) = rewrite(jaxpr, {"sin": (swap,), "cos": (back,)}).eqns
    assert e.primitive.name in ("sin", "cos")


def test_equations_written_ahead() -> None:
    """sin x -> neg (cos x): the new one stands before, and is known as its maker."""
    found = []

    def rule(s: Sweep, e: Eqn) -> Eqn:
        inner = s.emit("cos", e.invars, e.outvars[0].aval, e)
        found.append((s.made_by(inner, "cos"), s.made_by(inner, "sin")))
        return s.new("neg", [inner], e.outvars[0], e)

    closed = traced(lambda x: jnp.sin(x) * 2, X)
    done = rewrite(closed.jaxpr, {"sin": (rule,)})
    check_jaxpr(done)
    assert named(done) == ["cos", "neg", "mul"]
    assert found[0][0] is done.eqns[0] and found[0][1] is None


def test_who_is_read_once() -> None:
    """By its own name: an equation, an output, or a variable that stands for another count."""
    answers: dict[str, list[bool]] = {}

    def ask(s: Sweep, e: Eqn) -> None:
        answers.setdefault(e.primitive.name, []).append(s.read_once(e.outvars[0]))

    rules = {name: (ask,) for name in ("sin", "cos", "tanh")}
    rewrite(traced(lambda x: [jnp.sin(x) * jnp.cos(x), (t := jnp.tanh(x)) + t], X).jaxpr, rules)
    assert answers == {"sin": [True], "cos": [True], "tanh": [False]}


def test_makers_are_those_of_the_rewritten_program() -> None:
    closed = traced(lambda x: do.neg(jnp.sin(x)), X)
    seen = []

    def ask(s: Sweep, e: Eqn) -> None:
        seen.extend([s.made_by(e.invars[0], "sin"), s.made_by(e.invars[0], "cos")])

    rewrite(closed.jaxpr, {"sin": (swap,), "neg": (ask,)})
    assert seen[0] is None and seen[1] is not None
    assert Sweep(closed.jaxpr).made_by(Literal(np.float32(1), X[0]), "sin") is None
