"""Primitives of random numbers: keys, Threefry, Philox, bits."""
