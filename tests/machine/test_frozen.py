"""Objects that the collector passes over are found, and stay frozen if they were."""

import gc

import pytest

from calque.machine.frozen import OF_PYTHON, all_objects, is_frozen, thawed


class Kept:
    pass


@pytest.fixture(params=[True, False], ids=["frozen", "thawed"])
def freeze(request):
    """The collector with or without frozen objects, and then as it was before."""
    before = is_frozen()
    kept = [Kept() for _ in range(2 * OF_PYTHON)]
    (gc.freeze if request.param else gc.unfreeze)()
    yield request.param, kept
    (gc.freeze if before else gc.unfreeze)()


def test_all_objects_are_seen_and_the_state_stays(freeze):
    frozen, kept = freeze
    assert is_frozen() == frozen
    seen = set(map(id, all_objects()))
    assert all(id(k) in seen for k in kept)
    assert is_frozen() == frozen


def test_inside_of_the_block_nothing_is_frozen_also_when_it_raises(freeze):
    frozen, kept = freeze
    with pytest.raises(KeyError), thawed():
        assert gc.get_freeze_count() == 0
        assert any(holder is kept for holder in gc.get_referrers(kept[0]))
        raise KeyError
    assert is_frozen() == frozen
