"""Operations that JAX writes as kernels for TPUs, here as programs for any device."""
