"""The version of JAX that is served."""

import pytest

from calque.compat import versions


def test_versions_compare_as_numbers():
    assert versions.as_numbers("0.10.2") == (0, 10, 2) > versions.as_numbers("0.9.9")
    assert versions.as_numbers(versions.JAX) >= (0, 5, 0)
    with pytest.raises(ValueError):
        versions.as_numbers("0.x")
