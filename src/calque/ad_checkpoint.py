"""Rematerialisation: what derivatives keep, and what they compute again."""

from calque.transforms.functions.remat import checkpoint as checkpoint
from calque.transforms.functions.remat import checkpoint_name, print_saved_residuals
from calque.transforms.functions.remat import remat as remat
from calque.transforms.primitives.remat_policies import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint_policies,
)

__all__ = [
    "Offloadable",
    "Recompute",
    "Saveable",
    "checkpoint_name",
    "checkpoint_policies",
    "print_saved_residuals",
]
