"""Linear algebra on batches of matrices: factors, triangular systems, spectra."""
