"""Jaxpr to jaxpr: what is done to a program before it meets loops. The list of passes, in order, is
in `pipeline`."""
