"""Control flow as steps of the driver, or as native loops inside kernels."""
