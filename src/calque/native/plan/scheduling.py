"""Nests to calls of kernels."""

from __future__ import annotations

from collections.abc import Sequence

from calque.native.lower.sizes import Sizes
from calque.native.plan.steps import Call, Nest, Step, changed
from calque.native.schedule.nests import distributed, schedule


def scheduled(steps: Sequence[Step], sizes: Sizes) -> list[Step]:
    """The steps with calls in place of nests.

    before: nest (for i: y[i] = exp x[i])      after: call (for i @vector(64): y[i] = exp x[i])"""

    def change(s: Step) -> Sequence[Step]:
        if not isinstance(s, Nest):
            return (s,)
        made = distributed(s.body, sizes, s.slower) if s.vectors else schedule(s.body, sizes)
        return (Call(made, s.body if s.in_order else None, s.stands_in),)

    return changed(steps, change)
