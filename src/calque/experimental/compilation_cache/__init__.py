"""Compiled programs kept on disk, in JAX's names: see `compilation_cache`."""
