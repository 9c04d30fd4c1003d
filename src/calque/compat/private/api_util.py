"""`jax._src.api_util`."""

import inspect
from collections.abc import Iterable
from typing import TYPE_CHECKING

from calque.core import lazy as _lazy
from calque.transforms.engines.signatures import as_tuple as _as_tuple

if TYPE_CHECKING:  # imported when first asked for, see `core.lazy.facade`
    from calque.api_util import (
        debug_info,
        flatten_fun,
        flatten_fun_nokwargs,
        shaped_abstractify,
    )

__getattr__, __dir__ = _lazy.facade(__name__, __file__)


def infer_argnums_and_argnames(
    sig: inspect.Signature,
    argnums: int | Iterable[int] | None,
    argnames: str | Iterable[str] | None,
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Positions and names of the chosen parameters of a signature: where one of both is None it
    follows from the other, for parameters that may be given either way."""
    nums, names = _as_tuple(argnums, int, "argnums"), _as_tuple(argnames, str, "argnames")
    either = [
        (i, p.name)
        for i, p in enumerate(sig.parameters.values())
        if p.kind is p.POSITIONAL_OR_KEYWORD
    ]
    if argnums is None:
        nums = tuple(i for i, name in either if name in names)
    elif argnames is None:
        names = tuple(name for i, name in either if i in nums)
    return nums, names
