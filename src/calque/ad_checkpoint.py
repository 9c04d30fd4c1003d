"""Rematerialisation: what derivatives keep, and what they compute again."""

from calque.transforms.remat import (
    Offloadable,
    Recompute,
    Saveable,
    checkpoint_name,
    checkpoint_policies,
    print_saved_residuals,
)
from calque.transforms.remat import checkpoint as checkpoint
from calque.transforms.remat import remat as remat

__all__ = ["Offloadable", "Recompute", "Saveable", "checkpoint_name", "checkpoint_policies", "print_saved_residuals"]
