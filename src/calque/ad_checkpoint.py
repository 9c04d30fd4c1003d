"""Rematerialisation: what derivatives keep, and what they compute again."""

from calque.transforms.primitives.remat import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint_name,
    checkpoint_policies,
    print_saved_residuals,
)
from calque.transforms.primitives.remat import checkpoint as checkpoint
from calque.transforms.primitives.remat import remat as remat

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
]
