"""Who answers: machine code where it is at hand, plain Python until it is worth compiling."""

from __future__ import annotations

import pytest

from calque.machine.call import trees as room
from calque.machine.call.trees import PATIENCE, Trees
from calque.machine.objects import plain_trees
from calque.machine.objects.pyapi import IS_KNOWN

TREE = {"b": [1, None], "a": (2, 3)}


def test_an_interpreter_that_is_not_known() -> None:
    served = Trees(known=False)
    assert served.flatten is plain_trees.tree_flatten and served.follow is plain_trees.tree_follow
    assert served.leaves(TREE, None) == [2, 3, 1]


@pytest.mark.skipif(not IS_KNOWN, reason="machine code does not know this interpreter")
def test_machine_code_takes_over_when_it_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = room.machine_trees.unit
    monkeypatch.setattr(type(unit), "at_hand", lambda self: False)
    served = Trees(known=True)
    found = served.flatten(TREE, None)
    assert served.unflatten is plain_trees.tree_unflatten
    for _ in range(PATIENCE - 1):
        assert served.leaves(TREE, None) == [2, 3, 1]
    assert served.unflatten is not plain_trees.tree_unflatten
    assert served.flatten(TREE, None) == found and served.leaves(TREE, None) == [2, 3, 1]
    monkeypatch.undo()
    assert unit.at_hand() and Trees(known=True).unflatten is not plain_trees.tree_unflatten
