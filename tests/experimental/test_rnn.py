"""LSTM networks, against one written with NumPy."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque import random
from calque.experimental import rnn


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def one_direction(xs, h, c, w_ih, w_hh, b_ih, b_hh):
    """One sequence, (time, features)."""
    outs = []
    for x in xs:
        i, f, g, o = np.split(w_ih @ x + b_ih + w_hh @ h + b_hh, 4)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        outs.append(h)
    return np.array(outs), h, c


def expected(x, h_0, c_0, parts, lengths, layers, directions):
    longest, batch = x.shape[1], x.shape[0]
    y = np.zeros((batch, longest, directions * h_0.shape[-1]))
    h_n, c_n = np.zeros(h_0.shape), np.zeros(c_0.shape)
    for b in range(batch):
        xs = x[b, : lengths[b]]
        for layer in range(layers):
            outs = []
            for d in range(directions):
                k = layer * directions + d
                w = [p[k] for p in parts]
                out, h_n[k, b], c_n[k, b] = one_direction(
                    xs[::-1] if d else xs, h_0[k, b], c_0[k, b], *w
                )
                outs.append(out[::-1] if d else out)
            xs = np.concatenate(outs, axis=-1)
        y[b, : lengths[b]] = xs
    return y, h_n, c_n


def network(layers, bidirectional, batch=3, longest=5, features=4, hidden=3):
    keys = random.split(random.key(0), 4)
    states = (layers * (1 + bidirectional), batch, hidden)
    x = random.normal(keys[0], (batch, longest, features))
    h, c = random.normal(keys[1], states), random.normal(keys[2], states)
    sizes = features, hidden, layers, bidirectional
    return x, h, c, rnn.init_lstm_weight(keys[3], *sizes), sizes


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_sequences_of_different_lengths(layers, bidirectional):
    x, h, c, weights, sizes = network(layers, bidirectional)
    lengths = jnp.array([5, 2, 4], jnp.int32)
    args = (*sizes[:3], 0.0, bidirectional)
    found = rnn.lstm(x, h, c, weights, lengths, *args)
    parts = rnn.unpack_lstm_weights(weights, *sizes)
    arrays = [{k: np.asarray(v, np.float64) for k, v in p.items()} for p in parts]
    wanted = expected(
        *(np.asarray(v, np.float64) for v in (x, h, c)),
        *(arrays, lengths.tolist(), layers, 1 + bidirectional),
    )
    for a, b in zip(found, wanted):
        np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-6)
    one_by_one = rnn.lstm_ref(x, h, c, *parts, lengths, *args)
    assert all((a == b).all() for a, b in zip(found, one_by_one))


def test_weights_are_one_vector():
    assert rnn.get_num_params_in_lstm(4, 3, 2, True) == sum(
        2 * (12 * columns + 12 * 3 + 2 * 12) for columns in (4, 6)
    )
    weights = jnp.arange(float(rnn.get_num_params_in_lstm(2, 1, 1, False)))
    w_ih, w_hh, b_ih, b_hh = rnn.unpack_lstm_weights(weights, 2, 1, 1, False)
    assert w_ih[0].tolist() == [[0, 1], [2, 3], [4, 5], [6, 7]]
    assert w_hh[0].ravel().tolist() == [8, 9, 10, 11]
    assert b_ih[0].tolist() == [12, 13, 14, 15] and b_hh[0].tolist() == [16, 17, 18, 19]
    swapped = rnn.swap_lstm_gates(weights, 2, 1, 1, False)
    assert swapped[:8].tolist() == [0, 1, 2, 3, 6, 7, 4, 5] and swapped[-2:].tolist() == [19, 18]
    assert (rnn.swap_lstm_gates(swapped, 2, 1, 1, False) == weights).all()
    initial = rnn.init_lstm_weight(random.key(0), 4, 16, 1, False)
    assert abs(initial).max() <= 0.25 and abs(initial).max() > 0.24


def test_derivatives():
    x, h, c, weights, sizes = network(1, True)
    lengths = jnp.array([5, 2, 4], jnp.int32)

    def loss(weights, h):
        return rnn.lstm(x, h, c, weights, lengths, *sizes[:3], 0.0, True)[0].sum()

    slopes = calque.grad(loss, (0, 1))(weights, h)
    direction = jnp.ones_like(weights), jnp.ones_like(h)
    _, along = calque.jvp(loss, (weights, h), direction)
    np.testing.assert_allclose(sum(s.sum() for s in slopes), along, rtol=1e-4)


def test_refusals():
    x, h, c, weights, sizes = network(1, False)
    lengths = jnp.full(3, 5, jnp.int32)
    with pytest.raises(NotImplementedError, match="dropout=0"):
        rnn.lstm(x, h, c, weights, lengths, *sizes[:3], 0.5, False)
    with pytest.raises(NotImplementedError, match="int32, got float32"):
        rnn.lstm(x, h, c, weights, lengths * 1.0, *sizes[:3], 0.0, False)
    with pytest.raises(ValueError, match="has 108 parameters"):
        rnn.lstm(x, h, c, weights[1:], lengths, *sizes[:3], 0.0, False)
    parts = rnn.unpack_lstm_weights(weights, *sizes)
    with pytest.raises(ValueError, match="do not fit input_size=5"):
        rnn.lstm_ref(x, h, c, *parts, lengths, 5, 3, 1, 0.0, False)
