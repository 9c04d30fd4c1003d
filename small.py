import sys

sys.path[:0] = ["/work/main/benchmarks"]
import symbolic as S, calque as jax, calque.numpy as jnp, numpy as np, time
from calque.transforms.jit import function_of

f = lambda x, y: 2 * x + y
g = S.free_everywhere(f, [(100,)] * 2)
g(S.normal(100), S.normal(100))
a = [jnp.asarray(S.normal(1000))] * 2
a2 = [jnp.asarray(S.normal(1000)), jnp.asarray(S.normal(1000))]
for i in range(6):
    g(*a2)
print(S.batch(g, a2, 1000) * 1e6, jax.stats()["traces"])
g = jax.jit(S.one_of_its_own(f))
g(S.normal(100), S.normal(100))
g(S.normal(101), S.normal(101))
for i in range(6):
    g(*a2)
print(S.batch(g, a2, 1000) * 1e6, jax.stats()["traces"])
F = function_of(g).cache.families
print([(k.values, e.sized) for k in () for e in ()])
for fam in F.values():
    for e in fam.entries:
        print(e.sized)
