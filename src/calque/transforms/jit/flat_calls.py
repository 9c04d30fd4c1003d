"""Calls that machine code cannot recognise from their arguments: with containers of the user's own,
or with static values that are made anew for each call. Their arguments are flattened, and a
function of the leaves serves them in machine code: one for each structure and each set of static
values."""

from __future__ import annotations

import itertools
from typing import Any, Final

from calque.core import pytrees
from calque.machine.caches import Tables
from calque.machine.call import functions as callpath
from calque.transforms.jit.arguments import CallArguments
from calque.transforms.jit.teaching import Inexpressible, Lesson, argument, teach

_FUNCTIONS: Final[Tables[Any, Any]] = Tables("functions of the leaves", 64, programs=True)
NOT_SERVED: Final = object()


def _refuse(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return NOT_SERVED


class FlatCalls:
    """The functions of the leaves of one jitted function."""

    __slots__ = ("functions",)

    def __init__(self) -> None:
        self.functions = _FUNCTIONS.new()

    def call(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """The result of a call that was learnt, or NOT_SERVED."""
        try:
            dynamic, named, statics = function.split(args, kwargs)
            leaves, tree = pytrees.flatten((dynamic, named))
            served = self.functions.find((statics, tree))
        except (TypeError, ValueError):  # what is wrong with the arguments is said elsewhere
            return NOT_SERVED
        return NOT_SERVED if served is None else served(*leaves)

    def learn(self, arguments: CallArguments, lesson: Lesson, number: int) -> None:
        """Serve calls with such arguments from now on, if their leaves can be told."""
        inputs = itertools.count()
        try:
            told = [argument(x, inputs) for x in arguments.leaves]
        except Inexpressible:
            return
        key = (arguments.statics, arguments.in_tree)
        served = self.functions.find(key)
        if served is None:
            served = self.functions[key] = callpath.Jitted(_refuse)
        teach(served, lesson._replace(arguments=told), number)
