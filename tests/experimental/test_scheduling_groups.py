"""Groups of operations."""

import pytest

from calque.experimental.scheduling_groups import scheduling_group, xla_metadata_call


def test_functions_stay_as_they_are():
    def f(x):
        return x + 1

    assert scheduling_group("group")(f) is f and xla_metadata_call(f, kind="slow") is f
    with pytest.raises(NotImplementedError, match="kind must be a string"):
        xla_metadata_call(f, kind=3)
    with pytest.raises(TypeError, match="callable"):
        scheduling_group("group")(3)
