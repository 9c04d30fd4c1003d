"""`jax._src.random`: the names of `calque.random`."""

from calque.random import *  # noqa: F403
