"""The table of ordinary mistakes: what each does, what its message must hold, and how the message
compares with JAX's for the same lines."""

from __future__ import annotations

import inspect
import traceback
import warnings
from collections.abc import Callable
from typing import Any, Final, Literal, NamedTuple

Make = Callable[[Any, Any], None]
Verdict = Literal["better", "equal", "worse"]


class Said(NamedTuple):
    """What a library says of a mistake."""

    kind: str  # of the exception or warning, "nothing" where there was none
    text: str
    last: traceback.FrameSummary | None  # of the traceback


class Mistake(NamedTuple):
    """A mistake: a function of a module served as `jax`, and of its `numpy`."""

    make: Make
    verdict: Verdict  # on our message, next to JAX's
    holds: tuple[str, ...]  # what our message must hold; "{line}" is the line marked in the source

    @property
    def name(self) -> str:
        return self.make.__name__

    def line(self) -> int:
        """The line that is to be named, marked by an arrow in the source."""
        lines, first = inspect.getsourcelines(self.make)
        return next(first + i for i, text in enumerate(lines) if text.rstrip().endswith("# <-"))


TABLE: Final[list[Mistake]] = []


def mistake(verdict: Verdict, *holds: str) -> Callable[[Make], Make]:
    """Enter a mistake into the table."""

    def enter(make: Make) -> Make:
        TABLE.append(Mistake(make, verdict, holds))
        return make

    return enter


def said(row: Mistake, jax: Any) -> Said:
    """What a library says when the mistake is made: its exception, else its warnings."""
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            row.make(jax, jax.numpy)
        except Exception as e:
            last = traceback.extract_tb(e.__traceback__)[-1]
            notes = [n for n in getattr(e, "__notes__", []) if "For simplicity" not in n]
            return Said(type(e).__name__, "\n".join([str(e), *notes]), last)
    if heard:
        return Said(heard[-1].category.__name__, str(heard[-1].message), None)
    return Said("nothing", "", None)
