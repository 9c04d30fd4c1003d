"""LSTM networks of several layers, one direction or both, whose weights are one vector as cuDNN has
it: for each layer and direction the matrices of the input and of the state, then the two biases of
each. Their rows are the gates i, f, g, o."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from calque import lax, nn, random
from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.transforms.functions.vmap import vmap

__all__ = [
    "get_num_params_in_lstm", "init_lstm_weight", "lstm", "lstm_ref", "swap_lstm_gates",
    "unpack_lstm_weights",
]  # fmt: skip


def _shapes(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Iterator[tuple[int, ...]]:
    """The shapes of the parts of the vector, in order."""
    directions = 2 if bidirectional else 1
    for layer in range(num_layers):
        columns = directions * hidden_size if layer else input_size
        for _ in range(directions):
            yield 4 * hidden_size, columns
            yield 4 * hidden_size, hidden_size
    for _ in range(2 * num_layers * directions):
        yield (4 * hidden_size,)


def _parts(weights: Array, *sizes: Any) -> list[Array]:
    count = get_num_params_in_lstm(*sizes)
    if weights.shape != (count,):
        raise ValueError(
            f"weights: an LSTM of this size has {count} parameters, got an array of shape"
            f" {weights.shape}"
        )
    parts, start = [], 0
    for shape in _shapes(*sizes):
        end = start + math.prod(shape)
        parts.append(weights[start:end].reshape(shape))
        start = end
    return parts


def get_num_params_in_lstm(
    input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> int:
    """Gives the number of parameters of a network.

    Args:
        input_size: The number of features of the input.
        hidden_size: The number of units of each layer and direction.
        num_layers: How many layers there are.
        bidirectional: Whether each layer reads the sequence in both directions.

    Returns:
        An int.

    >>> from calque.experimental import rnn
    >>> rnn.get_num_params_in_lstm(3, 2, 1, False)
    56"""
    return sum(map(math.prod, _shapes(input_size, hidden_size, num_layers, bidirectional)))


def init_lstm_weight(
    rng: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Gives random weights: uniform up to the root of 1 / hidden_size, either sign.

    Args:
        rng: A key.
        input_size: The number of features of the input.
        hidden_size: The number of units of each layer and direction.
        num_layers: How many layers there are.
        bidirectional: Whether each layer reads the sequence in both directions.

    Returns:
        A vector of float32.

    >>> from calque.experimental import rnn
    >>> rnn.init_lstm_weight(jax.random.key(0), 3, 2, 1, False).shape
    (56,)"""
    count = get_num_params_in_lstm(input_size, hidden_size, num_layers, bidirectional)
    bound = math.sqrt(1 / hidden_size)
    return random.uniform(rng, (count,), jnp.float32, -bound, bound)


def unpack_lstm_weights(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> tuple[dict[int, Array], dict[int, Array], dict[int, Array], dict[int, Array]]:
    """Gives the matrices and biases that a vector of weights holds.

    Args:
        weights: The vector.
        input_size: The number of features of the input.
        hidden_size: The number of units of each layer and direction.
        num_layers: How many layers there are.
        bidirectional: Whether each layer reads the sequence in both directions.

    Returns:
        Four dicts: matrices of the input, matrices of the state, and the biases beside each. Their
        keys number the layers; with two directions, the first and the second of each layer.

    >>> from calque.experimental import rnn
    >>> w_ih, w_hh, b_ih, b_hh = rnn.unpack_lstm_weights(jnp.zeros(56), 3, 2, 1, False)
    >>> w_ih[0].shape, w_hh[0].shape, b_ih[0].shape
    ((8, 3), (8, 2), (8,))"""
    parts = _parts(jnp.asarray(weights), input_size, hidden_size, num_layers, bidirectional)
    half = len(parts) // 2
    groups = parts[:half:2], parts[1:half:2], parts[half::2], parts[half + 1 :: 2]
    w_ih, w_hh, b_ih, b_hh = (dict(enumerate(group)) for group in groups)
    return w_ih, w_hh, b_ih, b_hh


def swap_lstm_gates(
    weights: Array, input_size: int, hidden_size: int, num_layers: int, bidirectional: bool
) -> Array:
    """Exchanges the gates g and o in all matrices and biases, for libraries that order them so.

    Args:
        weights: The vector.
        input_size: The number of features of the input.
        hidden_size: The number of units of each layer and direction.
        num_layers: How many layers there are.
        bidirectional: Whether each layer reads the sequence in both directions.

    Returns:
        A vector of the same length.

    >>> from calque.experimental import rnn
    >>> rnn.swap_lstm_gates(jnp.arange(16.0), 1, 1, 1, False)
    Array([ 0.,  1.,  3.,  2.,  4.,  5.,  7.,  6.,  8.,  9., 11., 10., 12.,
           13., 15., 14.], dtype=float32)"""
    parts = _parts(jnp.asarray(weights), input_size, hidden_size, num_layers, bidirectional)
    swapped = []
    for part in parts:
        i, f, g, o = jnp.split(part, 4)
        swapped += [x.ravel() for x in (i, f, o, g)]
    return jnp.concatenate(swapped)


def lstm(
    x: Array,
    h_0: Array,
    c_0: Array,
    weights: Array,
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
    precision: Any = None,
) -> tuple[Array, Array, Array]:
    """Runs a network over a batch of sequences.

    Args:
        x: The sequences, (batch, longest, input_size).
        h_0: The first hidden states, (layers * directions, batch, hidden_size).
        c_0: The first cell states, likewise.
        weights: All weights, one vector.
        seq_lengths: How long each sequence is, int32 (batch,). What is behind the end of one is
            not read, and zero in the result.
        input_size: The number of features of the input.
        hidden_size: The number of units of each layer and direction.
        num_layers: How many layers there are.
        dropout: Must be 0: which units fall out is a secret of cuDNN.
        bidirectional: Whether each layer reads the sequence in both directions.
        precision: Of the products, as `lax.dot` takes it.

    Returns:
        The outputs of the last layer, (batch, longest, directions * hidden_size), and the last
        hidden and cell states.

    Differs from JAX:
        It runs on every device (JAX's needs cuDNN), and derivatives are those of the program.

    >>> from calque.experimental import rnn
    >>> state = jnp.zeros((1, 1, 2))
    >>> y, h, c = rnn.lstm(jnp.ones((1, 4, 3)), state, state, jnp.zeros(56),
    ...                    jnp.array([4]), 3, 2, 1, 0.0, False)
    >>> y.shape, h.shape
    ((1, 4, 2), (1, 1, 2))"""
    sizes = input_size, hidden_size, num_layers, bidirectional
    parts = unpack_lstm_weights(weights, *sizes)
    return _network(x, h_0, c_0, parts, seq_lengths, num_layers, dropout, bidirectional, precision)


def lstm_ref(
    x: Array,
    h_0: Array,
    c_0: Array,
    W_ih: dict[int, Array],
    W_hh: dict[int, Array],
    b_ih: dict[int, Array],
    b_hh: dict[int, Array],
    seq_lengths: Array,
    input_size: int,
    hidden_size: int,
    num_layers: int,
    dropout: float,
    bidirectional: bool,
) -> tuple[Array, Array, Array]:
    """Runs a network whose weights are given one by one, as `unpack_lstm_weights` gives them.

    Args:
        x: The sequences, (batch, longest, input_size).
        h_0: The first hidden states, (layers * directions, batch, hidden_size).
        c_0: The first cell states, likewise.
        W_ih: The matrices of the input.
        W_hh: The matrices of the state.
        b_ih: The biases beside `W_ih`.
        b_hh: The biases beside `W_hh`.
        seq_lengths: How long each sequence is, int32 (batch,).
        input_size: The number of features of the input.
        hidden_size: The number of units of each layer and direction.
        num_layers: How many layers there are.
        dropout: Must be 0.
        bidirectional: Whether each layer reads the sequence in both directions.

    Returns:
        The outputs of the last layer and the last hidden and cell states, as of `lstm`.

    >>> from calque.experimental import rnn
    >>> parts, state = rnn.unpack_lstm_weights(jnp.zeros(56), 3, 2, 1, False), jnp.zeros((1, 1, 2))
    >>> y, h, c = rnn.lstm_ref(jnp.ones((1, 4, 3)), state, state, *parts,
    ...                        jnp.array([4]), 3, 2, 1, 0.0, False)
    >>> y.shape
    (1, 4, 2)"""
    parts = W_ih, W_hh, b_ih, b_hh
    if x.shape[-1] != input_size or h_0.shape[-1] != hidden_size:
        raise ValueError(
            f"lstm_ref: x of shape {x.shape} and h_0 of shape {h_0.shape} do not fit"
            f" input_size={input_size} and hidden_size={hidden_size}"
        )
    return _network(x, h_0, c_0, parts, seq_lengths, num_layers, dropout, bidirectional, None)


def _network(
    x: Array, h_0: Array, c_0: Array, parts: Any, lengths: Array, num_layers: int, dropout: float,
    bidirectional: bool, precision: Any,
) -> tuple[Array, Array, Array]:  # fmt: skip
    if lengths.dtype != jnp.int32:
        raise NotImplementedError(f"`seq_lengths` can only be int32, got {lengths.dtype}")
    if dropout != 0.0:
        raise NotImplementedError(
            f"dropout={dropout}: which units fall out is a secret of cuDNN. Pass 0.0, and drop"
            " features of the input with random.bernoulli"
        )
    directions = 2 if bidirectional else 1
    last = []
    sequence = x.transpose(1, 0, 2)
    inside = lengths[None, :] > jnp.arange(sequence.shape[0], dtype=jnp.int32)[:, None]
    for layer in range(num_layers):
        outs = []
        for direction in range(directions):
            k = layer * directions + direction
            weights = [part[k] for part in parts]
            given = _reversed(sequence, lengths) if direction else sequence
            out, h, c = _layer(given, h_0[k], c_0[k], weights, lengths, inside, precision)
            outs.append(_reversed(out, lengths) if direction else out)
            last.append((h, c))
        sequence = jnp.concatenate(outs, axis=-1)
    hs, cs = zip(*last)
    return sequence.transpose(1, 0, 2), jnp.stack(hs), jnp.stack(cs)


def _layer(
    sequence: Array, h: Array, c: Array, weights: list[Array], lengths: Array, inside: Array,
    precision: Any,
) -> tuple[Array, Array, Array]:  # fmt: skip
    """One layer in one direction: what it gives, and the states at the ends of the sequences."""
    w_ih, w_hh, b_ih, b_hh = weights
    of_inputs = jnp.matmul(sequence, w_ih.T, precision=precision) + (b_ih + b_hh)

    def step(carry: Any, of_input: Array) -> Any:
        h, c = carry
        gates = of_input + jnp.matmul(h, w_hh.T, precision=precision)
        i, f, g, o = jnp.split(gates, 4, axis=-1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), (h, c)

    _, (hs, cs) = lax.scan(step, (h, c), of_inputs)
    ends = lengths - 1, jnp.arange(lengths.shape[0])
    return jnp.where(inside[..., None], hs, 0), hs[ends], cs[ends]


def _reversed(sequence: Array, lengths: Array) -> Array:
    """Each sequence backwards, what is behind its end staying behind."""
    behind = sequence.shape[0] - lengths
    return vmap(lambda xs, n: jnp.roll(xs, n, axis=0), (1, 0), 1)(sequence, behind)[::-1]


_guards.guard_public(globals())
