"""The training of the soak, in small: equal losses, and an eye for what is not flat."""

import pytest

from tests.soak import training


def test_losses_are_equal_while_sizes_change_threads_call_and_caches_are_cleared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(training, "STEPS", 36)  # every pair of sizes
    monkeypatch.setattr(training, "CLEARED", 2)
    got = training.train(lambda epochs: epochs < 4)
    assert (got.epochs, got.unequal, got.wrong) == (4, 0, [])
    assert got.calls and len(got.memory) == 4


@pytest.mark.parametrize(
    "memory, unequal, wrong, fine",
    [
        ([5 << 20] * 9, 0, [], True),
        ([5 << 20, 9 << 20, *[8 << 20] * 7], 0, [], True),  # full after the first third
        ([k << 20 for k in range(1, 10)], 0, [], False),
        ([5 << 20] * 9, 1, [], False),
        ([5 << 20] * 9, 0, ["thread 0: AssertionError()"], False),
    ],
)
def test_what_is_not_fine_is_seen(
    memory: list[int], unequal: int, wrong: list[str], fine: bool
) -> None:
    assert training.Watched(9, unequal, 1, wrong, memory).fine is fine
