"""The state of the process: hooks, listeners and epochs."""

import threading

import pytest

from calque.machine.state import Epochs, process


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
    hook.intercept(lambda function, x: -function(x))
    assert hook.call(1) == -2
    hook.install(lambda x: x * 10)
    assert hook.call(1) == -10
    hook.intercept(None)
    assert hook.call(1) == 10


def test_values_are_declared_once():
    value = process.value("test of values", 3)
    value.value += 1
    assert value.value == 4 and "test of values" in process.declared()
    with pytest.raises(ValueError, match="test of values"):
        process.value("test of values", 0)


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
