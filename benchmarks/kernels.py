"""Compiled kernels on large arrays, beside NumPy and JAX."""

import numpy as np
from measure import compare, has

import calque

RNG = np.random.default_rng(0)
V = RNG.standard_normal(1_000_000).astype(np.float32)
M = RNG.standard_normal((1000, 1000)).astype(np.float32)
I = RNG.integers(0, 1000, 1_000_000).astype(np.int32)
KERNELS = {
    "2x + y": (lambda j, x, y: 2 * x + y, (V, V), lambda x, y: 2 * x + y),
    "exp": (lambda j, x: j.numpy.exp(x), (V,), np.exp),
    "tanh": (lambda j, x: j.numpy.tanh(x), (V,), np.tanh),
    "sin": (lambda j, x: j.numpy.sin(x), (V,), np.sin),
    "x ** y": (lambda j, x, y: x**y, (np.abs(V), V), lambda x, y: x**y),
    "sum": (lambda j, x: j.numpy.sum(x), (V,), np.sum),
    "sum over rows": (lambda j, x: x.sum(0), (M,), lambda x: x.sum(0)),
    "softmax": (lambda j, x: j.nn.softmax(x), (M,), None),
    "argmax": (lambda j, x: j.numpy.argmax(x, 1), (M,), lambda x: x.argmax(1)),
    "cumsum": (lambda j, x: j.numpy.cumsum(x), (V,), np.cumsum),
    "transpose + 1": (lambda j, x: x.T + 1, (M,), lambda x: np.ascontiguousarray(x.T) + 1),
    "gather": (lambda j, x, i: x[i], (V, I), lambda x, i: x[i]),
    "scatter-add": (
        lambda j, x, i: j.numpy.zeros(1000).at[i].add(x),
        (V, I),
        lambda x, i: np.bincount(i, x, 1000),
    ),
    "matmul 512": (lambda j, a: a @ a, (M[:512, :512].copy(),), lambda a: a @ a),
}


def main() -> None:
    modules = {"calque": calque}
    if has("jax"):
        import jax

        modules["jax"] = jax
    rows = {}
    for name, (f, args, peer) in KERNELS.items():
        calls = {}
        for k, m in modules.items():
            jitted, given = m.jit(lambda *a, f=f, m=m: f(m, *a)), [m.numpy.asarray(a) for a in args]
            calls[k] = lambda jitted=jitted, given=given: jitted(*given).block_until_ready()
        if peer is not None:
            calls["numpy"] = lambda peer=peer, args=args: peer(*args)
        rows[name] = calls
    compare(rows)


if __name__ == "__main__":
    main()
