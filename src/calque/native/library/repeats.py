"""What a program does again with other arrays is lowered once: the products of a model's layers.

    before: product of x and w1, added to b; product of y and w2, added to c
    after:  nest (product of x and w1, added to b); the same, with y for x, w2 for w1, c for b

What decides how a node is lowered is a key: what it is made of, as far as the arrays that lie in
memory, which are told apart by the order in which they are met."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque.machine.records import replace
from calque.native.lower.graph import Node
from calque.native.lower.rules import Lower, View
from calque.native.plan.steps import Nest, Step
from calque.native.scalars.expr import Buffer

MOST: Final = 200  # nodes that a description speaks of
_PLAIN: Final = (str, bytes, type(None), type, np.dtype)
_ELSEWHERE: Final = frozenset(("input", "const", "get"))  # which say nothing of what they are


class Unlike(Exception):
    """A node that nothing is said of."""


class Made(NamedTuple):
    """The nests of something, and the buffers that it was made with."""

    nests: Sequence[Nest]
    buffers: Sequence[Buffer]

    def again(self, buffers: Sequence[Buffer], anew: Callable[[Buffer], Buffer]) -> list[Step]:
        """The same with other buffers, and others in the place of those that it brought."""
        names = dict(zip(self.buffers, buffers, strict=True))
        for n in self.nests:
            for b in n.reads() | n.writes():
                if b not in names:
                    names[b] = anew(b)
        return [replace(n, loops=None, like=n, names=names) for n in self.nests]


class Description:
    """What decides how nodes are lowered, and the buffers they read or write."""

    def __init__(self, p: Lower) -> None:
        self.p = p
        self.buffers: list[Buffer] = []
        self._numbers: dict[Node, int] = {}
        self._places: dict[Buffer, int] = {}
        self._parts: list[Hashable] = []

    def key(self) -> tuple[Hashable, ...]:
        return tuple(self._parts)

    def home(self, home: View) -> None:
        """Where a result goes."""
        self._parts.append(self._memory(home))

    def node(self, n: Node) -> None:
        """Describe a node for its own sake, though it may live in memory, behind what it is made
        of."""
        todo = [n]
        while todo:
            x = todo.pop()
            if x in self._numbers:
                continue
            home = None if x is n else self.p.view.get(x)
            missing = [a for a in x.args if a not in self._numbers] if home is None else ()
            if len(todo) + len(self._numbers) > MOST:
                raise Unlike
            if missing:
                todo += (x, *reversed(missing))
            else:
                self._describe(x, home)

    def _describe(self, x: Node, home: View | None) -> None:
        p, numbers = self.p, self._numbers
        if x in p.alias or x in p.turned or x in p.in_registers:
            raise Unlike
        if home is not None:
            said: Hashable = self._memory(home)
        elif x.op in _ELSEWHERE:
            raise Unlike
        else:
            args = tuple([numbers[a] for a in x.args])
            said = (x.op, args, *[(k, frozen(v)) for k, v in x.params.items()])
        self._parts.append((x.shape, x.dtype, said))
        numbers[x] = len(numbers)

    def _memory(self, home: View) -> Hashable:
        b = home.buf
        if any(e.bufs for e in (*b.shape, *home.prefix)):
            raise Unlike
        place = self._places.get(b)
        if place is None:
            place = self._places[b] = len(self._places)
            self.buffers.append(b)
        return (place, b.shape, b.dtype, b.place, b.data, home.prefix)


def frozen(x: Any) -> Hashable:
    """A parameter as part of a key: equal ones mean the same. What has no simple value is itself
    alone."""
    kind = type(x)
    if kind is int or kind is bool or isinstance(x, _PLAIN):
        return (kind, x)
    if kind is float or kind is complex:
        return (kind, repr(x))
    if isinstance(x, (tuple, list)):
        return (kind, *[frozen(v) for v in x])
    if isinstance(x, (np.ndarray, np.generic)):
        array = np.asarray(x)
        if array.dtype.hasobject:
            raise Unlike
        return (kind, array.dtype, array.shape, array.tobytes())
    try:
        hash(x)
    except TypeError:
        raise Unlike from None
    return (kind, x)
