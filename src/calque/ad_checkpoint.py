"""Rematerialisation: what derivatives keep, and what they compute again."""

from calque.transforms.remat import checkpoint as checkpoint
from calque.transforms.remat import checkpoint_name, checkpoint_policies, print_saved_residuals
from calque.transforms.remat import remat as remat

__all__ = ["checkpoint_name", "checkpoint_policies", "print_saved_residuals"]
