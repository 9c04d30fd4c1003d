"""Loop trees: the program of one kernel, its canonical form and its verifier."""
