"""Scalar expressions: the values and indices that loops compute, and vector math."""
