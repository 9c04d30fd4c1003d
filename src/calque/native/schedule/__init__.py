"""Which stages share a loop, and how each loop runs: vectors, unrolling, threads."""
