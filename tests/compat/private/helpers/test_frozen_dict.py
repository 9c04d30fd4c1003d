"""A mapping that can be a key."""

import pytest

from calque.compat.private.helpers.frozen_dict import FrozenDict


def test_a_dict_that_can_be_a_key():
    a, b = FrozenDict({"x": 1, "y": 2}), FrozenDict({"y": 2, "x": 1})
    assert a == b and hash(a) == hash(b) and {a: 3}[b] == 3 and a != {"x": 1, "y": 2}
    assert repr(a) == "FrozenDict({'x': 1, 'y': 2})" and list(a) == ["x", "y"] and len(a) == 2
    assert a.get("z") is None and a["x"] == 1
    with pytest.raises(TypeError):
        a["x"] = 2
