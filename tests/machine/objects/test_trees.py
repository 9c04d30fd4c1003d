"""What machine code over trees refuses; `test_plain_trees` holds it to plain Python."""

from __future__ import annotations

from typing import Any

import pytest

from calque.machine.objects import plain_trees
from calque.machine.objects.pyapi import IS_KNOWN

if not IS_KNOWN:
    pytest.skip("machine code does not know this interpreter", allow_module_level=True)

from calque.machine.objects import trees

MADE = trees.made()


@pytest.mark.parametrize(
    ("function", "arguments"),
    [
        (MADE.flatten, ([1],)),
        (MADE.leaves, ([1],)),
        (MADE.unflatten, ((None,), [1])),
        (MADE.unflatten, ([None], 1, [1])),
        (MADE.follow, ((None,),)),
        (MADE.follow, ([None], 1)),
    ],
)
def test_other_arguments_are_refused(function: Any, arguments: Any) -> None:
    with pytest.raises(TypeError, match="takes a"):
        function(*arguments)


def test_a_class_that_is_no_container_is_never_read_as_a_tuple() -> None:
    class Stranger:
        pass

    code = (Stranger, None, 2, None, None)
    assert MADE.follow(code, Stranger()) is None
    with pytest.raises(TypeError):
        MADE.unflatten(code, 2, [1, 2])


def test_classes_that_cannot_be_hashed() -> None:
    class Meta(type):
        def __hash__(cls) -> int:
            raise RuntimeError("no hash")

    class Odd(metaclass=Meta):
        pass

    for functions in (MADE, plain_trees.functions):
        with pytest.raises(RuntimeError, match="no hash"):
            functions.flatten([Odd()], None)


def test_a_dict_whose_keys_compare_by_python() -> None:
    class Key:
        def __init__(self, name: str) -> None:
            self.name = name

        def __lt__(self, other: Any) -> bool:
            raise KeyError(self.name)

    with pytest.raises(KeyError):
        MADE.flatten({Key("a"): 1, Key("b"): 2}, None)
