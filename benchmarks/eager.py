"""Eager calls of the most used functions on small arrays, beside NumPy's and JAX's same
functions."""

import numpy as np
from measure import compare, has

import calque.numpy as jnp

X = np.linspace(0.1, 1.0, 12, dtype=np.float32).reshape(3, 4)
FUNCTIONS = {
    "x + y": lambda m, x: x + x,
    "x * 2.0": lambda m, x: x * 2.0,
    "x > 0": lambda m, x: x > 0,
    "-x": lambda m, x: -x,
    "x @ x.T": lambda m, x: x @ x.T,
    "x.T": lambda m, x: x.T,
    "x[1]": lambda m, x: x[1],
    "x[:, 1:3]": lambda m, x: x[:, 1:3],
    "x.reshape(-1)": lambda m, x: x.reshape(-1),
    "exp": lambda m, x: m.exp(x),
    "sin": lambda m, x: m.sin(x),
    "sqrt": lambda m, x: m.sqrt(x),
    "tanh": lambda m, x: m.tanh(x),
    "abs": lambda m, x: m.abs(x),
    "maximum": lambda m, x: m.maximum(x, 0.5),
    "where": lambda m, x: m.where(x > 0.5, x, 0.0),
    "clip": lambda m, x: m.clip(x, 0.2, 0.8),
    "sum": lambda m, x: m.sum(x),
    "sum(axis)": lambda m, x: m.sum(x, axis=1),
    "mean": lambda m, x: m.mean(x, axis=0),
    "max": lambda m, x: m.max(x),
    "argmax": lambda m, x: m.argmax(x, axis=1),
    "cumsum": lambda m, x: m.cumsum(x, axis=1),
    "dot": lambda m, x: m.dot(x[0], x[1]),
    "concatenate": lambda m, x: m.concatenate([x, x]),
    "stack": lambda m, x: m.stack([x, x]),
    "zeros": lambda m, x: m.zeros((3, 4)),
    "arange": lambda m, x: m.arange(10),
    "sort": lambda m, x: m.sort(x),
    "transpose": lambda m, x: m.transpose(x),
}


def main() -> None:
    modules = {"calque": jnp, "numpy": np}
    if has("jax"):
        import jax.numpy

        modules["jax"] = jax.numpy
    arrays = {k: m.asarray(X) for k, m in modules.items()}
    compare(
        {
            name: {k: lambda f=f, m=m, x=arrays[k]: f(m, x) for k, m in modules.items()}
            for name, f in FUNCTIONS.items()
        }
    )


if __name__ == "__main__":
    main()
