"""Random bits and keys: Threefry-2x32 and Philox-4x32 as plain operations, with the same bits as
`ops/random/`."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from calque.core.config import config
from calque.core.jaxprs import Eqn
from calque.ops.random.bits import RandomAlgorithm
from calque.ops.random.keys import drawing_as
from calque.ops.random.threefry import PARITY, ROTATIONS
from calque.xla.lower.callbacks import host_call
from calque.xla.lower.keys import under
from calque.xla.lower.rules import Builder, equation_rule, rule
from calque.xla.lower.sizes import is_free
from calque.xla.text.tree import Function, Region, Value
from calque.xla.text.types import Tensor, signature

U32, U64 = np.dtype("uint32"), np.dtype("uint64")
Words = list[Value]
M0, M1, W0, W1 = 0xD2511F53, 0xCD9E8D57, 0x9E3779B9, 0xBB67AE85

# ---------------------------------------------------------------- threefry


@rule("threefry2x32")
def threefry2x32(b: Builder, outs: list[Tensor], *xs: Value) -> list[Value]:
    return block(b, *[b.spread(x, outs[0].shape) for x in xs])


def block(b: Builder, k0: Value, k1: Value, x0: Value, x1: Value) -> Words:
    """Twenty rounds on the counters, of one shape: a function of the module; of free sizes, which
    the main one alone knows, where they are needed."""
    if is_free(k0.shape):
        return _rounds(b, k0, k1, x0, x1)
    key = ("threefry2x32", k0.shape)
    function = b.state.functions.get(key)
    if function is None:
        args = [Value(k0.type) for _ in range(4)]
        name = b.state.unique_name("threefry2x32")
        function = Function(name, Region(args), [k0.type, k0.type])
        b.state.functions[key] = function
        b.state.module.functions.append(function)
        inner = Builder(b.state, function.body)
        inner.path, inner.location = b.path, b.location
        inner.returns(*_rounds(inner, *args))
    call = "func.call" if b.nested else "call"
    types = signature([k0.type] * 4, function.results)
    parts: list[Any] = [f"{call} @{function.name}(", k0, ", ", k1, ", ", x0, ", ", x1]
    return b.emit(function.results, *parts, f") : {types}")


def _rounds(b: Builder, k0: Value, k1: Value, x0: Value, x1: Value) -> Words:
    def number(v: int) -> Value:
        return b.filled(v, k0.tensor)

    keys = (k0, k1, b.binary("xor", b.binary("xor", k0, k1), number(PARITY)))
    x0, x1 = b.binary("add", x0, k0), b.binary("add", x1, k1)
    for group in range(5):
        for r in ROTATIONS[group % 2]:
            x0 = b.binary("add", x0, x1)
            left = b.binary("shift_left", x1, number(r))
            right = b.binary("shift_right_logical", x1, number(32 - r))
            x1 = b.binary("xor", b.binary("or", left, right), x0)
        x0 = b.binary("add", x0, keys[(group + 1) % 3])
        x1 = b.binary("add", b.binary("add", x1, keys[(group + 2) % 3]), number(group + 1))
    return [x0, x1]


def words_of(b: Builder, key: Value) -> Words:
    """The words of keys: the last dimension, taken apart."""
    axis = key.ndim - 1
    return [b.reshape(b.along(key, axis, i, i + 1), key.shape[:-1]) for i in range(key.shape[-1])]


def stacked(b: Builder, words: Sequence[Value]) -> Value:
    """Words as the last dimension of keys."""
    return b.concatenate([b.reshape(w, (*w.shape, 1)) for w in words], words[0].ndim)


def over(b: Builder, x: Value, shape: Sequence[int]) -> Value:
    """An array for each element of `x`: (*x.shape, *shape)."""
    out = x.tensor.with_shape((*x.shape, *shape))
    return b.broadcast(x, out, range(x.ndim)) if shape else x


def counters(b: Builder, shape: Sequence[int]) -> Words:
    """The row-major index of every element, as high and low words."""
    size = math.prod(shape)
    flat = b.reshape(b.iota(U64, (size,), 0), shape)
    high = b.binary("shift_right_logical", flat, b.filled(32, flat.tensor))
    return [b.convert(high, U32), b.convert(flat, U32)]


def counted_blocks(b: Builder, key: Value, shape: Sequence[int]) -> Words:
    """A block for each key and each element of `shape`."""
    k0, k1 = [over(b, w, shape) for w in words_of(b, key)]
    high, low = [under(b, w, key.shape[:-1]) for w in counters(b, shape)]
    return block(b, k0, k1, high, low)


def sequence(b: Builder, key: Value, n: int) -> Value:
    """`n` words for each key: the counters 0 to n-1, encrypted in pairs of the first half with the
    second."""
    half = (n + 1) // 2
    index = np.arange(2 * half, dtype=np.uint32)
    if n % 2:
        index[-1] = 0
    lead = key.shape[:-1]
    pair = [under(b, b.constant(part), lead) for part in (index[:half], index[half:])]
    k0, k1 = [over(b, w, (half,)) for w in words_of(b, key)]
    return b.along(b.concatenate(block(b, k0, k1, *pair), len(lead)), len(lead), 0, n)


def split_threefry(b: Builder, key: Value, shape: Sequence[int]) -> Value:
    if config.threefry_partitionable:
        return stacked(b, counted_blocks(b, key, shape))
    refuse_free(shape)
    return b.reshape(sequence(b, key, 2 * math.prod(shape)), (*key.shape[:-1], *shape, 2))


def bits_threefry(b: Builder, key: Value, out: Tensor, shape: Sequence[int], width: int) -> Value:
    if 0 in out.shape:
        return b.filled(0, out)
    if config.threefry_partitionable:
        first, second = counted_blocks(b, key, shape)
        if width == 64:
            return joined(b, first, second)
        return b.convert(b.binary("xor", first, second), out.dtype)
    refuse_free(key.shape, shape)
    size, lead = math.prod(shape), key.shape[:-1]
    words = sequence(b, key, -(-width * size // 32))
    axis = len(lead)
    if width == 64:
        high, low = b.along(words, axis, 0, size), b.along(words, axis, size, 2 * size)
        return b.reshape(joined(b, high, low), out.shape)
    if width < 32:  # the parts of a word, the low one first
        each = 32 // width
        wide = out.with_shape((*words.shape, each))
        words = b.bitcast(words, wide)
        words = b.along(b.reshape(words, (*lead, words.shape[axis] * each)), axis, 0, size)
    return b.reshape(words, out.shape)


def refuse_free(*shapes: Sequence[Any]) -> None:
    """An error where as many numbers as a free size are asked of a generator that counts in another
    way."""
    if is_free(*shapes):
        raise NotImplementedError(
            "export: random numbers of a free size come from keys of threefry2x32 with"
            " jax_threefry_partitionable on; those of other generators have fixed sizes"
        )


def joined(b: Builder, high: Value, low: Value) -> Value:
    """64 bits from two words."""
    wide = [b.convert(w, U64) for w in (high, low)]
    shifted = b.binary("shift_left", wide[0], b.filled(32, wide[0].tensor))
    return b.binary("or", shifted, wide[1])


def fold_threefry(b: Builder, key: Value, data: Value) -> Value:
    k0, k1 = words_of(b, key)
    return stacked(b, block(b, k0, k1, b.filled(0, data.tensor), data))


def seed_threefry(b: Builder, seeds: Value) -> Value:
    """The high and the low word of an integer."""
    if seeds.dtype.itemsize == 8:
        wide = b.convert(seeds, U64)
        high = b.convert(b.binary("shift_right_logical", wide, b.filled(32, wide.tensor)), U32)
        return stacked(b, [high, b.convert(wide, U32)])
    low = b.convert(seeds, U32)
    return stacked(b, [b.filled(0, low.tensor), low])


# ---------------------------------------------------------------- philox


def philox_blocks(b: Builder, key: Value, n: int, step: int = 1, first: int = 0) -> Words:
    """Four words for each of `n` blocks of each key, every `step`-th one from the `first` on: words
    of shape (*lead, n)."""
    lead = key.shape[:-1]
    wide = [b.convert(over(b, w, (n,)), U64) for w in words_of(b, key)]
    tensor = wide[0].tensor
    half, mask = b.filled(32, tensor), b.filled(0xFFFFFFFF, tensor)

    def upper(v: Value) -> Value:
        return b.binary("shift_right_logical", v, half)

    def lower(v: Value) -> Value:
        return b.binary("and", v, mask)

    low = b.binary("or", wide[2], b.binary("shift_left", wide[3], half))
    high = b.binary("or", wide[0], b.binary("shift_left", wide[1], half))
    index = under(b, b.constant(first + step * np.arange(n, dtype=np.uint64)), lead)
    counter = b.binary("add", low, index)
    carried = b.convert(b.compare("LT", counter, low), U64)
    high = b.binary("add", high, carried)
    x = [lower(counter), upper(counter), lower(high), upper(high)]
    for i in range(10):
        p0 = b.binary("multiply", b.filled(M0, tensor), x[0])
        p1 = b.binary("multiply", b.filled(M1, tensor), x[2])
        a = lower(b.binary("add", wide[0], b.filled(i * W0 & 0xFFFFFFFF, tensor)))
        c = lower(b.binary("add", wide[1], b.filled(i * W1 & 0xFFFFFFFF, tensor)))
        x = [
            b.binary("xor", b.binary("xor", upper(p1), x[1]), a),
            lower(p1),
            b.binary("xor", b.binary("xor", upper(p0), x[3]), c),
            lower(p0),
        ]
    return [b.convert(w, U32) for w in x]


def philox_bits(b: Builder, key: Value, out: Tensor, shape: Sequence[int], width: int) -> Value:
    """Random unsigned integers of `shape` for each key."""
    refuse_free(key.shape, shape)
    size, lead = math.prod(shape), key.shape[:-1]
    if 0 in out.shape:
        return b.filled(0, out)
    each = 2 if width == 64 else 1
    n = -(-size * each // 4)
    words = b.reshape(stacked(b, philox_blocks(b, key, n)), (*lead, 4 * n))
    words = b.along(words, len(lead), 0, size * each)
    if width == 64:
        low, high = words_of(b, b.reshape(words, (*lead, size, 2)))
        return b.reshape(joined(b, high, low), out.shape)
    return b.reshape(b.convert(words, out.dtype), out.shape)


def philox_advanced(b: Builder, key: Value, n: int) -> Value:
    """Keys after `n` blocks: the low half of the counter moved on."""
    words = words_of(b, key)
    low = b.binary(
        "add", joined(b, words[3], words[2]), b.filled(n, words[0].tensor.with_dtype(U64))
    )
    high = b.binary("shift_right_logical", low, b.filled(32, low.tensor))
    return stacked(b, [words[0], words[1], b.convert(low, U32), b.convert(high, U32)])


# ---------------------------------------------------------------- keys of all kinds


def halves(b: Builder, key: Value) -> Value:
    return b.reshape(key, (*key.shape[:-1], 2, 2))


@rule("random_wrap", "random_unwrap", "random_clone")
def same_words(b: Builder, out: Tensor, x: Value, **_: Any) -> Value:
    return x


KNOWN: Final = ("threefry2x32", "rbg", "unsafe_rbg")


def impl_of(e: Eqn) -> str:
    """The algorithm of the keys that an equation reads."""
    return str(e.invars[0].aval.dtype.impl.field)


@equation_rule("random_seed")
def random_seed(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    if e.params["impl"].field not in KNOWN:
        return host_call(b, e, outs, args)
    half = seed_threefry(b, args[0])
    if e.params["impl"].field == "threefry2x32":
        return [half]
    return [b.concatenate([half, half], half.ndim - 1)]


@equation_rule("random_bits")
def random_bits(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    if impl_of(e) not in KNOWN:
        return host_call(b, e, outs, args)
    bits = bits_threefry if impl_of(e) == "threefry2x32" else philox_bits
    with drawing_as(e.params["partitionable"]):
        return [bits(b, args[0], outs[0], e.params["shape"], e.params["bit_width"])]


@equation_rule("random_split")
def random_split(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    if impl_of(e) not in KNOWN:
        return host_call(b, e, outs, args)
    if 0 in outs[0].shape:
        return [b.filled(0, outs[0])]
    split = {"threefry2x32": split_threefry, "rbg": split_halves}.get(impl_of(e), split_fast)
    with drawing_as(e.params["partitionable"]):
        return [split(b, args[0], e.params["shape"])]


@equation_rule("random_fold_in")
def random_fold_in(b: Builder, e: Eqn, outs: Sequence[Tensor], args: list[Value]) -> list[Value]:
    if impl_of(e) not in KNOWN:
        return host_call(b, e, outs, args)
    key, data = args
    shape = outs[0].shape[:-1]
    if key.shape != outs[0].shape:
        key = under(b, key, shape)
    fold = {"threefry2x32": fold_threefry, "rbg": fold_halves}.get(impl_of(e), fold_fast)
    return [fold(b, key, b.spread(data, shape))]


def split_halves(b: Builder, key: Value, shape: Sequence[int]) -> Value:
    new = split_threefry(b, halves(b, key), shape)  # (..., 2, *shape, 2)
    lead = key.ndim - 1
    order = [*range(lead), *range(lead + 1, new.ndim - 1), lead, new.ndim - 1]
    return b.reshape(b.transpose(new, order), (*key.shape[:-1], *shape, 4))


def split_fast(b: Builder, key: Value, shape: Sequence[int]) -> Value:
    refuse_free(key.shape, shape)
    words = philox_blocks(b, key, math.prod(shape), step=10)
    return b.reshape(stacked(b, words), (*key.shape[:-1], *shape, 4))


def fold_halves(b: Builder, key: Value, data: Value) -> Value:
    both = over(b, data, (2,))
    return b.reshape(fold_threefry(b, halves(b, key), both), key.shape)


def fold_fast(b: Builder, key: Value, data: Value) -> Value:
    refuse_free(key.shape)
    half = seed_threefry(b, data)
    seeded = b.concatenate([half, half], half.ndim - 1)
    ninth = stacked(b, philox_blocks(b, seeded, 1, first=9))
    return b.binary("xor", key, b.reshape(ninth, key.shape))


@rule("rng_uniform")
def rng_uniform(b: Builder, out: Tensor, low: Value, high: Value, *, shape: Sequence[int]) -> Value:
    sizes = b.constant(np.array(shape, np.int64))
    types = signature([low.type, high.type, sizes.type], [out])
    parts: list[Any] = ["stablehlo.rng ", low, ", ", high, ", ", sizes]
    return b.one(out, *parts, f", distribution = UNIFORM : {types}")  # type: ignore[no-any-return]


@rule("rng_bit_generator")
def rng_bit_generator(
    b: Builder,
    outs: list[Tensor],
    key: Value,
    *,
    shape: Sequence[int],
    dtype: Any,
    algorithm: Any,
    out_sharding: Any = None,
) -> list[Value]:
    """The generator of XLA for one state; states of a batch by plain operations, or one by one."""
    words = key
    if key.dtype == U64:
        words = b.bitcast(key, Tensor((*key.shape, 2), U32))
        words = b.reshape(words, (*key.shape[:-1], 4))
    if key.ndim == 1:
        new, bits = _generated(b, words, outs[1], algorithm)
    elif algorithm == RandomAlgorithm.RNG_THREE_FRY:
        new, bits = _one_by_one(b, words, outs[1], shape, algorithm)
    else:
        width = 8 * outs[1].dtype.itemsize
        bits = philox_bits(b, words, outs[1], shape, width)
        n = -(-math.prod(shape) * (2 if width == 64 else 1) // 4)
        new = philox_advanced(b, words, n)
    if key.dtype == U64:
        pairs = b.reshape(new, (*key.shape, 2))
        new = b.bitcast(pairs, key.tensor)
    return [new, bits]


def _generated(b: Builder, words: Value, out: Tensor, algorithm: Any) -> Words:
    """The operation of XLA; what it makes of narrow types are the low bits of words."""
    name = "THREE_FRY" if algorithm == RandomAlgorithm.RNG_THREE_FRY else "PHILOX"
    state = Tensor((2,), U64)
    pairs = b.bitcast(b.reshape(words, (2, 2)), state)
    made = out if out.dtype.itemsize >= 4 else out.with_dtype(U32)
    types = signature([state], [state, made])
    new, bits = b.emit(
        [state, made],
        "stablehlo.rng_bit_generator ",
        pairs,
        f", algorithm = {name} : {types}",
        hints=["output_state", "output"],
    )
    back = b.bitcast(new, Tensor((2, 2), U32))
    return [b.reshape(back, (4,)), b.convert(bits, out.dtype)]


def _one_by_one(
    b: Builder, words: Value, out: Tensor, shape: Sequence[int], algorithm: Any
) -> Words:
    lead = words.shape[:-1]
    flat = b.reshape(words, (math.prod(lead), 4))
    each = out.with_shape(shape)
    rows = [
        _generated(b, b.reshape(b.along(flat, 0, i, i + 1), (4,)), each, algorithm)
        for i in range(flat.shape[0])
    ]
    if not rows:
        return [words, b.filled(0, out)]
    new = b.concatenate([b.reshape(k, (1, 4)) for k, _ in rows], 0)
    bits = b.concatenate([b.reshape(v, (1, *shape)) for _, v in rows], 0)
    return [b.reshape(new, words.shape), b.reshape(bits, out.shape)]
