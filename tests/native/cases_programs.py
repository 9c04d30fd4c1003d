"""Cases of primitives that carry programs, call Python, or deal with random keys: equations as the
public functions write them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import calque
import calque.numpy as jnp
from calque import lax
from calque.core.jaxprs import Eqn
from calque.core.primitives import Primitive
from calque.core.trace import trace_to_jaxpr, typeof
from tests.native.cases import Case, accepted, cases_of, numbers, wild

F32, I32 = np.dtype("float32"), np.dtype("int32")
V = numbers(F32, 17)
M = numbers(F32, 5, 7)


@calque.custom_jvp
def soft(x: Any) -> Any:
    return jnp.tanh(x) * 2


soft.defjvp(lambda p, t: (soft(*p), t[0]))


@calque.custom_vjp
def hard(x: Any) -> Any:
    return jnp.sin(x) * x


hard.defvjp(lambda x: (hard(x), x), lambda r, g: (g * r,))


def counted(x: Any, n: Any) -> Any:
    return lax.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, s[1] * 0.5 + s[0]), (0, x))[1]


def bent(x: Any, n: Any) -> Any:
    return lax.fori_loop(0, n, lambda i, c: c * c * 0.1 + 0.5, x)


def swapped(z: Any) -> Any:
    return lax.fori_loop(0, 5, lambda i, z: lax.complex(z.imag, z.real) + 1, z)


def fibonacci(n: Any) -> Any:
    return lax.while_loop(lambda s: s[2] < n, lambda s: (s[1], s[0] + s[1], s[2] + 1), (0, 1, 0))[0]


FUNCTIONS: dict[str, Sequence[tuple[Callable[..., Any], Sequence[Any]]]] = {
    "jit": [(calque.jit(lambda x: jnp.sin(x) + 1), (V,)), (calque.jit(lambda x, y: [x @ y,
    x.sum(0)]), (M, M.T.copy()))],
    "scan": [
        (lambda x: lax.scan(lambda c, v: (c * 0.5 + v, c), np.float32(0), x), (V,)),
        (lambda x: lax.scan(lambda c, v: (c + v, c @ c), M[0], x, reverse=True), (M,)),
        (lambda x: lax.scan(lambda c, v: (c.at[v % 7].add(1.0), c.sum()), M[0], x), (numbers(I32,
        9),)),
        (lambda x: lax.scan(lambda c, v: (c, v * 2), (), x), (numbers(F32, 0, 3),)),
        (lambda x: lax.scan(lambda c, v: ((c[1], c[0] + v), c[0]), (M[0], M[1]), x), (M,)),
        (lambda x: lax.scan(lambda c, v: (jnp.tanh(c @ c.T @ c * 0.1) + v, None), numbers(F32, 3,
        3), x)[0], (numbers(F32, 4, 3, 3),)),
        (lambda x: lax.scan(lambda c, v: (c + 1, v), np.int32(0), x, length=5), (numbers(np.int8,
        5, 2),)),
        (lambda z: lax.scan(lambda c, v: (lax.complex(c.imag, c.real) * v, c),
        np.complex64(1 + 2j), z), (numbers(np.complex64, 6),)),
    ],
    "while": [
        (counted, (V, np.int32(4))),
        (counted, (V, np.int32(0))),
        (counted, (np.float32(3), np.int32(7))),
        (fibonacci, (np.int32(20),)),
        (lambda x: lax.while_loop(lambda s: jnp.max(jnp.abs(s)) > 0.5, lambda s: s * 0.7, x), (M,)),
        (lambda x: lax.while_loop(lambda s: s[1].sum() < 9, lambda s: (s[1] * 2, s[0] + 1), (x,
        x)), (np.zeros(3, np.float32),)),
    ],
    "while_back": [(calque.grad(lambda x, n: bent(x, n).sum()), (V, np.int32(4)))],
    "cond": [
        (lambda p, x: lax.cond(p, lambda x: jnp.sin(x), lambda x: x * 2, x), (np.bool_(True), V)),
        (lambda p, x: lax.cond(p, lambda x: jnp.sin(x), lambda x: x * 2, x), (np.bool_(False),
        np.float32(2))),
        *[(lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, lambda x: x], x), (np.int32(i),
        M)) for i in (-3, 0, 1, 2, 9)],
        (lambda p, x: lax.cond(p, lambda x: (x.T, x.sum()), lambda x: (x.T + 1, x.max()), x),
        (np.bool_(False), M)),
    ],
    "remat2": [(calque.checkpoint(lambda x: jnp.sin(x) * x), (V,))],
    "custom_jvp_call": [(soft, (V,))],
    "custom_vjp_call": [(hard, (V,))],
    "pure_callback": [(lambda x: calque.pure_callback(lambda x: np.sin(x),
    calque.ShapeDtypeStruct((17,), F32), x), (V,))],
    "random_bits": [(lambda k: calque.random.bits(k, s, d),
    (calque.random.key(3),)) for d in ("uint8", "uint16", "uint32") for s in ((), (7,), (5, 33),
    (0,), (130,))],
    "random_split": [(lambda k: calque.random.split(k, n), (calque.random.key(3),)) for n in (2,
    5, 33, (2, 3))],
    "random_fold_in": [(lambda k, n: calque.random.fold_in(k, n), (calque.random.key(3),
    np.uint32(n))) for n in (0, 1, 2**31)],
    "random_seed": [(lambda n: calque.random.key(n), (np.uint32(n),)) for n in (0, 7, 2**32 - 1)],
    "random_wrap": [(lambda n: calque.random.wrap_key_data(n), (wild(np.uint32, *s,
    2),)) for s in ((), (3,))],
    "random_unwrap": [(lambda k: calque.random.key_data(k),
    (calque.random.split(calque.random.key(1), n),)) for n in (1, 5)],
    "random_clone": [(lambda k: calque.random.clone(k), (calque.random.key(1),))],
}  # fmt: skip


def equations(fun: Callable[..., Any], args: Sequence[Any], name: str) -> list[Eqn]:
    """The equations of this primitive in the program of `fun`."""

    def flat(*xs: Any) -> list[Any]:
        return calque.tree_util.tree_leaves(fun(*xs))

    found = [
        e
        for e in trace_to_jaxpr(flat, [typeof(a) for a in args]).jaxpr.eqns
        if e.primitive.name == name
    ]
    assert found, f"no {name} in the program"
    return found


@cases_of(*FUNCTIONS)
def carried(p: Primitive) -> Iterator[Case]:
    """The first equation of the primitive, with operands made for it where the function's own are
    not all of them."""
    for fun, args in FUNCTIONS[p.name]:
        e = equations(fun, args, p.name)[0]
        given: list[Any] = [a for a in args]
        operands = []
        for v in e.invars:
            match = next(
                (
                    i
                    for i, a in enumerate(given)
                    if typeof(a).shape == v.aval.shape and typeof(a).dtype == v.aval.dtype
                ),
                None,
            )
            if match is not None:
                operands.append(given.pop(match))
            else:
                operands.append(
                    getattr(v, "val", None)
                    if hasattr(v, "val")
                    else numbers(v.aval.dtype, *v.aval.shape, low=0, high=1)
                )
        yield Case(p, tuple(operands), e.params, 64, lambda *a, **q: scales(p, a, q))


def scales(p: Primitive, args: Any, params: Any) -> Any:
    """One, or what is larger in any result: programs mix what they compute."""
    from_arrays = [np.asarray(calque.core.arrays.to_numpy(a)) for a in args]
    out = p.meaning(*from_arrays, **params)
    sizes = [
        np.ones(()) if np.asarray(o).dtype.names else np.asarray(1 + np.max(np.abs(o), initial=0))
        for o in (out if p.multiple_results else [out])
    ]
    return sizes if p.multiple_results else sizes[0]


@cases_of("rng_bit_generator")
def generators(p: Primitive) -> Iterator[Case]:
    for d in accepted(
        p, [(4,)], [np.dtype("uint32")], shape=(3,), dtype=np.dtype("uint32"), algorithm=1
    ):
        yield Case(p, (wild(d, 4),), {"shape": (5, 3), "dtype": np.dtype("uint32"), "algorithm": 1})
