"""What the tests of this room share."""

import os
from typing import Any, Final

from calque import tree_util

# which has one program for all sizes, and bits that do not depend on fusion: XLA has neither
OWN_ENGINE: Final = not os.environ.get("CALQUE_PLATFORMS", "").startswith("xla")


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
