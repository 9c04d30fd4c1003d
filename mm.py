import calque as jax, calque.numpy as jnp, numpy as np
from calque.transforms.jit import function_of

f = lambda x, y: x @ y
x = jnp.ones((64, 64))
g = jax.jit(lambda x, y: f(x, y), dynamic={0: (0, 1), 1: (0, 1)})
g(x, x)
(fam,) = function_of(g).cache.families.values()
e = fam.entries[0]
print(e.guards(), e.groups)
print(e.executable.as_text("loops"))
h = jax.jit(lambda x, y: f(x, y), dynamic="never")
print(h.lower(x, x).compile().as_text("loops"))
