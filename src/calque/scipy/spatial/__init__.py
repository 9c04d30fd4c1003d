"""calque.scipy.spatial: rotations, in `transform`."""

from calque.scipy.spatial import transform

__all__ = ["transform"]
