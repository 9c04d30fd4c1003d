"""calque.scipy.sparse: iterative solvers, in `linalg`."""

from calque.scipy.sparse import linalg

__all__ = ["linalg"]
