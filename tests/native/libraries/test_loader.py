"""The loader: arrays of NumPy in and out, and what it refuses."""

import threading

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from tests.native.libraries.shared import S, exported, needs_images, same, some

pytestmark = needs_images


def test_arguments_are_converted_as_numpy_does(tmp_path):
    f, _ = exported(tmp_path, lambda x, y: x * y, (S(("n", 2), "float32"), 1.0))
    same(f([[1, 2], [3, 4]], 2), np.array([[2, 4], [6, 8]], np.float32))
    x = some(2, 30).T
    same(f(x, np.float64(0.5)), x * np.float32(0.5))
    raw = np.zeros(8 * 30 + 1, np.uint8)
    crooked = raw[1:].view(np.float32).reshape(30, 2)
    crooked[...] = x
    same(f(crooked, 1), x.copy())


def test_bad_arguments_are_named(tmp_path):
    f, _ = exported(tmp_path, lambda x, y: x @ y, (S(("n", "m"), "float32"), S(("m",), "float32")))
    with pytest.raises(ValueError, match="x has the shape"):
        f(some(3), some(3))
    with pytest.raises(ValueError, match=r"y: shape \(4,\).*'m': 3"):
        f(some(2, 3), some(4))
    with pytest.raises(TypeError, match="y is of dtype complex64"):
        f(some(2, 3), some(3).astype("complex64"))
    with pytest.raises(TypeError):
        f(some(2, 3))


def test_names_of_arguments_hide_nothing(tmp_path):
    def f(np, sizes, ctypes, results):
        return np + sizes, ctypes - results

    g, _ = exported(tmp_path, f, (some(3),) * 4)
    same(g(*[some(3)] * 4), f(*[some(3)] * 4))


def test_threads_of_the_host_share_the_work(tmp_path):
    def f(x):
        return jnp.tanh(x @ x.T).sum(0), jnp.sort(x, 1)

    f, module = exported(tmp_path, f, (S(("n", "m"), "float32"),))
    x = some(700, 300)
    alone = f(x)
    asked, divided = [], module._divided

    def counted(*words):
        asked.append(words[3:])
        divided(*words)

    module._divided = module._share(counted)
    module.set_threads(3)
    same(f(x), alone)
    assert asked and all(end - begin >= 2 * grain for begin, end, grain in asked)
    count = len(asked)
    module.set_threads(1)
    same(f(x), alone)
    assert len(asked) == count


def test_two_libraries_in_one_process(tmp_path):
    f, first = exported(tmp_path, lambda x: jnp.sort(x), (S(("n",), "float32"),), "f")
    g, second = exported(tmp_path, lambda x: jnp.sort(x)[::-1], (S(("n",), "float32"),), "g")
    first.set_threads(2)
    x = some(5000)
    same(f(x), np.sort(x))
    same(g(x), np.sort(x)[::-1].copy())
    second._library.g_release()
    first._library.f_release()
    same(g(x), np.sort(x)[::-1].copy())
    same(f(x), np.sort(x))
    assert jax.get_num_threads() >= 1


def test_many_threads_call_at_once(tmp_path):
    f, module = exported(tmp_path, lambda x: (jnp.sort(x), jnp.cumsum(x)), (S(("n",), "float32"),))
    module.set_threads(2)
    given = [some(n, seed=n) for n in (10, 5000, 70_000)] * 3
    wanted, wrong = [f(x) for x in given], []

    def call(k):
        for _ in range(3):
            got = f(given[k])
            wrong.extend(k for a, b in zip(got, wanted[k]) if a.tobytes() != b.tobytes())

    threads = [threading.Thread(target=call, args=(k,)) for k in range(len(given))]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong
