"""Programs as bytes that other processes load, JAX's among them: `export` and what it gives."""
