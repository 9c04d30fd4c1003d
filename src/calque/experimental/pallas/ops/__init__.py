"""Operations that JAX writes as kernels."""
