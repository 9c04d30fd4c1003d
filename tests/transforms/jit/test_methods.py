"""What callables of the library and of jit offer beyond calls."""

import copy
import gc
import pickle
import subprocess
import sys
import weakref

import numpy as np

import calque
import calque.numpy as jnp

_FIRST = """
import pickle
import calque.numpy as jnp
assert pickle.loads(pickle.dumps(jnp.sin)) is jnp.sin
assert jnp.zeros_like.eval_shape(1.0).shape == ()
assert "sin" in jnp.sin.lower(1.0).as_text() and jnp.cos.trace(1.0).jaxpr.eqns
jnp.sin.clear_cache()
"""


def test_the_library_has_them_before_anything_is_jitted():
    subprocess.run([sys.executable, "-c", _FIRST], check=True)


def test_a_copy_is_the_function_itself():
    f = calque.jit(lambda x: x + 1)
    assert copy.copy(f) is f and copy.deepcopy([f])[0] is f
    assert pickle.loads(pickle.dumps(jnp.cos)) is jnp.cos


def test_functions_of_the_library_are_pickled_by_their_names():
    """Models hold them: an activation, a sampler."""
    names = (
        "nn.relu", "nn.softmax", "random.normal", "numpy.linalg.solve", "numpy.fft.fft",
        "scipy.special.erf", "scipy.linalg.solve", "numpy.where", "numpy.add", "numpy.sum",
    )  # fmt: skip
    for name in names:
        *path, last = name.split(".")
        function = calque
        for part in (*path, last):
            function = getattr(function, part)
        pickled = pickle.dumps(function)
        assert pickle.loads(pickled) is function
        assert copy.deepcopy({"activation": function})["activation"] is function
        again = f"import pickle; assert pickle.loads({pickled!r}).__name__ == {last!r}"
        subprocess.run([sys.executable, "-c", again], check=True)


def test_a_cleared_function_is_traced_again():
    times = []
    f = calque.jit(lambda x: times.append(1) or x)
    f(1.0), f(2.0)
    assert times == [1] and f._cache_size() == 1
    f.clear_cache()
    f(1.0)
    assert times == [1, 1]


def test_what_a_cleared_function_captured_goes_with_it():
    """Functions like it, made later, would find its programs."""

    def made():
        data = calque.device_put(np.ones(5, np.float32))
        f = calque.jit(lambda: data[0] + 1)
        f()
        f.clear_cache()
        return weakref.ref(data)

    gone = [made() for _ in range(3)]
    gc.collect()
    assert [r() for r in gone] == [None] * 3
