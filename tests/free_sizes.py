"""Functions for every size against the same functions for one: `jit(f)` beside `jit(f,
dynamic="never")`, at many sizes in random order.

    python -m tests.free_sizes [--seed 0] [--chains 200] [--only TEXT]     every function and so
    many random chains of functions

Shapes, dtypes and values must agree; what raises must raise in both. The suite takes a small
sample.
"""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

os.environ.setdefault("CALQUE_VERIFY_KERNELS", "1")

import numpy as np

import calque as jax
import calque.numpy as jnp
from calque import lax, nn
from calque.transforms.jit.function import function_of

SIZES: Final = (0, 1, 2, 3, 5, 16, 17, 64, 100)
Function = Callable[..., Any]
NAMES: Final = {"jax": jax, "jnp": jnp, "lax": lax, "nn": nn, "np": np}

VECTORS: Final = """
x.mean()
x.sum()
x.prod()
x.max() if x.shape[0] else x
x.std()
jnp.var(x, ddof=1)
jnp.sort(x)
jnp.argsort(x)
jnp.sort(x)[::-1]
jnp.cumsum(x)
jnp.cumprod(x)
lax.cummax(x)
lax.cummin(x, reverse=True)
lax.cumlogsumexp(x)
nn.softmax(x)
nn.log_softmax(x)
nn.logsumexp(x) if x.shape[0] else x
nn.relu(x), nn.gelu(x), nn.silu(x), nn.elu(x)
nn.one_hot(jnp.arange(x.shape[0]), 5)
nn.one_hot(jnp.arange(3), x.shape[0])
x[:-1]
x[1:] - x[:-1]
x[::2], x[1::3], x[::-2]
x[-3:], x[:3]
x[:x.shape[0]//2], x[x.shape[0]//2:]
jnp.concatenate([x, y, x])
jnp.stack([x, y]), jnp.stack([x, y], 1)
jnp.hstack([x, 1.0*y]), jnp.vstack([x, y]), jnp.dstack([x, y])
jnp.concatenate([x, x]).reshape(2, -1)
jnp.concatenate([x, x]).reshape(-1, 2)
jnp.repeat(x, 3)
jnp.tile(x, 3), jnp.tile(x, (2, 2))
x[:, None] * y[None, :]
(x[:, None] * y[None, :]).sum(0), (x[:, None] * y[None, :]).sum(1)
(x[:, None] - y[None, :]).reshape(-1)
(x[:, None] - y[None, :]).reshape(x.shape[0] * x.shape[0])
x @ y
jnp.outer(x, y)
jnp.inner(x, y), jnp.vdot(x, y), jnp.dot(x, y)
jnp.kron(x, y)
jnp.flip(x), jnp.roll(x, 1), jnp.roll(x, -2), jnp.roll(x, 7)
jnp.pad(x, (1, 2)), jnp.pad(x, 3, constant_values=7.)
jnp.pad(x, (2, 1), mode="edge") if x.shape[0] else x
jnp.pad(x, (2, 1), mode="wrap") if x.shape[0] else x
jnp.pad(x, (1, 1), mode="reflect") if x.shape[0]>1 else x
lax.pad(x, 0., [(1, 0, 2)])
lax.pad(x, 0., [(-1, -1, 0)]) if x.shape[0]>=2 else x
jnp.arange(x.shape[0])
jnp.arange(x.shape[0]) * 2 + x
jnp.arange(2 * x.shape[0] + 1)
jnp.arange(x.shape[0] // 2)
jnp.arange(1, x.shape[0])
jnp.arange(x.shape[0] - 1, -1, -1)
jnp.arange(0, x.shape[0], 2)
jnp.linspace(0, 1, x.shape[0])
jnp.linspace(0, x.shape[0], 7)
jnp.zeros(x.shape), jnp.ones(x.shape[0] + 1), jnp.full(x.shape, 2), jnp.empty_like(x) * 0
jnp.eye(x.shape[0]), jnp.eye(x.shape[0], 3), jnp.eye(x.shape[0], k=1)
jnp.identity(x.shape[0]) * x
jnp.diag(x), jnp.diag(x, 1), jnp.diag(x, -2)
jnp.diag(jnp.outer(x, y)), jnp.trace(jnp.outer(x, y))
jnp.tril(jnp.outer(x, y)), jnp.triu(jnp.outer(x, y), 1)
jnp.tri(x.shape[0]), jnp.tri(x.shape[0], 4, 1)
jnp.vander(x, 3)
jnp.argmax(x) if x.shape[0] else x
jnp.argmin(x) if x.shape[0] else x
jnp.where(x > 0, x, y), jnp.clip(x, -1, 1)
x.at[0].set(5.) if x.shape[0] else x
x.at[1:].add(1.), x.at[:-1].multiply(2.), x.at[::2].set(0.)
x.at[jnp.array([0, 1, 0])].add(1.)
x.at[jnp.arange(x.shape[0])].set(y)
x[jnp.arange(x.shape[0])[::-1]]
jnp.take(x, jnp.array([0, 1]), mode="clip") if x.shape[0] else x
jnp.take(x, jnp.array([0, 1]), mode="wrap") if x.shape[0] else x
jnp.take(x, jnp.array([0, 1]), mode="fill")
x[jnp.array([0, -1])] if x.shape[0] else x
jnp.searchsorted(jnp.sort(x), y)
jnp.searchsorted(jnp.sort(x), y, side="right")
jnp.digitize(x, jnp.array([-1., 0., 1.]))
jnp.bincount(jnp.abs(x).astype(int), length=4)
jnp.bincount(jnp.abs(x).astype(int) % 3, length=x.shape[0])
jnp.histogram(x, bins=5, range=(-2., 2.))
jnp.interp(y, jnp.sort(x), x) if x.shape[0] else x
jnp.median(x), jnp.percentile(x, 30.) if x.shape[0] else x
jnp.quantile(x, jnp.array([.1, .9])) if x.shape[0] else x
jnp.diff(x), jnp.diff(x, 2)
jnp.ediff1d(x)
jnp.gradient(x) if x.shape[0] >= 2 else x
jnp.trapezoid(x)
jnp.cross(jnp.stack([x, y, x], -1), jnp.stack([y, y, x], -1))
jnp.convolve(x, jnp.ones(3), mode="full") if x.shape[0] else x
jnp.convolve(x, jnp.ones(3), mode="same") if x.shape[0] else x
jnp.convolve(x, y) if x.shape[0] else x
jnp.correlate(x, y, mode="same") if x.shape[0] else x
jnp.linalg.norm(x), jnp.linalg.norm(x, 1)
jnp.all(x > -5), jnp.any(x > 2), jnp.count_nonzero(x > 0)
jnp.fft.rfft(x) if x.shape[0] else x
jnp.fft.ifft(jnp.fft.fft(x)) if x.shape[0] else x
jnp.fft.irfft(jnp.fft.rfft(x), x.shape[0]) if x.shape[0] else x
jnp.fft.fftfreq(x.shape[0]) if x.shape[0] else x
lax.fori_loop(0, x.shape[0], lambda i, c: c + x[i], 0.0) if x.shape[0] else x
lax.fori_loop(0, x.shape[0], lambda i, c: c.at[i].set(2*y[i]), x) if x.shape[0] else x
lax.scan(lambda c, a: (c + a, c * a), 0.0, x)
lax.scan(lambda c, a: (c * .5 + a[0], a[1] - c), 0.0, (x, y), reverse=True)
lax.scan(lambda c, a: (jnp.roll(c, 1) + a, c.sum()), y, x)
lax.scan(lambda c, _: (c * .9 + x.sum(), c), 0.0, None, length=x.shape[0])
lax.map(lambda a: jnp.sin(a) * y.sum(), x)
lax.associative_scan(lambda a, b: a + b, x)
lax.associative_scan(jnp.maximum, x, reverse=True)
lax.while_loop(lambda s: s[1] < x.shape[0], lambda s: (s[0] * .5 + s[1], s[1] + 1), (0., 0))
jax.vmap(lambda a, b: a * b + 1)(x, y) if x.shape[0] else x
jax.vmap(lambda a: a * y)(x) if x.shape[0] else x
jax.vmap(lambda a: lax.fori_loop(0, 3, lambda i, c: c * .5 + a, a))(x) if x.shape[0] else x
jax.vmap(lambda a: lax.while_loop(lambda c: c < 5., lambda c: c + 1. + a * a, a))(x) if x.shape[0] else x
jax.vmap(lambda a: lax.cond(a > 0, jnp.sin, jnp.cos, a))(x) if x.shape[0] else x
jax.grad(lambda v: (jnp.sin(v) ** 2).sum())(x)
jax.grad(lambda v: jnp.tanh(v).mean())(x)
jax.grad(lambda v: (nn.softmax(v) * y).sum())(x)
jax.grad(lambda v: jnp.cumsum(v * y).sum())(x)
jax.grad(lambda v: jnp.sort(v) @ y)(x)
jax.grad(lambda v: (v[1:] * v[:-1]).sum())(x)
jax.grad(lambda v: jnp.prod(v))(x)
jax.grad(lambda v: jnp.max(v))(x) if x.shape[0] else x
jax.grad(lambda v: jnp.concatenate([v, v * y]).reshape(2, -1).sum(0) @ y)(x)
jax.grad(lambda v: lax.scan(lambda c, a: (jnp.tanh(c + a), c), 0., v)[1].sum())(x)
jax.grad(lambda v: lax.fori_loop(0, 5, lambda i, c: jnp.sin(c) * y, v).sum())(x)
jax.grad(lambda v: (jnp.pad(v, (1, 2))[2:] ** 2).sum())(x)
jax.grad(lambda v: jnp.linalg.norm(v))(x)
jax.grad(lambda v: jnp.std(v))(x)
jax.grad(lambda v: jnp.convolve(v, y).sum())(x) if x.shape[0] else x
jax.jacfwd(lambda v: v * v * y)(x) if x.shape[0] else x
jax.jacrev(lambda v: jnp.cumsum(v * v))(x) if x.shape[0] else x
jax.hessian(lambda v: (v ** 3 * y).sum())(x) if x.shape[0] else x
jax.vmap(jax.grad(lambda a: a ** 3))(x) if x.shape[0] else x
jax.jvp(lambda v: jnp.exp(v) @ y, (x,), (y,))
jax.linearize(lambda v: jnp.exp(v) * y, x)[1](y)
jnp.unique(x, size=4, fill_value=0.) if x.shape[0] else x
jnp.nonzero(x > 0, size=5)
jnp.nonzero(x > 0, size=x.shape[0])
jnp.isin(jnp.round(x), jnp.round(y))
jnp.lexsort((x, y))
lax.sort((x, y), num_keys=1)
lax.top_k(x, 2) if x.shape[0] >= 2 else x
jnp.partition(x, x.shape[0] // 2) if x.shape[0] else x
jnp.array_split(x, 3)
jnp.split(x, [2])
lax.reduce_window(x, 0., lax.add, (3,), (1,), "SAME")
lax.reduce_window(x, -np.inf, lax.max, (2,), (2,), "VALID") if x.shape[0] >= 2 else x
x.astype(int), x.astype(bool), x.astype("complex64")
jnp.bitwise_xor(x.astype(int), y.astype(int))
jnp.packbits(x > 0), jnp.unpackbits((x > 0).astype("uint8"))
jnp.meshgrid(x, y)
jnp.indices((x.shape[0], 2))
jnp.broadcast_to(x, (3, x.shape[0]))
jnp.broadcast_to(x[:, None], (x.shape[0], 4))
jnp.expand_dims(x, 0), jnp.squeeze(x[None]), jnp.atleast_2d(x)
jnp.cov(x, y) if x.shape[0] >= 2 else x
jnp.average(x, weights=y * y + 1)
jnp.polyval(x, 2.0), jnp.polyval(jnp.array([1., 2.]), x)
jnp.nanmean(jnp.where(x > 0, x, jnp.nan)), jnp.nansum(x)
jnp.insert(x, 1, 2.) if x.shape[0] else x
jnp.delete(x, 0) if x.shape[0] else x
jnp.append(x, y)
jnp.ones((x.shape[0], 2 * x.shape[0] + 1)).sum(1)
x.shape[0] * x, x / x.shape[0] if x.shape[0] else x
jnp.float32(x.shape[0]) + x, jnp.asarray(x.shape[0])
x.size * 2, jnp.size(x), len(x)
lax.dynamic_slice(x, (1,), (2,)) if x.shape[0] >= 2 else x
lax.dynamic_slice(x, (jnp.argmax(y),), (x.shape[0] // 2,)) if x.shape[0] else x
lax.dynamic_update_slice(x, y[: x.shape[0] // 2], (1,))
lax.dynamic_slice_in_dim(x, x.shape[0] // 2, 1) if x.shape[0] else x
lax.rev(x, (0,)), lax.iota(int, x.shape[0]), lax.broadcasted_iota(int, (3, x.shape[0]), 1)
jax.random.normal(jax.random.key(0), x.shape)
jax.random.uniform(jax.random.key(1), (x.shape[0] + 1,)), jax.random.bits(jax.random.key(2), x.shape)
jax.random.permutation(jax.random.key(1), x)
jax.random.split(jax.random.key(0), x.shape[0]) if x.shape[0] else x
jax.random.choice(jax.random.key(3), x, (3,)) if x.shape[0] else x
jax.random.categorical(jax.random.key(3), x) if x.shape[0] else x
jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)) * y)(x)
lax.cond(x.sum() > 0, lambda: x * 2, lambda: y)
lax.switch(jnp.int32(x.sum()) % 3, [lambda a: a, lambda a: a[::-1], lambda a: a * y], x)
jnp.select([x > 1, x > 0], [x, y], 0.), jnp.piecewise(x, [x > 0], [jnp.sin, jnp.cos])
jnp.heaviside(x, 0.5), jnp.logaddexp(x, y), jnp.hypot(x, y), jnp.arctan2(x, y)
jnp.mod(x, 2.), jnp.power(jnp.abs(x), y), jnp.floor_divide(x, 0.7)
lax.reduce(x, 0., lax.add, (0,)), lax.argmax(x, 0, "int32") if x.shape[0] else x
lax.reduce_precision(x, 5, 3)
lax.batch_matmul(x[None, :, None], y[None, None, :])
lax.conv_general_dilated(x[None, None], jnp.ones((2, 1, 3)), (1,), "SAME")
lax.conv_general_dilated(x[None, None], jnp.ones((2, 1, 3)), (2,), [(1, 1)], rhs_dilation=(2,)) if x.shape[0] >= 3 else x
jnp.einsum("i,j->ij", x, y), jnp.einsum("i,i", x, y), jnp.einsum("i,i->i", x, y)
jnp.tensordot(x, y, 0), jnp.tensordot(x, y, 1)
jnp.block([[x, y]]), jnp.column_stack([x, y])
jnp.apply_along_axis(jnp.sort, 0, x)
jnp.vectorize(lambda a, b: a + b)(x, y) if x.shape[0] else x
jnp.flatnonzero(x > 0, size=3), jnp.argwhere(x > 0, size=3)
jnp.put(x, jnp.array([0]), 1., inplace=False) if x.shape[0] else x
jnp.fill_diagonal(jnp.outer(x, y), 3., inplace=False)
jnp.tril_indices(x.shape[0])
jnp.bartlett(x.shape[0]), jnp.hanning(x.shape[0])
jnp.corrcoef(jnp.stack([x, y])) if x.shape[0] > 1 else x
jnp.maximum.accumulate(x), jnp.add.reduce(x), jnp.multiply.outer(x, y)
jnp.roll(x, x.shape[0] // 2), jnp.roll(x[None], (0, 1), (0, 1))
x.reshape(x.shape[0], 1), x.reshape(1, -1), x.reshape((-1,)), x.ravel(), x.T
x.reshape(1, x.shape[0], 1) * jnp.ones((2, 1, 2))
jnp.sum(x, where=x > 0), jnp.mean(x, where=x > 0), jnp.max(x, where=x > 0, initial=-9.)
jnp.cumsum(x[::-1])[::-1], jnp.cumsum((x > 0))
jnp.swapaxes(jnp.outer(x, y), 0, 1), jnp.moveaxis(jnp.outer(x, y), 0, -1)
"""  # of x and y, two vectors of one length

MATRICES: Final = """
x @ y
x.T @ x
x @ x.T
jnp.tanh(x @ y).sum(0)
(x @ y) @ y.T
x.T.reshape(-1), x.reshape(-1)
x.reshape(x.shape[1], x.shape[0])
x.reshape(x.shape[0] * x.shape[1], 1)
x.sum(0), x.sum(1), x.sum(), x.mean(0), x.mean(1)
x.max(0) if x.size else x
x.max(1) if x.size else x
x.argmax(0) if x.size else x
x.argmin(1) if x.size else x
x[::-1, 1:], x[:, ::-1], x[1:-1, 1:-1]
x[:, 0] if x.size else x
x[-1] if x.size else x
jnp.sort(x, 0), jnp.sort(x, 1), jnp.argsort(x, 1)
jnp.cumsum(x, 0), jnp.cumsum(x, 1), jnp.cumsum(x), jnp.cumprod(x, 1)
nn.softmax(x, 0), nn.softmax(x, 1), nn.log_softmax(x)
nn.standardize(x) if x.size else x
(x - x.mean(-1, keepdims=True)) / jnp.sqrt(x.var(-1, keepdims=True) + 1e-5)
jnp.concatenate([x, x], 0), jnp.concatenate([x, x], 1)
jnp.concatenate([x, y.T[:, : x.shape[1]]], 0)
jnp.stack([x, x], 1), jnp.tile(x, (2, 3)), jnp.repeat(x, 2, 1), jnp.repeat(x, 3, 0)
jnp.pad(x, ((1, 2), (0, 3))), jnp.pad(x, 1)
jnp.roll(x, 1, 0), jnp.roll(x, -2, 1), jnp.roll(x, 3)
x + x.sum(0), x * x.sum(1)[:, None], x - x.mean()
x[:, :, None] * x[:, None, :]
jnp.einsum("ij,ij->i", x, x), jnp.einsum("ij->ji", x), jnp.einsum("ij,jk->ik", x, y), jnp.einsum("ij->", x)
jnp.einsum("ij,ik->jk", x, x), jnp.einsum("ij,kj->ik", x, x)
jnp.einsum("bi,bj,bij->b", x, x, x[:, :, None] * x[:, None, :])
lax.scan(lambda c, a: (jnp.tanh(c * .5 + a), c.sum()), jnp.zeros(x.shape[1]), x)
lax.scan(lambda c, a: (c + y @ jnp.ones(8), c @ a), jnp.zeros(x.shape[1]), x)
lax.scan(lambda c, a: (jnp.tanh(x.T @ (x @ c)) + a, c), jnp.ones(x.shape[1]), x)
lax.map(lambda r: r @ y, x)
lax.map(lambda r: jnp.sort(r)[::-1], x)
jax.vmap(lambda r: r @ y)(x) if x.shape[0] else x
jax.vmap(lambda r: nn.softmax(r), 1, 1)(x) if x.shape[1] else x
jax.vmap(lambda r: jnp.cumsum(r))(x) if x.shape[0] else x
jax.vmap(jax.vmap(lambda a: a * 2))(x) if x.size else x
jax.vmap(lambda r: lax.scan(lambda c, a: (c * .5 + a, c), 0., r))(x) if x.shape[0] else x
jax.vmap(lambda r: lax.while_loop(lambda c: c.sum() < 9., lambda c: c + 1., r))(x) if x.size else x
jax.grad(lambda w: (jnp.tanh(x @ w) ** 2).mean())(y)
jax.grad(lambda v: (jnp.tanh(v @ y) ** 2).sum())(x)
jax.grad(lambda v: (nn.softmax(v @ v.T) @ v).sum())(x)
jax.grad(lambda v: lax.scan(lambda c, a: (jnp.tanh(c * .5 + a), c.sum()), jnp.zeros(v.shape[1]), v)[1].sum())(x)
jax.vmap(jax.grad(lambda r, w: jnp.tanh(r @ w).sum(), 1), (0, None))(x, y) if x.shape[0] else x
jax.grad(lambda v: jnp.cumsum(v, 0).sum() + (v.T.reshape(-1)[::2] ** 2).sum())(x)
jax.grad(lambda v: (v / v.shape[0]).std(1).sum())(x)
jnp.where(jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool)), x @ x.T, -1e9)
nn.softmax(jnp.where(jnp.tril(jnp.ones((x.shape[0], x.shape[0]), bool)), x @ x.T, -jnp.inf)) @ x if x.size else x
x.at[0].set(1.) if x.size else x
x.at[:, 1:].add(x[:, 1:])
x.at[jnp.arange(x.shape[0]), 0].set(2.) if x.size else x
x[jnp.arange(x.shape[0])[:, None], jnp.arange(x.shape[1])[None]]
jnp.take_along_axis(x, jnp.argsort(x, 1), 1)
jnp.take(x, jnp.arange(x.shape[1])[::-1], 1)
jnp.linalg.norm(x), jnp.linalg.norm(x, axis=1)
x.swapaxes(0, 1)[None], x[None].transpose(2, 0, 1)
lax.conv_general_dilated(x[None, None], jnp.ones((3, 1, 3, 3)), (1, 1), "SAME")
lax.conv_general_dilated(x[None, :, :, None], jnp.ones((3, 3, 1, 4)), (2, 2), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
lax.conv_general_dilated(x[None, None], jnp.ones((3, 1, 2, 2)), (1, 1), "VALID") if min(x.shape) >= 2 else x
jax.grad(lambda k: (lax.conv_general_dilated(x[None, None], k, (1, 1), "SAME") ** 2).sum())(jnp.ones((2, 1, 3, 3)))
jax.grad(lambda v: (lax.conv_general_dilated(v[None, None], jnp.ones((2, 1, 3, 3)), (1, 1), "SAME") ** 2).sum())(x)
lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "SAME")
lax.reduce_window(x, 0., lax.add, (3, 1), (1, 1), "SAME")
jnp.median(x, 0) if x.size else x
jnp.quantile(x, .3, 1) if x.size else x
jnp.diff(x, axis=0), jnp.diff(x, axis=1)
jnp.flip(x), jnp.fliplr(x), jnp.rot90(x), jnp.rot90(x, 2)
jnp.triu(x), jnp.tril(x, -1), jnp.diag(x), jnp.trace(x)
jnp.linalg.matrix_power(x @ x.T * .01, 3) if x.size else x
jnp.linalg.solve(x @ x.T + 10 * jnp.eye(x.shape[0]), x) if x.size else x
jnp.kron(x, jnp.ones((2, 2)))
jnp.all(x > -2, 0), jnp.any(x > 1, 1)
jnp.searchsorted(jnp.sort(x[:, 0]), x[:, 0]) if x.size else x
jnp.apply_along_axis(lambda r: r - r.mean(), 1, x) if x.size else x
lax.top_k(x, 1) if x.size else x
jnp.split(x, [1], 1), jnp.array_split(x, 2, 0)
lax.dot_general(x[None], y[None], (((2,), (1,)), ((0,), (0,))))
jnp.broadcast_to(x, (2, *x.shape)).sum(0)
jnp.ones((2, *x.shape)) @ y
jnp.ones((x.shape[0], 3, x.shape[1])) @ y
jnp.ones((3, x.shape[0], x.shape[1])).reshape(3 * x.shape[0], -1) if x.size else x
jnp.ones((x.shape[0], 6, x.shape[1])).reshape(x.shape[0], 2, 3, x.shape[1]).transpose(0, 2, 1, 3).reshape(x.shape[0], -1) if x.size else x
x.astype("float16") @ y.astype("float16"), x.astype(int) @ y.astype(int)
x.astype("complex64") @ y
nn.dot_product_attention(x[None, :, None], x[None, :, None], x[None, :, None]) if x.size else x
jax.jacrev(lambda w: jnp.tanh(x @ w).sum(0))(y)
jax.image.resize(x, (4, 4), "linear") if x.size else x
jax.image.resize(x, (x.shape[0] * 2, x.shape[1]), "nearest") if x.size else x
"""  # of x and y, matrices m x k and k x 8

LINKS: Final = """
x[::-1]
x[1:]
x[:-2] if x.shape[0] > 2 else x
x[::2]
x[: x.shape[0] // 2 + 1]
jnp.concatenate([x, x[:1]])
jnp.concatenate([x, x])
jnp.pad(x, (1, 2))
jnp.roll(x, 2)
jnp.sort(x)
jnp.cumsum(x)
lax.cummax(x)
x - x.mean()
x / (1 + x.max()) if x.shape[0] else x
nn.softmax(x)
jnp.sin(x) * x.shape[0]
x + jnp.arange(x.shape[0])
x * jnp.linspace(0, 1, x.shape[0])
(x[:, None] * x[None, :]).sum(1)
(x[:, None] - x[None, :]).max(0) if x.shape[0] else x
jnp.outer(x, jnp.ones(2)).reshape(-1)
jnp.outer(x, jnp.ones(3)).T.reshape(-1)
jnp.repeat(x, 2)
jnp.tril(jnp.outer(x, x)) @ x
jnp.eye(x.shape[0]) @ x
jnp.where(x > 0, x, x[::-1])
x.at[0].set(1.0) if x.shape[0] else x
x.at[1:].add(x[:-1])
x[jnp.argsort(x)]
jnp.take(x, jnp.arange(x.shape[0]) // 2, mode="clip") if x.shape[0] else x
lax.scan(lambda c, a: (c * 0.5 + a, c), 0.0, x)[1]
lax.fori_loop(0, 3, lambda i, c: jnp.roll(c, 1) * 0.5 + 1, x)
lax.fori_loop(0, x.shape[0], lambda i, c: c.at[i].multiply(0.5), x)
jax.vmap(lambda a: jnp.tanh(a) + 1)(x) if x.shape[0] else x
jax.vmap(lambda a: (a * x).sum())(x) if x.shape[0] else x
jax.grad(lambda v: (jnp.cos(v) * v[::-1]).sum())(x)
lax.cond(x.sum() > 0, lambda v: v * 2, lambda v: v[::-1], x)
jnp.stack([x, x * 2]).sum(0)
jnp.stack([x, x * 2], 1).reshape(-1)[: x.shape[0]]
x.reshape(1, -1, 1).sum((0, 2))
""".strip().splitlines()  # vector -> vector


def table(text: str) -> dict[str, Function]:
    return {line: eval(f"lambda x, y: ({line})", NAMES) for line in text.strip().splitlines()}


FUNCTIONS: Final = {1: table(VECTORS), 2: table(MATRICES)}  # by rank


def chain(rng: np.random.Generator) -> tuple[str, Function]:
    """A random composition of links, and its text."""
    lines = [str(line) for line in rng.choice(LINKS, rng.integers(2, 6))]
    links = [eval(f"lambda x: ({line})", NAMES) for line in lines]

    def f(x: Any, y: Any) -> Any:
        for link in links:
            x = link(x)
        return x, x.sum()

    return " | ".join(lines), f


def arguments(rng: np.random.Generator, rank: int, n: int, k: int) -> list[np.ndarray]:
    shapes = [(n,), (n,)] if rank == 1 else [(n, k), (k, 8)]
    return [rng.normal(size=s).astype(np.float32) for s in shapes]


class Compared:
    """A function jitted both ways."""

    def __init__(self, f: Function) -> None:
        self.traces = 0

        def counted(*args: Any) -> Any:
            self.traces += 1
            return f(*args)

        self.free, self.fixed = jax.jit(counted), jax.jit(lambda *args: f(*args), dynamic="never")

    def at(self, args: Sequence[np.ndarray]) -> None:
        """Compare for these arguments."""
        free, fixed = outcome(self.free, args), outcome(self.fixed, args)
        if isinstance(free, Exception) or isinstance(fixed, Exception):
            assert type(free) is type(fixed), f"{free!r} with free sizes, {fixed!r} with fixed ones"
            return
        a, b = jax.tree.leaves(free), jax.tree.leaves(fixed)
        assert len(a) == len(b)
        for x, y in zip(a, b):
            same(x, y)

    def entries(self) -> int:
        """How many programs with free sizes there are."""
        return sum(len(f.programs) for f in function_of(self.free).cache.families.values())


def outcome(f: Function, args: Sequence[np.ndarray]) -> Any:
    try:
        return f(*args)
    except (TypeError, ValueError, IndexError) as error:
        return error


def same(x: Any, y: Any) -> None:
    """Equal types and shapes, and values up to rounding: what is summed in between may be fused
    another way."""
    assert type(x) is type(y) and x.aval is y.aval, (
        f"{x.aval} with free sizes, {y.aval} with fixed ones"
    )
    if not isinstance(x.dtype, np.dtype):
        x, y = jax.random.key_data(x), jax.random.key_data(y)
    x, y = np.asarray(x), np.asarray(y)
    if x.dtype.kind not in "fcV":
        np.testing.assert_array_equal(x, y)
        return
    tol = 1e-2 if x.dtype.itemsize == 2 else 2e-5
    finite = np.abs(y[np.isfinite(y)])
    np.testing.assert_allclose(x, y, rtol=tol, atol=tol * max(1.0, float(finite.max(initial=0))))


def compare(
    f: Function,
    rank: int,
    rng: np.random.Generator,
    sizes: Sequence[int] = SIZES,
    exact: bool = False,
) -> Compared:
    """Both ways at these sizes in random order, some of them twice. Chains blow rounding up, so
    they are compared in exact mode."""
    both = Compared(f)
    order = [int(n) for n in rng.permutation(sizes)]
    with jax.config.override("calque_exact", exact):
        for n in (*order, *order[:2]):
            both.at(arguments(rng, rank, n, int(rng.choice(sizes))))
    return both


def cases(rng: np.random.Generator, chains: int) -> Iterator[tuple[str, Function, int]]:
    for rank, functions in FUNCTIONS.items():
        for name, f in functions.items():
            yield name, f, rank
    for _ in range(chains):
        yield (*chain(rng), 1)


def main() -> int:
    p = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    p.add_argument("--seed", type=int, default=0)
    p.add_argument("--chains", type=int, default=200)
    p.add_argument("--only", default="", help="functions whose text contains this")
    p.add_argument("--verbose", action="store_true", help="how often each was traced")
    a = p.parse_args()
    rng, bad, done, static, start = np.random.default_rng(a.seed), 0, 0, [], time.perf_counter()
    for name, f, rank in cases(rng, a.chains):
        if a.only not in name:
            continue
        done += 1
        try:
            both = compare(f, rank, rng, exact=" | " in name)
        except AssertionError as error:
            bad += 1
            print(f"---- {name}\n{str(error)[:500]}", flush=True)
            continue
        if not both.entries():
            static.append(name)
        if a.verbose:
            print(f"{both.traces:3d} traces, {both.entries()} with free sizes: {name}", flush=True)
    print(
        f"{done} functions, {bad} differ, {time.perf_counter() - start:.0f} s. Never with free"
        f" sizes: {static}"
    )
    return bool(bad)


if __name__ == "__main__":
    raise SystemExit(main())
