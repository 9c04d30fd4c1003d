"""Library routines in machine code: sorting, Fourier transforms, linear algebra."""
