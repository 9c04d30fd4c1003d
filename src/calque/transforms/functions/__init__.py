"""The functions users call to transform programs."""
