"""What the tests of this room share."""

from typing import Any

from calque import tree_util


class Pair:
    def __init__(self, a: Any, b: Any, aux: Any = "aux"):
        self.a, self.b, self.aux = a, b, aux


@tree_util.register_static
class Static:
    def __init__(self, a: int):
        self.a = a

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Static) and self.a == other.a

    def __hash__(self) -> int:
        return self.a

    def __repr__(self) -> str:
        return f"Static({self.a})"
