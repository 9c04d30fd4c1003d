"""Ordinary code of a user, annotated as a user would. Type checkers accept every line in their
strict settings, and it runs: `main` is called by a test."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

import calque as jax
import calque.numpy as jnp
from calque import Array, lax, random
from calque.experimental import checkify
from calque.sharding import PartitionSpec as P
from calque.typing import ArrayLike, DTypeLike

# ------------------------------------------------------------ a network and its training


class Layer(NamedTuple):
    weight: Array
    bias: Array


Network = list[Layer]
Batch = tuple[Array, Array]


def init_network(key: Array, sizes: list[int], dtype: DTypeLike = jnp.float32) -> Network:
    keys = random.split(key, len(sizes) - 1)
    return [
        Layer(random.normal(k, (n, m), dtype) * jnp.sqrt(2 / n), jnp.zeros(m, dtype=dtype))
        for k, n, m in zip(keys, sizes[:-1], sizes[1:])
    ]


def predict(network: Network, x: Array) -> Array:
    *hidden, last = network
    for weight, bias in hidden:
        x = jax.nn.relu(x @ weight + bias)
    return x @ last.weight + last.bias


def loss(network: Network, batch: Batch) -> Array:
    x, labels = batch
    logits = predict(network, x)
    targets = jax.nn.one_hot(labels, logits.shape[-1])
    return -jnp.mean(jnp.sum(jax.nn.log_softmax(logits) * targets, axis=-1))


@jax.jit
def train_step(network: Network, batch: Batch, rate: float = 1e-2) -> tuple[Network, Array]:
    value, grads = jax.value_and_grad(loss)(network, batch)
    return jax.tree.map(lambda p, g: p - rate * g, network, grads), value


def batches(key: Array, x: Array, y: Array, size: int) -> Iterator[Batch]:
    order = random.permutation(key, x.shape[0])
    for start in range(0, len(x), size):
        chosen = order[start : start + size]
        yield x[chosen], jnp.take(y, chosen)


def train(epochs: int = 2) -> float:
    key = random.key(0)
    key, data_key, init_key = random.split(key, 3)
    x = random.normal(data_key, (32, 4))
    y = (x[:, 0] > x[:, 1]).astype(jnp.int32)
    network = init_network(init_key, [4, 8, 2])
    value = jnp.inf
    for epoch in range(epochs):
        for batch in batches(random.fold_in(key, epoch), x, y, size=8):
            network, latest = train_step(network, batch, rate=0.1)
            value = float(latest)
    accuracy = jnp.mean(jnp.argmax(predict(network, x), axis=1) == y)
    print(
        f"loss {value:.3f} accuracy {accuracy.item():.2f} of {y.sum()} {network[0].weight.nbytes}"
    )
    return value


# ------------------------------------------------------------ a dataclass as a pytree


@partial(jax.tree_util.register_dataclass, data_fields=["mean", "count"], meta_fields=["name"])
@dataclass(frozen=True)
class Average:
    mean: Array
    count: Array
    name: str = "average"

    def update(self, x: ArrayLike) -> "Average":
        count = self.count + 1
        return Average(self.mean + (x - self.mean) / count, count, self.name)


def averages(xs: Array) -> tuple[Average, Array]:
    def step(average: Average, x: Array) -> tuple[Average, Array]:
        average = average.update(x)
        return average, average.mean

    start = Average(jnp.zeros(xs.shape[1:]), jnp.zeros((), jnp.int32))
    return lax.scan(step, start, xs)


@jax.tree_util.register_pytree_node_class
class Rotation:
    def __init__(self, angle: ArrayLike) -> None:
        self.angle = angle

    def __call__(self, x: Array) -> Array:
        c, s = jnp.cos(self.angle), jnp.sin(self.angle)
        return jnp.stack([c * x[0] - s * x[1], s * x[0] + c * x[1]])

    def tree_flatten(self) -> tuple[tuple[ArrayLike], None]:
        return (self.angle,), None

    @classmethod
    def tree_unflatten(cls, aux: None, children: tuple[ArrayLike]) -> "Rotation":
        return cls(*children)


def trees() -> int:
    tree: dict[str, list[Array]] = {"a": [jnp.ones(2), jnp.zeros(3)], "b": []}
    leaves, structure = jax.tree.flatten(tree)
    doubled = jax.tree.unflatten(structure, [2 * leaf for leaf in leaves])
    same = jax.tree.map(jnp.add, tree, tree)
    assert jax.tree.structure(doubled) == structure and jax.tree.all(
        jax.tree.map(lambda a, b: bool(jnp.array_equal(a, b)), doubled, same)
    )
    named = jax.tree_util.tree_map_with_path(
        lambda path, leaf: (jax.tree_util.keystr(path), leaf.shape), tree
    )
    shapes: list[tuple[int, ...]] = [leaf.shape for leaf in jax.tree.leaves(tree)]
    turned: Array = jax.tree.map(lambda angle: angle * 2, Rotation(0.5))(jnp.arange(2.0))
    total: Array = jax.tree.reduce(lambda a, b: a + b.sum(), tree, jnp.float32(0))
    return len(named) + len(shapes) + turned.size + int(total)


# ------------------------------------------------------------ compiled methods


class Filter:
    def __init__(self, width: int) -> None:
        self.width = width

    @partial(jax.jit, static_argnums=0)
    def smooth(self, x: Array, times: int = 1) -> Array:
        return jnp.convolve(x, jnp.ones(self.width) / self.width, mode="same") * times

    @jax.jit(static_argnums=0)
    def rough(self, x: Array, times: int = 1) -> Array:
        smooth: Array = self.smooth(x, times=times)
        return x - smooth

    @staticmethod
    @jax.jit
    def energy(x: Array) -> Array:
        return jnp.vdot(x, x)

    @classmethod
    @partial(jax.jit, static_argnums=0)
    def widest(cls, x: Array) -> Array:
        smooth: Array = cls(x.size).smooth(x)
        return smooth


def filtered(x: Array) -> Array:
    small = Filter(3)
    rows = jax.vmap(small.rough)(jnp.stack([x, x]))
    kept = small.rough(x, times=2) + Filter.rough(small, x) + Filter.widest(x) + small.widest(x)
    text: str = Filter.rough.lower(small, x).as_text()
    assert text
    return small.energy(x=kept) + Filter.energy(rows[0]) + small.energy(small.rough(x, 1))


# ------------------------------------------------------------ results keep their types


def checked_log(x: Array) -> Array:
    def log(x: Array) -> Array:
        checkify.check(jnp.all(x > 0), "negative: {}", x.min())
        return jnp.log(x)

    error, out = checkify.checkify(log)(x)
    error.throw()
    return out


def total_over_devices(x: Array) -> Array:
    def total(part: Array) -> Array:
        return lax.psum(jax.block_until_ready(part), "data")

    mesh = jax.make_mesh((1,), ("data",))
    total_of_all = jax.shard_map(total, mesh=mesh, in_specs=P("data"), out_specs=P())
    return jax.named_call(total_of_all)(jax.device_put(x, jax.devices()[0]))


def orthogonal(x: Array) -> Array:
    q, r = jnp.linalg.qr(x)
    return q @ r - jnp.linalg.qr(x).Q


def fitted(x: Array) -> Array:
    slope: Array = jnp.gradient(x)
    return jnp.polyfit(x, slope, 1)


# ------------------------------------------------------------ derivatives and control flow


@jax.custom_vjp
def clip_gradient(x: Array, limit: float) -> Array:
    return x


def clip_forward(x: Array, limit: float) -> tuple[Array, float]:
    return x, limit


def clip_backward(limit: float, g: Array) -> tuple[Array, None]:
    return jnp.clip(g, -limit, limit), None


clip_gradient.defvjp(clip_forward, clip_backward)


@jax.custom_jvp
def log1pexp(x: Array) -> Array:
    return jnp.log1p(jnp.exp(x))


@log1pexp.defjvp
def log1pexp_jvp(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    (x,), (t,) = primals, tangents
    return log1pexp(x), jax.nn.sigmoid(x) * t


@partial(jax.jit, static_argnames=("order",))
def power(x: ArrayLike, order: int) -> Array:
    return jnp.power(x, order)


def newton(f: Callable[[Array], Array], x: Array, tolerance: float = 1e-5) -> Array:
    slope = jax.grad(f)

    def going_on(state: tuple[Array, Array]) -> Array:
        return (state[0] < 20) & (jnp.abs(f(state[1])) > tolerance)

    def improved(state: tuple[Array, Array]) -> tuple[Array, Array]:
        i, x = state
        return i + 1, x - f(x) / slope(x)

    return lax.while_loop(going_on, improved, (jnp.array(0), x))[1]


def derivatives() -> list[Array]:
    x = jnp.linspace(-1, 1, 5)
    y, pullback = jax.vjp(jnp.tanh, x)
    (cotangent,) = pullback(jnp.ones_like(y))
    _, tangent = jax.jvp(log1pexp, (x,), (jnp.ones(5),))
    hessian = jax.hessian(lambda v: jnp.sum(v**3))(x)
    jacobian = jax.jacfwd(lambda v: v * v)(x)
    (value, norm), slope = jax.value_and_grad(
        lambda v: (jnp.sum(v * v), jnp.linalg.norm(v)), has_aux=True
    )(x)
    per_example = jax.vmap(jax.grad(lambda w, v: jnp.vdot(w, v) ** 2), in_axes=(None, 0))
    clipped = jax.grad(lambda v: 100 * clip_gradient(v, 0.5))(2.0)
    root = newton(lambda v: v * v - 2, jnp.array(1.0))
    picked = lax.cond(x.sum() > 0, lambda v: v, lambda v: -v, x)
    folded = lax.fori_loop(0, 3, lambda i, total: total + i * x, jnp.zeros(5))
    branch = lax.switch(1, [jnp.sin, jnp.cos, lambda v: v], x)
    mapped = lax.map(lambda v: v + 1, x)
    safe = jax.checkpoint(lambda v: jnp.sin(jnp.sin(v)))(x)
    return [
        *[cotangent, tangent, hessian, jacobian, value, norm, slope, clipped, root, picked],
        *[per_example(x, jnp.ones((3, 5))), folded, branch, mapped, safe, power(x, order=3)],
    ]


# ------------------------------------------------------------ arrays


def arrays(dtype: DTypeLike = jnp.bfloat16) -> dict[str, Array]:
    x = jnp.arange(12, dtype=float).reshape(3, 4)
    y = x.at[0, 1:].set(0).at[:, ::2].add(jnp.ones((3, 2))).at[x > 10].multiply(2.0)
    rows, columns = jnp.nonzero(x > 5, size=4, fill_value=0)
    u, s, vh = jnp.linalg.svd(x, full_matrices=False)
    q, r = jnp.linalg.qr(x.T)
    values, vectors = jnp.linalg.eigh(x @ x.mT)
    spectrum = jnp.abs(jnp.fft.rfft(x, axis=-1)) ** 2
    mesh_x, mesh_y = jnp.meshgrid(jnp.linspace(0, 1, 3), jnp.linspace(0, 1, 4), indexing="ij")
    unique, counts = jnp.unique(jnp.array([1, 2, 2, 3]), return_counts=True)
    half = x.astype(dtype) if jnp.issubdtype(dtype, jnp.floating) else x
    from_numpy = jnp.asarray(np.ones((3, 4)), dtype="float32") + np.float32(1)
    quotient, rest = jnp.divmod(jnp.arange(6), 4)
    smallest = jnp.finfo(jnp.float32).tiny
    y = jnp.where(y > smallest, y, -y)
    x += 1
    x = 1 - x / 2**x
    if x.ndim == 2 and bool((x == y).any()):
        y = ~(y > 0) | (x[..., None].squeeze(-1) <= 0)
    return {
        "einsum": jnp.einsum("ij,kj->ik", x, x, preferred_element_type=jnp.float32),
        "places": x[rows, columns],
        "rebuilt": (u * s) @ vh + (q @ r).T,
        "spectral": values.min() + vectors.max(axis=0, keepdims=True),
        "solved": jnp.linalg.solve(jnp.eye(3) * 2, spectrum),
        "grid": jnp.stack([mesh_x.ravel(), mesh_y.ravel()], axis=-1),
        "counts": jnp.concatenate([unique, counts])[::-1],
        "half": jnp.pad(half, ((0, 1), (0, 0)), constant_values=1),
        "numpy": jnp.asarray(np.asarray(from_numpy)).sum(axis=(0, 1), dtype=jnp.float32),
        "sorted": jnp.sort(y, axis=0, descending=True)[jnp.argsort(x[:, 0])],
        "special": jax.scipy.special.logsumexp(x, axis=1),
        "density": jax.scipy.stats.norm.logpdf(x, loc=0.0, scale=jnp.float32(2)),
        "factor": jax.scipy.linalg.cholesky(jnp.eye(2), lower=True),
        "parts": sum(jnp.split(x, 2, axis=1), start=jnp.zeros(())),
        "chosen": jnp.select([x < 0, x > 1], [-x, x], default=0.0),
        "folded": jnp.add.reduce(quotient) + jnp.maximum.accumulate(rest)[-1],
        "gamma": random.gamma(random.key(3), 2.0, shape=(2,)) * jnp.float32(2),
        "segments": jax.ops.segment_sum(x[:, 0], jnp.array([0, 0, 1]), num_segments=2),
        "noise": random.uniform(random.PRNGKey(1), x.shape, minval=-1.0, maxval=1.0),
        "coins": random.bernoulli(random.key(2), p=0.3, shape=(4,)),
        "piece": lax.dynamic_slice(x, (0, 1), (2, 2)),
    }


def main() -> None:
    value = train()
    average, means = averages(jnp.arange(6.0).reshape(3, 2))
    assert average.name == "average" and means.shape == (3, 2)
    assert trees() and np.isfinite(value)
    assert all(isinstance(a, jax.Array) for a in derivatives())
    assert filtered(jnp.arange(6.0)).shape == () and orthogonal(jnp.eye(2)).shape == (2, 2)
    kept = [total_over_devices(jnp.ones(4)), checked_log(jnp.ones(3)), fitted(jnp.arange(4.0))]
    assert [a.shape for a in kept] == [(4,), (3,), (2,)]
    shapes = {name: (a.shape, a.dtype.name) for name, a in arrays().items()}
    assert jax.core.ShapedArray((3,), jnp.float32).shape == (3,)
    assert shapes["einsum"] == ((3, 3), "float32"), shapes
    print(jax.make_jaxpr(predict)([Layer(jnp.ones((2, 2)), jnp.ones(2))], jnp.ones((1, 2))))


if __name__ == "__main__":
    main()
