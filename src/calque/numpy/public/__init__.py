"""The public functions that factories make, written out: their signatures and their help."""
