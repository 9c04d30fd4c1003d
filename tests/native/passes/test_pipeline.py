"""All passes together."""

from calque.native.passes import algebra, constants, pipeline
from calque.native.passes.dead_code import dead_code
from tests.native.passes.shared import X
from tests.native.programs import traced


def test_long_programs_are_linear() -> None:
    def f(x):
        for _ in range(3000):
            x = x * x + 1.5
        return x

    assert len(pipeline.run(traced(f, X)).eqns) == 6000


def test_results_are_kept_with_the_program() -> None:
    closed = traced(lambda x: x * 1.0 + 2.0, X)
    assert pipeline.run(closed) is pipeline.run(closed)


def test_a_pass_on_jaxprs_keeps_what_does_not_change() -> None:
    closed = traced(lambda x: x * 2, X)
    same = pipeline.on_jaxpr(lambda j: j)
    assert same(closed) is closed
    fewer = pipeline.on_jaxpr(lambda j: j.replace(eqns=[], outvars=j.invars))
    assert fewer(closed).consts == closed.consts and fewer(closed).jaxpr.eqns == []
    assert pipeline.on_jaxpr(dead_code).__name__ == "dead_code"


def test_the_order_of_the_passes() -> None:
    """Dead code first and last; calls are open before anything is rewritten, and again behind."""
    order = [p.__name__ for p in pipeline.PASSES]
    assert order[0] == order[-1] == "dead_code"
    assert (
        order.index("inline_calls") < order.index("simplify") < order.index("common_subexpressions")
    )
    assert order.count("inline_calls") == 2


def test_all_rules_of_a_primitive_stand_together() -> None:
    """Of keys first, then of constants, then algebra."""
    assert pipeline.RULES["add"] == (constants.fold, *algebra.RULES["add"])
    assert pipeline.RULES["eq"][-1] is constants.fold and len(pipeline.RULES["eq"]) == 2
