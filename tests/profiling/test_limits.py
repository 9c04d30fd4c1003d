"""What the machine can do."""

import pytest

from calque.profiling.limits import Limits, limits


def test_they_are_measured_once():
    found = limits()
    assert found is limits()
    assert min(found.single, found.double) > 0 and all(b > 0 for b in found.bandwidth)


def test_between_the_sizes_that_were_measured():
    made = Limits(1.0, 1.0, (100.0, 10_000.0), (1e6, 1e4))
    assert made.bytes_per_second(1) == 1e6 and made.bytes_per_second(1e9) == 1e4
    assert made.bytes_per_second(1000.0) == pytest.approx(1e5)
