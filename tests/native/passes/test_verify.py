"""A pass that breaks a program is named."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.core.jaxprs import ClosedJaxpr
from calque.native.passes import pipeline
from calque.native.passes.verify import BrokenPass, verify_pass


def program() -> ClosedJaxpr:
    made: ClosedJaxpr = calque.make_jaxpr(lambda x: (jnp.sin(x) * 2.0, x.sum()))(np.ones(4, "f4"))
    return made


def test_a_program_as_it_was() -> None:
    closed = program()
    verify_pass("nothing", closed, closed)
    verify_pass("all passes", closed, pipeline.run(closed))


@pytest.mark.parametrize(
    "message, change",
    [
        ("the program gives", lambda j: j.replace(outvars=j.outvars[::-1])),
        ("the program takes", lambda j: j.replace(invars=[])),
        ("used before it is defined", lambda j: j.replace(eqns=j.eqns[::-1])),
        ("bound twice", lambda j: j.replace(eqns=[*j.eqns, j.eqns[0]])),
        ("used before it is defined", lambda j: j.replace(eqns=j.eqns[:-1])),
    ],
)
def test_broken_programs(message: str, change: Any) -> None:
    closed = program()
    with pytest.raises(BrokenPass, match=f"(?s)half.*{message}"):
        verify_pass("half", closed, ClosedJaxpr(change(closed.jaxpr), closed.consts))


def test_passes_are_verified_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def forgetful(closed: ClosedJaxpr) -> ClosedJaxpr:
        return ClosedJaxpr(closed.jaxpr.replace(eqns=closed.eqns[:-1]), closed.consts)

    monkeypatch.setattr(pipeline, "PASSES", (*pipeline.PASSES, forgetful))
    with pytest.raises(BrokenPass, match="forgetful"):
        pipeline.run(program())
