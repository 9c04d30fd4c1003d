"""Another style of ordinary code: classes, protocols, an optimiser, a filter. Type checkers find
nothing wrong with it, and it runs."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

import numpy as np

import calque as jax
import calque.numpy as jnp
from calque import Array, grad, jit, lax, random, vmap
from calque.typing import ArrayLike, DTypeLike

Params: TypeAlias = dict[str, Array]
T = TypeVar("T")


class Optimiser(NamedTuple):
    init: Callable[[Params], AdamState]
    update: Callable[[Params, AdamState], tuple[Params, AdamState]]


class AdamState(NamedTuple):
    steps: Array
    mu: Params
    nu: Params


def adam(rate: float, b1: float = 0.9, b2: float = 0.999, eps: float = 1e-8) -> Optimiser:
    def init(params: Params) -> AdamState:
        mu, nu = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        return AdamState(jnp.zeros([], jnp.int32), mu, nu)

    def update(grads: Params, state: AdamState) -> tuple[Params, AdamState]:
        mu = jax.tree.map(lambda m, g: b1 * m + (1 - b1) * g, state.mu, grads)
        nu = jax.tree.map(lambda v, g: b2 * v + (1 - b2) * g**2, state.nu, grads)
        steps = state.steps + 1
        scale = jnp.sqrt(1 - b2**steps) / (1 - b1**steps)
        updates = jax.tree.map(lambda m, v: -rate * scale * m / (jnp.sqrt(v) + eps), mu, nu)
        return updates, AdamState(steps=steps, mu=mu, nu=nu)

    return Optimiser(init, update)


@jax.tree_util.register_pytree_node_class
@dataclasses.dataclass(frozen=True)
class Linear:
    weight: Array
    bias: Array
    name: ClassVar[str] = "linear"

    @classmethod
    def create(cls, key: Array, n: int, m: int) -> Linear:
        return cls(random.normal(key, (n, m)) / np.sqrt(n), jnp.zeros(m))

    def __call__(self, x: Array) -> Array:
        return jnp.dot(x, self.weight) + self.bias

    def tree_flatten(self) -> tuple[tuple[Array, Array], None]:
        return (self.weight, self.bias), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[Array, Array]) -> Linear:
        return cls(*children)


@partial(jax.tree_util.register_dataclass, data_fields=["layers"], meta_fields=["activation"])
@dataclasses.dataclass
class Network:
    layers: list[Linear]
    activation: Callable[[Array], Array] = jax.nn.relu

    @staticmethod
    def create(key: Array, sizes: Sequence[int]) -> Network:
        keys = random.split(key, len(sizes) - 1)
        return Network([Linear.create(k, n, m) for k, n, m in zip(keys, sizes, sizes[1:])])

    @jit
    def __call__(self, x: Array) -> Array:
        for layer in self.layers[:-1]:
            x = self.activation(layer(x))
        return self.layers[-1](x)

    @partial(jax.jit, static_argnames=("reduce",))
    def loss(self, x: Array, y: Array, *, reduce: bool = True) -> Array:
        errors = jax.vmap(self.one)(x, y)
        return errors.mean() if reduce else errors

    def one(self, x: Array, y: Array) -> Array:
        return jnp.sum((self(x) - y) ** 2)


class Gaussian(NamedTuple):
    mean: Array
    cov: Array

    @property
    def dim(self) -> int:
        return self.mean.shape[-1]

    def logpdf(self, x: Array) -> Array:
        chol = jnp.linalg.cholesky(self.cov)
        z = jax.scipy.linalg.solve_triangular(chol, x - self.mean, lower=True)
        half = jnp.log(jnp.diagonal(chol, axis1=-2, axis2=-1)).sum(-1)
        return -0.5 * (z @ z) - half - 0.5 * self.dim * jnp.log(2 * jnp.pi)


def kalman(
    prior: Gaussian, A: Array, Q: Array, H: Array, R: Array, ys: Array
) -> tuple[Gaussian, Array]:
    def step(belief: Gaussian, y: Array) -> tuple[Gaussian, Array]:
        m, P = A @ belief.mean, A @ belief.cov @ A.T + Q
        S = H @ P @ H.T + R
        K = jnp.linalg.solve(S, H @ P).T
        out = Gaussian(m + K @ (y - H @ m), P - K @ S @ K.T)
        return out, Gaussian(H @ m, S).logpdf(y)

    last, lls = lax.scan(step, prior, ys)
    return last, lls.sum()


class Scheduler(Protocol):
    def __call__(self, step: Array, /) -> Array: ...


def warmup(peak: float, steps: int) -> Scheduler:
    def rate(step: Array) -> Array:
        return jnp.where(step < steps, peak * step / steps, peak * jnp.exp(-(step - steps) / 1e3))

    return rate


@partial(jit, static_argnames=("n", "dtype"))
def basis(x: ArrayLike, n: int = 3, dtype: DTypeLike = jnp.float32) -> Array:
    x = jnp.asarray(x, dtype)
    return jnp.stack([x**k for k in range(n)], axis=-1)


@functools.partial(jax.jit, donate_argnums=(0,), static_argnums=(2,))
def train_step(
    state: tuple[Params, AdamState], batch: tuple[Array, Array], opt: Optimiser
) -> tuple[tuple[Params, AdamState], Array]:
    params, inner = state

    def loss(p: Params) -> tuple[Array, dict[str, Array]]:
        x, y = batch
        pred = jnp.einsum("bi,ij->bj", x, p["w"]) + p["b"]
        return jnp.mean((pred - y) ** 2), {"pred": pred}

    (value, aux), grads = jax.value_and_grad(loss, has_aux=True)(params)
    assert aux["pred"].ndim == 2
    updates, inner = opt.update(grads, inner)
    return (jax.tree.map(jnp.add, params, updates), inner), value


def batches(
    x: Array, y: Array, size: int, *, rng: np.random.Generator
) -> Iterator[tuple[Array, Array]]:
    order = rng.permutation(len(x))
    for i in range(0, len(order), size):
        yield x[order[i : i + size]], y[order[i : i + size]]


class Cache(Generic[T]):
    def __init__(self, make: Callable[[int], T]) -> None:
        self._make, self._held = make, dict[int, T]()

    def __getitem__(self, n: int) -> T:
        return self._held.setdefault(n, self._make(n))


@jax.custom_vjp
def clip_gradient(lo: float, hi: float, x: Array) -> Array:
    return x


def _fwd(lo: float, hi: float, x: Array) -> tuple[Array, tuple[float, float]]:
    return x, (lo, hi)


def _bwd(res: tuple[float, float], g: Array) -> tuple[None, None, Array]:
    return None, None, jnp.clip(g, *res)


clip_gradient.defvjp(_fwd, _bwd)


def newton(f: Callable[[Array], Array], x: Array, tol: float = 1e-6) -> Array:
    df = grad(f)

    def cond(state: tuple[Array, Array, int]) -> Array:
        _, dx, n = state
        return jnp.logical_and(jnp.abs(dx) > tol, n < 50)

    def body(state: tuple[Array, Array, int]) -> tuple[Array, Array, int]:
        x, _, n = state
        dx = f(x) / df(x)
        return x - dx, dx, n + 1

    return lax.while_loop(cond, body, (x, jnp.inf * x, 0))[0]


def main() -> None:
    key = random.key(0)
    key, *subkeys = random.split(key, 4)
    k1, k2 = random.split(subkeys[0])
    net = Network.create(k1, [3, 16, 2])
    x, y = random.normal(k2, (64, 3)), jnp.ones((64, 2))
    value, grads = jax.value_and_grad(Network.loss)(net, x, y)
    stepped = jax.tree.map(lambda p, g: p - 0.1 * g, net, grads)
    print(float(value), float(stepped.loss(x, y)), net(x).shape, stepped.loss(x, y, reduce=False))
    params: Params = {"w": jnp.zeros((3, 2)), "b": jnp.zeros(2)}
    opt = adam(1e-2)
    state = (params, opt.init(params))
    loss = jnp.inf * jnp.ones([])
    for xb, yb in batches(x, y, 16, rng=np.random.default_rng(0)):
        state, loss = train_step(state, (xb, yb), opt)
    print(f"{loss:.3f}", loss.item(), {k: v.shape for k, v in state[0].items()})
    per_example: Array = vmap(grad(lambda w, a, b: ((a @ w - b) ** 2).sum()), in_axes=(None, 0, 0))(
        state[0]["w"], x, y
    )
    print(
        per_example.shape,
        basis(np.array([0.0, 1.0]), n=4).T,
        basis(np.arange(3), dtype="float16").dtype,
    )
    eye = jnp.eye(2)
    belief, ll = kalman(Gaussian(jnp.zeros(2), eye), eye, 0.1 * eye, eye, eye, jnp.ones((5, 2)))
    print(
        belief.dim, ll, jnp.linalg.eigh(belief.cov).eigenvalues, jnp.linalg.norm(belief.mean, ord=2)
    )
    u, s, vt = jnp.linalg.svd(x, full_matrices=False)
    q, r = jnp.linalg.qr(x)
    print(jnp.allclose((u * s) @ vt, x, atol=1e-4), jnp.abs(q @ r - x).max(), jnp.argsort(-s)[::-1])
    print(newton(lambda t: t**2 - 2, jnp.array(1.0)), warmup(0.1, 10)(jnp.array(3)))
    table = Cache(lambda n: jnp.tri(n)).__getitem__(3)
    print(
        table.at[0, :].set(1).at[jnp.array([1, 2]), 0].add(2.0),
        table[..., None].squeeze(-1)[1:, ::-1],
    )
    print(jnp.where(table > 0, table, -jnp.inf).max(axis=0, keepdims=True).tolist())
    total, history = lax.scan(lambda c, t: (c + t, c), 0.0, jnp.arange(5.0))
    print(total, history[-1], lax.fori_loop(0, 3, lambda i, v: v * 2, jnp.ones(2)))
    print(lax.cond(x.sum() > 0, lambda t: t + 1, lambda t: t - 1, x).mean(), bool((x > 0).any()))
    rows, cols = jnp.nonzero(table)
    masked = x[x[:, 0] > 0]
    print(len(rows) == len(cols), masked.shape, jax.hessian(lambda t: (t**3).sum())(jnp.ones(2)))
    print(jax.jacfwd(lambda t: jnp.sin(t))(jnp.ones(2)), jax.eval_shape(lambda t: t @ t.T, x).shape)
    out, pullback = jax.vjp(jnp.sin, x)
    (cotangent,) = pullback(jnp.ones_like(out))
    primal, tangent = jax.jvp(jnp.cos, (x,), (cotangent,))
    print(
        primal.dtype == tangent.dtype, jax.device_get(out).nbytes, out.block_until_ready().devices()
    )
    leaves, treedef = jax.tree.flatten(state[0])
    print(
        jax.tree.unflatten(treedef, [2 * v for v in leaves])["w"].shape,
        jax.tree.leaves(net)[0].size,
    )
    lowered = jax.jit(lambda t: t + 1).lower(x)
    print(
        lowered.compile()(x).sum(),
        lowered.as_text()[:10],
        jax.make_jaxpr(jnp.sin)(1.0).jaxpr.eqns[0].primitive,
    )
    print(
        random.choice(key, 10, (3,), replace=False),
        random.randint(key, (), 0, 5) + 1,
        random.bernoulli(key, 0.5, (2,)),
    )


if __name__ == "__main__":
    main()
