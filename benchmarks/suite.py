"""The programs that the report times: for each the arguments, one function for JAX's interface
(`j` is calque or jax), and what other libraries' users would write where that is usual."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

RNG = np.random.default_rng(0)


class Program(NamedTuple):
    """One program with its arguments, as functions of what runs it."""

    group: str
    name: str
    arguments: tuple[Any, ...]
    function: Callable[..., Any]  # of `j` and the arguments
    numpy: Callable[..., Any] | None = None
    torch: Callable[..., Any] | None = None  # of `torch` and tensors
    numba: Callable[..., Any] | None = None  # compiled by njit, of NumPy's arrays
    eager: bool = False  # called as it is, not through jit


def normal(*shape: int, scale: float = 1.0) -> np.ndarray:
    return (scale * RNG.standard_normal(shape)).astype(np.float32)


V, W = normal(1_000_000), normal(1_000_000)
M = normal(1000, 1000)
I = RNG.integers(0, 1_000_000, 1_000_000).astype(np.int32)
B = RNG.integers(0, 1000, 1_000_000).astype(np.int32)
S = normal(10)
POSITIVE = np.abs(V) + np.float32(0.1)


# ---------------------------------------------------------------- loops, as Numba has them


def heat_numba(u):
    for _ in range(100):
        v = u.copy()
        for i in range(1, u.shape[0] - 1):
            for k in range(1, u.shape[1] - 1):
                v[i, k] = 0.25 * (u[i - 1, k] + u[i + 1, k] + u[i, k - 1] + u[i, k + 1])
        u = v
    return u


def heat(j, u):
    def sweep(_, u):
        inner = 0.25 * (u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:])
        return u.at[1:-1, 1:-1].set(inner)

    return j.lax.fori_loop(0, 100, sweep, u)


def collatz_numba(n):
    out = np.zeros_like(n)
    for i in range(n.size):
        k = n[i]
        while k != 1:
            k = k // 2 if k % 2 == 0 else 3 * k + 1
            out[i] += 1
    return out


def collatz(j, n):
    def steps(k):
        def body(s):
            k, i = s
            return j.numpy.where(k % 2 == 0, k // 2, 3 * k + 1), i + 1

        return j.lax.while_loop(lambda s: s[0] != 1, body, (k, 0))[1]

    return j.vmap(steps)(n)


def walk_numba(x):
    s = np.float32(0)
    out = np.empty_like(x)
    for i in range(x.size):
        s = np.float32(0.9) * s + np.float32(0.1) * x[i]
        out[i] = s
    return out


def walk(j, x):
    def step(s, v):
        s = 0.9 * s + 0.1 * v
        return s, s

    return j.lax.scan(step, np.float32(0), x)[1]


def recurrent(j, h, w, xs):
    def step(h, x):
        h = j.numpy.tanh(h @ w + x)
        return h, None

    return j.lax.scan(step, h, xs)[0]


# ---------------------------------------------------------------- training


def mlp_arguments() -> tuple[Any, ...]:
    sizes = (256, 512, 512, 10)
    params = [(normal(n, m, scale=n**-0.5), normal(m)) for n, m in itertools.pairwise(sizes)]
    return params, normal(128, 256), normal(128, 10)


def mlp(j, params, x, y):
    def loss(params):
        h = x
        for w, b in params[:-1]:
            h = j.nn.relu(h @ w + b)
        return ((h @ params[-1][0] + params[-1][1] - y) ** 2).mean()

    value, slopes = j.value_and_grad(loss)(params)
    return value, j.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, slopes)


def mlp_torch(torch, params, x, y):
    leaves = [[p.detach().requires_grad_() for p in pair] for pair in params]
    h = x
    for w, b in leaves[:-1]:
        h = torch.relu(h @ w + b)
    loss = ((h @ leaves[-1][0] + leaves[-1][1] - y) ** 2).mean()
    flat = [p for pair in leaves for p in pair]
    slopes = torch.autograd.grad(loss, flat)
    with torch.no_grad():
        return loss, [p - 0.1 * g for p, g in zip(flat, slopes)]


def attention(j, x, w):
    def loss(w):
        q, k, v = (x @ part for part in w)
        scores = j.nn.softmax(q @ k.swapaxes(-1, -2) / 8.0)
        return ((scores @ v) ** 2).mean()

    return j.grad(loss)(w)


def attention_torch(torch, x, w):
    w = w.detach().requires_grad_()
    q, k, v = (x @ part for part in w)
    scores = torch.softmax(q @ k.transpose(-1, -2) / 8.0, -1)
    return torch.autograd.grad(((scores @ v) ** 2).mean(), w)


def convolution(j, x, w):
    def loss(w):
        y = j.lax.conv_general_dilated(x, w, (1, 1), "SAME")
        return (j.nn.relu(y) ** 2).mean()

    return j.grad(loss)(w)


def convolution_torch(torch, x, w):
    w = w.detach().requires_grad_()
    y = torch.nn.functional.conv2d(x, w, padding=1)
    return torch.autograd.grad((torch.relu(y) ** 2).mean(), w)


# ---------------------------------------------------------------- the rest


def layer_norm(j, x):
    mean = x.mean(1, keepdims=True)
    return (x - mean) / j.numpy.sqrt(((x - mean) ** 2).mean(1, keepdims=True) + 1e-5)


def gelu(np_, x):
    return 0.5 * x * (1 + np_.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))


def softmax_numpy(x):
    e = np.exp(x - x.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


PROGRAMS = [
    Program("small calls", "x + 1, ten numbers, jitted", (S,), lambda j, x: x + 1,
            lambda x: x + 1, lambda t, x: x + 1),
    Program("small calls", "x + 1, ten numbers, eager", (S,), lambda j, x: x + 1,
            lambda x: x + 1, lambda t, x: x + 1, eager=True),
    Program("small calls", "sum of ten numbers, eager", (S,), lambda j, x: j.numpy.sum(x),
            np.sum, lambda t, x: x.sum(), eager=True),
    Program("small calls", "x[2:7], eager", (S,), lambda j, x: x[2:7], lambda x: x[2:7],
            lambda t, x: x[2:7], eager=True),
    Program("small calls", "where, eager", (S,), lambda j, x: j.numpy.where(x > 0, x, -x),
            lambda x: np.where(x > 0, x, -x), lambda t, x: t.where(x > 0, x, -x), eager=True),
    Program("elementwise", "2 x + y", (V, W), lambda j, x, y: 2 * x + y, lambda x, y: 2 * x + y,
            lambda t, x, y: 2 * x + y, lambda x, y: 2 * x + y),
    Program("elementwise", "exp", (V,), lambda j, x: j.numpy.exp(x), np.exp,
            lambda t, x: t.exp(x), lambda x: np.exp(x)),
    Program("elementwise", "tanh", (V,), lambda j, x: j.numpy.tanh(x), np.tanh,
            lambda t, x: t.tanh(x), lambda x: np.tanh(x)),
    Program("elementwise", "x ** y", (POSITIVE, W), lambda j, x, y: x**y, lambda x, y: x**y,
            lambda t, x, y: x**y, lambda x, y: x**y),
    Program("elementwise", "gelu", (V,), lambda j, x: gelu(j.numpy, x), lambda x: gelu(np, x),
            lambda t, x: gelu(t, x)),
    Program("reductions", "sum", (V,), lambda j, x: x.sum(), np.sum, lambda t, x: x.sum(),
            lambda x: np.sum(x)),
    Program("reductions", "sum of columns", (M,), lambda j, x: x.sum(0), lambda x: x.sum(0),
            lambda t, x: x.sum(0)),
    Program("reductions", "softmax", (M,), lambda j, x: j.nn.softmax(x, 1), softmax_numpy,
            lambda t, x: t.softmax(x, 1)),
    Program("reductions", "layer norm", (M,), layer_norm, lambda x: layer_norm(_NumPy, x),
            lambda t, x: t.nn.functional.layer_norm(x, (1000,))),
    Program("reductions", "argmax of rows", (M,), lambda j, x: x.argmax(1), lambda x: x.argmax(1),
            lambda t, x: x.argmax(1)),
    Program("reductions", "running sum", (V,), lambda j, x: j.numpy.cumsum(x), np.cumsum,
            lambda t, x: t.cumsum(x, 0), lambda x: np.cumsum(x)),
    Program("indexing and sorting", "gather", (V, I), lambda j, x, i: x[i], lambda x, i: x[i],
            lambda t, x, i: x[i], lambda x, i: x[i]),
    Program("indexing and sorting", "add into 1000 places", (V, B),
            lambda j, x, i: j.numpy.zeros(1000, x.dtype).at[i].add(x),
            lambda x, i: np.bincount(i, x, 1000),
            lambda t, x, i: t.zeros(1000).index_add(0, i, x)),
    Program("indexing and sorting", "sort", (V,), lambda j, x: j.numpy.sort(x), np.sort,
            lambda t, x: t.sort(x).values),
    Program("indexing and sorting", "the ten largest of each row", (M,),
            lambda j, x: j.lax.top_k(x, 10), lambda x: -np.sort(np.partition(-x, 10, 1)[:, :10]),
            lambda t, x: t.topk(x, 10)),
    Program("products", "128 by 128", (M[:128, :128].copy(),), lambda j, a: a @ a,
            lambda a: a @ a, lambda t, a: a @ a),
    Program("products", "1000 by 1000", (M,), lambda j, a: a @ a, lambda a: a @ a,
            lambda t, a: a @ a),
    Program("products", "1000 by 1000 times a vector", (M, M[0].copy()), lambda j, a, x: a @ x,
            lambda a, x: a @ x, lambda t, a, x: a @ x),
    Program("loops", "heat equation, 100 sweeps", (normal(256, 256),), heat, None, None,
            heat_numba),
    Program("loops", "Collatz, 20,000 starts", (np.arange(1, 20_001, dtype=np.int32),), collatz,
            None, None, collatz_numba),
    Program("loops", "moving average, 100,000 steps", (V[:100_000].copy(),), walk, None, None,
            walk_numba),
    Program("loops", "recurrent network, 100 steps",
            (normal(32, 128), normal(128, 128, scale=0.1), normal(100, 32, 128)), recurrent),
    Program("training steps", "three layers", mlp_arguments(), mlp, None, mlp_torch),
    Program("training steps", "attention",
            (normal(8, 128, 64), normal(3, 64, 64, scale=0.1)), attention, None, attention_torch),
    Program("training steps", "convolution",
            (normal(8, 16, 32, 32), normal(16, 16, 3, 3, scale=0.1)), convolution, None,
            convolution_torch),
]  # fmt: skip


class _NumPy:
    """NumPy in the place of `j`, for functions that need no more of it."""

    numpy = np
