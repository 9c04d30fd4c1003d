"""`do.mul(x, y)` binds the primitive `mul`: rules write programs with it.

Every primitive gives itself to `do` when it is constructed, under its name (`scatter-add` as
`scatter_add`, `and` as `and_`), and fills in the parameters for which it declares a default. What
type checkers know of it stands in `vocabulary.pyi`, which `tools/write_vocabulary.py` writes.
"""

from __future__ import annotations

import keyword
from collections.abc import Callable
from typing import Any


class Vocabulary:
    """The primitives as functions. Looked up when called, so that rules may use any primitive."""

    def __getitem__(self, name: str) -> Callable[..., Any]:
        """The function of the primitive of this name: `do["scatter-add"]`."""
        return self.__dict__[attribute(name)]  # type: ignore[no-any-return]


def attribute(name: str) -> str:
    """What a primitive of this name is called in Python."""
    plain = name.replace("-", "_")
    return f"{plain}_" if keyword.iskeyword(plain) else plain


def offer(name: str, bind: Callable[..., Any], defaults: dict[str, Any]) -> None:
    """From now on `do` has this primitive."""

    def apply(*args: Any, **params: Any) -> Any:
        return bind(*args, **{**defaults, **params})

    setattr(do, attribute(name), apply if defaults else bind)


do = Vocabulary()
