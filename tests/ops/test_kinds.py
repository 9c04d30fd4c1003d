"""The factories of elementwise primitives."""

import numpy as np
import pytest

from calque.core.avals import ShapedArray
from calque.core.primitives import REGISTRY, UndefinedPrimal, Zero
from calque.ops import kinds as K
from calque.ops.common import FLOAT
from tests.ops.helpers import call, same, values

F, W, S = (
    ShapedArray(s, np.dtype("float32"), w) for s, w in (((2,), False), ((2,), True), ((), False))
)


def test_shapes_of_results():
    rule = K.nary_shape("f", FLOAT)
    assert rule(F, F) is F and rule(F, S) is F and rule(S, F) is F and rule(S, S) is S
    assert rule(W, W) is W and rule(F, W) is F and rule(W, S) is F
    assert K.nary_shape("f", FLOAT, K.to_bool)(F, S) is ShapedArray((2,), np.dtype(bool))
    with pytest.raises(
        TypeError, match=r"f got incompatible shapes for broadcasting: \(2,\), \(3,\)"
    ):
        rule(F, F.update(shape=(3,)))
    with pytest.raises(
        TypeError, match=r"f requires arguments to have the same dtypes, got float32, float16"
    ):
        rule(F, F.update(dtype=np.dtype("float16")))
    with pytest.raises(TypeError, match=r"f does not accept dtype int32 at position 0"):
        rule(F.update(dtype=np.dtype("int32")), F)


def test_widened_rounds_once():
    x = values("float16", (100,))
    out = K.widened(lambda v: np.exp(v))(x)
    same(out, np.exp(x.astype(np.float64)).astype(np.float16))


def test_zero_cotangents_stay_zero():
    neg, sub = REGISTRY["neg"], REGISTRY["sub"]
    u = UndefinedPrimal(F)
    assert type(neg.transpose(Zero(F), u)[0]) is Zero
    a, b = sub.transpose(Zero(F), u, np.ones(2, np.float32))
    assert type(a) is Zero and b is None


def test_refusing_speaks_only_when_needed():
    nextafter = REGISTRY["nextafter"]
    x = np.ones(2, np.float32)
    assert call(nextafter, x, x)[0].shape == (2,)
    with pytest.raises(NotImplementedError, match="moves in steps"):
        K.refusing("moves in steps")(None)
