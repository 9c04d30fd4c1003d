"""Samplers that are called by themselves run as machine code, with the numbers of before."""

from typing import Any

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import random
from calque.core.config import config
from calque.machine.call import functions as callpath
from calque.numpy.calls import cached

CALLS: dict[str, Any] = {
    "split": lambda k: random.split(k, 3),
    "normal": lambda k: random.normal(k, (4,)),
    "randint": lambda k: random.randint(k, (4,), 0, 9),
    "bernoulli": lambda k: random.bernoulli(k, 0.3, (4,)),
    "permutation": lambda k: random.permutation(k, 5),
    "gamma": lambda k: random.gamma(k, 2.0, (3,)),
    "categorical": lambda k: random.categorical(k, jnp.arange(4.0)),
}


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("name", CALLS)
def test_the_numbers_stay(name: str, raw: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached, "OFTEN", 3)
    for seed in (0, 1):  # what was learned of one key serves others
        key = random.PRNGKey(seed) if raw else random.key(seed)
        first, *others = (data(CALLS[name](key)) for _ in range(8))
        for other in others:
            np.testing.assert_array_equal(first, other)


def data(x: Any) -> Any:
    return random.key_data(x) if calque.dtypes.issubdtype(x.dtype, calque.dtypes.prng_key) else x


@pytest.mark.skipif(not callpath.LEARNS, reason="without machine code every call asks Python")
def test_a_loop_of_keys_runs_no_python(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cached, "OFTEN", 3)
    key = random.key(0)
    for _ in range(8):
        key, other = random.split(key)
        random.uniform(other, (2,))
    asked: list[Any] = []
    miss = cached.Teacher.miss
    monkeypatch.setattr(
        cached.Teacher, "miss", lambda self, *a: asked.append(self.f) or miss(self, *a)
    )
    key, other = random.split(key)
    random.uniform(other, (2,))
    assert not asked


def test_keys_of_several_axes_are_iterated_in_order() -> None:
    keys = random.split(random.key(0), (2, 3))
    for row, again in zip(keys, list(keys), strict=True):
        np.testing.assert_array_equal(data(row), data(again))
    np.testing.assert_array_equal(data(list(keys)[1]), data(keys)[1])
    assert len(list(random.split(random.key(0), 40))) == 40


def test_other_flags_have_other_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learned under one configuration does not serve another one."""
    monkeypatch.setattr(cached, "OFTEN", 3)
    key = random.key(0)
    narrow = [random.uniform(key, (2,)) for _ in range(8)][-1]
    with config.override("calque_enable_x64", True):
        assert [random.uniform(key, (2,)) for _ in range(8)][-1].dtype == np.float64
    with config.override("calque_threefry_partitionable", False):
        old = [random.split(key, 3) for _ in range(8)]
    new = [random.split(key, 3) for _ in range(8)]
    assert (data(old[0]) == data(old[-1])).all() and (data(new[0]) == data(new[-1])).all()
    assert not (data(old[-1]) == data(new[-1])).all() and narrow.dtype == np.float32
