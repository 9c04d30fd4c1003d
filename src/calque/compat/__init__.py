"""Programs and libraries written for JAX, unchanged: `import jax` served by calque.

- `switch`: `as_jax()`; modules of `jax` are the modules of calque
- `running`: `python -m calque script.py` runs a program so
- `distributions`: what `importlib.metadata` answers about jax and jaxlib
- `private`: parts of `jax._src` that libraries import, each a few lines on the real thing
- `served`: packages of those names for child processes, found through `PYTHONPATH`
"""
