import sys

sys.path[:0] = ["/work/main/benchmarks"]
import symbolic as S
import calque as jax, calque.numpy as jnp, numpy as np

nn = jax.nn
from calque.transforms.jit import function_of

for n in (64, 256, 500, 512, 1000, 1024):
    for nm, f, sh in (
        ("mm", lambda x, y: x @ y, [(n, n)] * 2),
        ("mm+b", lambda x, w, b: nn.relu(x @ w + b), [(n, n), (n, n), (n,)]),
        ("mm+1", lambda x, w: x @ w + 1, [(n, n), (n, n)]),
    ):
        r = S.measured((f, S.normal, sh, [tuple(int(d * 0.5) for d in s) for s in sh]), 4)
        print(n, nm, {k: round(v * 1e6, 1) for k, v in r.items()}, flush=True)
