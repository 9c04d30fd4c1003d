"""Driver programs: what runs between the kernels of a compiled program, as words that one
interpreter reads."""
