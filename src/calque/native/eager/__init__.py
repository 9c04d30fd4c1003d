"""Eager execution: kernels that serve every shape."""
