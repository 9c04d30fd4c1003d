"""A small language for the runtime: a typed subset of Python that becomes machine code."""
