"""Equations of literals become literals, with the bits of the machine."""

from typing import Any

import numpy as np
import pytest

import calque as cq
import calque.numpy as jnp
from calque.core.jaxprs import Literal
from calque.core.primitives import REGISTRY, do
from calque.native.passes import constants, pipeline
from tests.native.passes.shared import X, names
from tests.native.programs import traced


def test_constants_fold() -> None:
    assert names(lambda x: x * (jnp.float32(2.0) * 3.0 + 1.0), X) == ["mul"]


SCALARS: dict[str, tuple[Any, ...]] = {
    "add": (np.float32(0.1), np.float32(0.2)), "mul": (np.float32(3e38), np.float32(10)),
    "div": (np.float32(1), np.float32(0)), "sqrt": (np.float32(2),), "neg": (np.float32(0),),
    "rem": (np.float32(-7.5), np.float32(2)), "max": (np.int8(-3), np.int8(5)),
    "lt": (np.float32(np.nan), np.float32(1)), "floor": (np.float32(-0.5),),
    "shift_right_arithmetic": (np.int32(-8), np.int32(1)), "population_count": (np.uint8(0xF0),),
    "clz": (np.int16(1),), "not": (np.bool_(True),), "xor": (np.uint32(5), np.uint32(3)),
    "sign": (np.float32(-0.0),), "is_finite": (np.float32(np.inf),),
    "select_n": (np.bool_(False), np.float32(1), np.float32(2)), "abs": (np.int32(-(2**31)),),
}  # fmt: skip


@pytest.mark.parametrize("name", SCALARS)
def test_folded_as_the_machine_computes(name: str) -> None:
    """The same as the compiled primitive gives of arguments that it does not know."""
    args = SCALARS[name]

    def f(*xs: Any) -> Any:
        return REGISTRY[name].bind(*xs)

    closed = pipeline.run(traced(lambda: f(*args)))
    (known,) = closed.jaxpr.outvars
    assert not closed.eqns and isinstance(known, Literal) and not known.written
    want = np.asarray(cq.jit(f)(*args))
    assert (known.val.dtype, known.val.tobytes()) == (want.dtype, want.tobytes())


def test_what_is_left_for_the_run() -> None:
    """Division of integers, whose zero has a meaning of its own; functions whose last bit is ours;
    arrays; what gives several results."""
    for f in (
        lambda: do.div(np.int32(7), np.int32(0)),
        lambda: do.rem(np.int32(7), np.int32(3)),
        lambda: do.exp(np.float32(1)),
        lambda: do.add(np.ones(2, np.float32), np.ones(2, np.float32)),
    ):
        assert len(pipeline.run(traced(f)).eqns) == 1
    assert {"exp", "pow", "tanh", "sin", "dot_general"}.isdisjoint(constants.EXACT)
    assert set(constants.RULES) == set(constants.EXACT) <= set(REGISTRY)
