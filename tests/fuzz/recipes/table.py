"""Recipes by function; how one is entered."""

from collections.abc import Callable
from typing import Any

from tests.fuzz.draw import Draw
from tests.fuzz.programs import Ref

Drawn = tuple[list[Any], dict[str, Any]]
Recipe = Callable[[Draw], Drawn]
RECIPES: dict[str, Recipe] = {}


def recipe(*names: str) -> Callable[[Recipe], Recipe]:
    def add(f: Recipe) -> Recipe:
        for name in names:
            RECIPES[name] = f
        return f

    return add


def window(d: Draw, n: int, most: int) -> tuple[int, ...]:
    """Extents of a window."""
    return tuple(d.whole(1, most) for _ in range(n))


def dtype_of(d: Draw, x: Ref) -> str:
    return str(d.of(x).dtype)
