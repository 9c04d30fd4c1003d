"""The state of the process: hooks, listeners and epochs."""

import threading

import pytest

from calque.machine.state import Epochs, PerThread, process


def test_hooks_have_a_default_and_can_be_replaced():
    hook = process.hook("test of hooks", lambda x: x + 1)
    assert hook.call(1) == 2
    hook.install(lambda x: x * 10)
    assert hook.call(1) == 10
    hook.remove()
    assert hook.call(1) == 2
    assert "test of hooks" in process.declared()
    with pytest.raises(ValueError, match="test of hooks"):
        process.hook("test of hooks", lambda x: x)


def test_a_hook_can_be_intercepted_whatever_is_installed():
    hook = process.hook("test of interceptions", lambda x: x + 1)
    hook.intercept("a test", lambda function, x: -function(x))
    assert hook.call(1) == -2
    hook.install(lambda x: x * 10)
    assert hook.call(1) == -10
    hook.intercept("a test", None)
    assert hook.call(1) == 10


def test_values_are_declared_once():
    value = process.value("test of values", 3)
    value.value += 1
    assert value.value == 4 and "test of values" in process.declared()
    with pytest.raises(ValueError, match="test of values"):
        process.value("test of values", 0)


def test_containers_are_declared_and_handed_back():
    made = {"a": 1}
    assert process.container("test of containers", made) is made
    assert "test of containers" in process.declared()
    with pytest.raises(ValueError, match="test of containers"):
        process.container("test of containers", {})


def test_listeners_are_told_in_order():
    heard, listeners = [], process.listeners("test of listeners")
    first, second = (lambda x: heard.append(("first", x))), (lambda x: heard.append(("second", x)))
    listeners.add(first)
    listeners.add(second)
    listeners.tell(1)
    listeners.remove(first)
    listeners.tell(2)
    assert heard == [("first", 1), ("second", 1), ("second", 2)]


def test_epochs_only_grow():
    epochs = process.epochs
    seen = set()
    for _ in range(3):
        numbers = [epochs.number(("test", k)) for k in range(5)]
        assert numbers == [epochs.number(("test", k)) for k in range(5)]
        assert not seen & set(numbers) and numbers == sorted(numbers)
        seen |= set(numbers)
        epochs.renew()


def test_epochs_of_forgotten_configurations_are_new_ones():
    """More configurations than are remembered: none gets the number of another one."""
    numbers = [process.epochs.number(("many", k % 15_000)) for k in range(30_000)]
    owner = {}
    for k, n in enumerate(numbers):
        assert owner.setdefault(n, k % 15_000) == k % 15_000
    assert Epochs.MOST < 15_000


def test_threads_agree_on_a_number():
    found, start = [], threading.Barrier(4)

    def ask():
        start.wait()
        found.append([process.epochs.number(("shared", k)) for k in range(200)])

    threads = [threading.Thread(target=ask) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(f == found[0] for f in found) and len(set(found[0])) == 200


class _Mine(PerThread, name="test of threads"):
    number = 1
    text = "first"

    @property
    def fixed(self):
        return 0


def test_each_thread_has_its_own_state():
    mine, seen = _Mine(), []
    mine.number = 2
    thread = threading.Thread(target=lambda: seen.append(mine.number))
    thread.start()
    thread.join()
    assert seen == [1] and mine.number == 2
    assert "test of threads" in process.declared()
    with pytest.raises(ValueError, match="test of threads"):

        class _Again(PerThread, name="test of threads"):
            pass


def test_what_holds_inside_ends_with_the_block():
    mine = _Mine()
    with pytest.raises(KeyError), mine.inside(number=5, text="inner") as state:
        assert state is mine and (mine.number, mine.text) == (5, "inner")
        with mine.inside(number=6):
            assert (mine.number, mine.text) == (6, "inner")
        mine.number = 7  # also what was set meanwhile
        raise KeyError
    assert (mine.number, mine.text) == (1, "first")


def test_a_block_that_cannot_begin_changes_nothing():
    with pytest.raises(AttributeError), _Mine().inside(number=5, fixed=1):
        raise AssertionError("never reached")
    mine = _Mine()
    with pytest.raises(AttributeError):
        mine.inside(number=5, fixed=1).__enter__()
    assert mine.number == 1


def test_blocks_of_two_threads_do_not_meet():
    mine, entered, seen = _Mine(), threading.Barrier(2), {}

    def work(k):
        with mine.inside(number=k):
            entered.wait()
            seen[k] = mine.number
            entered.wait()

    threads = [threading.Thread(target=work, args=(k,)) for k in (10, 20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert seen == {10: 10, 20: 20} and mine.number == 1
