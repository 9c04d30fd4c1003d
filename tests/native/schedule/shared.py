"""Which loops of a nest became vectors."""

from typing import Any

from calque.native.loops.tree import For, Statement
from calque.native.lower.sizes import Sizes
from calque.native.schedule import vectors


def chosen_in(sizes: Sizes, *body: Statement) -> tuple[list[tuple[str, str, int]], str]:
    """(loop, kind, width) outermost first, and the reasons."""
    made, reasons = vectors.vectorized(tuple(body), sizes)
    out = []

    def visit(body: Any) -> None:
        for s in body:
            if isinstance(s, For):
                out.append((s.name, s.kind, s.width))
                visit(s.body)

    visit(made)
    return out, "; ".join(reasons)
