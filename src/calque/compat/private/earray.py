"""`jax._src.earray`: arrays of extended dtypes. The arrays of calque hold those as they are."""

from calque.core.arrays import ArrayImpl as EArray

__all__ = ["EArray"]
