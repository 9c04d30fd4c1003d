"""Primitives that multiply and add along axes: dot products, ragged ones, convolutions."""
