"""The size of a step by its number."""

import pytest

from calque import numpy as jnp
from calque.example_libraries import optimizers, schedules


@pytest.mark.parametrize(
    ("schedule", "sizes"),
    [
        (schedules.constant(0.5), {0: 0.5, 9: 0.5}),
        (schedules.exponential_decay(1.0, 10, 0.5), {0: 1.0, 10: 0.5, 20: 0.25}),
        (schedules.inverse_time_decay(1.0, 10, 1.0), {0: 1.0, 5: 2 / 3, 10: 0.5}),
        (schedules.inverse_time_decay(1.0, 10, 1.0, staircase=True), {9: 1.0, 10: 0.5, 19: 0.5}),
        (schedules.polynomial_decay(1.0, 10, 0.2), {0: 1.0, 5: 0.6, 10: 0.2, 99: 0.2}),
        (schedules.polynomial_decay(1.0, 10, 0.0, power=2), {5: 0.25}),
        (schedules.piecewise_constant([10, 20], [3.0, 2.0, 1.0]), {10: 3.0, 11: 2.0, 21: 1.0}),
        (schedules.make_schedule(0.5), {3: 0.5}),
        (schedules.make_schedule(lambda i: i), {3: 3}),
    ],
)
def test_sizes(schedule, sizes):
    for i, size in sizes.items():
        assert float(schedule(i)) == pytest.approx(size)


def test_refusals():
    with pytest.raises(ValueError, match="one shorter than values"):
        schedules.piecewise_constant([1], [1.0])
    with pytest.raises(ValueError, match="must be sequences"):
        schedules.piecewise_constant(1, [1.0])
    with pytest.raises(TypeError, match="a number or a function of the step"):
        schedules.make_schedule(jnp.ones(1))


def test_optimizers_offer_them():
    assert optimizers.exponential_decay is schedules.exponential_decay
    init, update, get_params = optimizers.sgd(schedules.piecewise_constant([0], [1.0, 0.0]))
    assert get_params(update(1, 1.0, update(0, 1.0, init(0.0)))) == -1.0
