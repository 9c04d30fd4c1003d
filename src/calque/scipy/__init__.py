"""SciPy's functions on calque's arrays."""
