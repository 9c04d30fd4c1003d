"""What `jax._src` has for tests."""
