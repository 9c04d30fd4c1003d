"""What is still to be added over mesh axes, from operation to operation."""

import pytest

from calque import lax
from calque.transforms.devices.type_sums import joined_kind, sums
from calque.transforms.devices.types import NO_AXES, ShardingTypeError, lenient

X, Y = frozenset("x"), frozenset("y")


def test_linear_operations_pass_sums_on():
    assert sums(lax.neg_p, [X], [NO_AXES]) == (X, NO_AXES)
    assert sums(lax.add_p, [X, X], [NO_AXES, NO_AXES]) == (X, NO_AXES)
    assert sums(lax.mul_p, [X, NO_AXES], [NO_AXES, X]) == (X, NO_AXES)


def test_what_would_need_communication_is_refused():
    with pytest.raises(ShardingTypeError, match="must be unreduced along the same mesh axes"):
        sums(lax.add_p, [X, Y], [NO_AXES, NO_AXES])
    with pytest.raises(ShardingTypeError, match="rhs is unreduced while lhs is not"):
        sums(lax.add_p, [NO_AXES, X], [NO_AXES, NO_AXES])
    with pytest.raises(ShardingTypeError, match="mul is bilinear"):
        sums(lax.mul_p, [X, X], [NO_AXES, NO_AXES])
    with pytest.raises(ShardingTypeError, match="should be reduced along the same axes"):
        sums(lax.mul_p, [X, NO_AXES], [NO_AXES, NO_AXES])
    with pytest.raises(NotImplementedError, match="unreduced rule for exp"):
        sums(lax.exp_p, [X], [NO_AXES])
    with lenient():
        assert sums(lax.exp_p, [X], [NO_AXES]) == (X, NO_AXES)


def test_relations_to_one_axis_join():
    assert joined_kind(lax.add_p, [None, "varying"], [False, False]) == "varying"
    assert joined_kind(lax.mul_p, ["reduced", "varying"], [False, False]) == "varying"
    assert joined_kind(lax.mul_p, ["unreduced", "reduced"], [False, False]) == "unreduced"
    assert joined_kind(lax.neg_p, ["reduced"], [False]) == "reduced"
