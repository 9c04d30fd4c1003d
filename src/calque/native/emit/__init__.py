"""Loop trees to LLVM IR, and IR to kernels."""
