"""Functions with a batching rule of their own."""

from calque.core import guards as _guards
from calque.transforms.functions.custom_batching import custom_vmap, sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]

_guards.guard_public(globals())
