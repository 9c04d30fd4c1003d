"""Mistakes. Above each stands `#!` and a part of what a type checker must say of it; of mypy before
and of pyright after a bar, where their words differ. Nothing else in this file may be reported. It
is read by checkers, never run."""

from functools import partial

import numpy as np

import calque as jax
import calque.numpy as jnp
from calque import Array, lax, nn, random
from calque.scipy import linalg, special, stats

x = jnp.ones(3)
key = random.key(0)


# ------------------------------------------------------------ names

#! sinn
jnp.sinn(x)
#! invert
jnp.linalg.invert(x)
#! fftt
jnp.fft.fftt(x)
#! float33
jnp.float33
#! gradd
jax.gradd(jnp.sin)
#! mapp
jax.tree.mapp(jnp.sin, x)
#! rely
jax.nn.rely(x)
#! scam
lax.scam
#! normall
random.normall(key, (3,))
#! gamaln
special.gamaln(x)
#! summ
x.summ()
#! sett
x.at[0].sett(1.0)
#! shapes
x.shapes

# ------------------------------------------------------------ keywords

#! axs
jnp.sum(x, axs=0)
#! dype
jnp.zeros((2,), dype=float)
#! precison
jnp.einsum("i,i->", x, x, precison="high")
#! number | No overloads
jnp.linspace(0, 1, number=5)
#! ordr
x.reshape(2, ordr="F")
#! mod
x.at[0].add(1.0, mod="drop")
#! shpe
random.normal(key, shpe=(2,))
#! scle
stats.norm.pdf(x, scle=2)
#! lowr
linalg.cholesky(jnp.eye(2), lowr=True)
#! No overload variant | No overloads
lax.scan(lambda c, v: (c, v), x, x, lenght=3)
#! in_axs
jax.vmap(jnp.sin, in_axs=0)
#! No overload variant | No overloads
jax.jit(jnp.sin, static_argnum=0)
#! No overload variant | No overloads
jax.grad(jnp.sin, argnum=1)

# ------------------------------------------------------------ how many

#! Too many | Expected 1
jnp.sin(x, x)
#! overload variants | No overloads
jnp.where()
#! Missing positional argument "b" | "b"
jnp.dot(x)
#! Too many | Expected 1
nn.relu(x, 2)
#! Missing positional argument | missing
stats.beta.pdf(x, 1)
#! Missing positional argument "values" | "values"
x.at[0].set()
#! Missing positional argument "y" | "y"
lax.add(x)

# ------------------------------------------------------------ types

#! incompatible type "str" | "Literal['x']" is not assignable
jnp.sin("x")
#! incompatible type "str" | "list[Array | str]"
jnp.concatenate([x, "y"])
#! incompatible type "None" | "None"
jnp.vdot(x, None)
#! incompatible type "str" | "Literal['x']"
lax.exp("x")
#! incompatible type "int" | "Literal[2]"
lax.dynamic_slice(x, (0,), 2)
#! Unsupported operand types | Operator "+" not supported
x + "y"
#! indexed assignment | __setitem__
x[0] = 1.0
#! __delitem__ | __delitem__
del x[0]
#! read-only | shape
x.shape = (3, 1)
#! Incompatible types in assignment | "int" is not assignable to "str"
length: str = x.ndim
#! Incompatible types in assignment | "Array" is not assignable
total: np.ndarray = jnp.sum(x)
#! incompatible type "str" | "Literal['2']"
random.split(key, "2")

# ------------------------------------------------------------ functions of functions


@jax.jit
def scaled(v: Array, *, by: float = 2.0) -> Array:
    return v * by


@partial(jax.jit, static_argnames="n")
def repeated(v: Array, n: int) -> Array:
    return jnp.tile(v, n)


@jax.custom_vjp
def clipped(v: Array, limit: float) -> Array:
    return jnp.clip(v, -limit, limit)


def loss(weights: dict[str, Array], v: Array) -> Array:
    return jnp.sum(weights["w"] * v)


def step(total: Array, v: Array) -> tuple[Array, Array]:
    return total + v, total


def rootless(v: Array) -> str:
    return str(v)


class Model:
    @jax.jit
    def scaled(self, v: Array, by: float = 2.0) -> Array:
        return v * by

    @jax.jit(static_argnums=0)
    def repeated(self, v: Array, n: int) -> Array:
        return jnp.tile(v, n)


weights = {"w": x}
#! factor
scaled(x, factor=3.0)
#! Missing positional argument "v" | "v"
scaled()
#! incompatible type "str" | "Literal['x']"
scaled("x")
#! lwer
scaled.lwer(x)
#! summ
scaled(x).summ()
#! overload variants | No overloads
Model().scaled()
#! No overload variant | Literal['x']
Model().scaled(x, by="x")
#! No overload variant | No overloads
Model().repeated(x, 2, 3, 4)
#! No overload variant | No overloads
Model().repeated(x, m=2)
#! summ
Model().scaled(x).summ()
#! Missing positional argument "limit" | "limit"
clipped(x)
#! defvpj
clipped.defvpj(scaled, scaled)
#! has no attribute "sum" | "sum"
jax.grad(loss)(weights, x).sum()
#! Too few arguments | "v"
jax.grad(loss)(weights)
#! incompatible type "str" | "Literal['x']"
jax.value_and_grad(loss)(weights, "x")
#! Too few arguments | "v"
jax.vmap(step)(x)
#! Too many | Expected 1
jax.vmap(jnp.sin)(x, x)
#! Incompatible types in assignment | "Array" is not assignable to "str"
carry: str = lax.scan(step, x, x)[0]
#! No overload variant | No overloads
lax.fori_loop(0, 3, step)
#! incompatible type | No overloads
lax.while_loop(rootless, jnp.sin, x)
#! No overload variant | No overloads
jax.jit("f")
