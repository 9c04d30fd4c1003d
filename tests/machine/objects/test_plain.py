"""Arrays and calls in plain Python, for interpreters that machine code does not know: the same
answers as machine code gives."""

import json
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from calque.machine.objects import plain

PROGRAMS = """
import json, pickle, sys, threading
import numpy as np
import calque, calque.numpy as jnp
from calque import lax
from calque.machine.call import functions as callpath

results = []
def note(x):
    leaves = calque.tree_util.tree_leaves(x)
    results.append([[str(getattr(v, "dtype", type(v).__name__)), np.shape(v), np.asarray(v).tobytes().hex()] for v in leaves])
def refused(f, *args):
    try:
        f(*args)
    except Exception as e:
        text = str(e).splitlines()[0].replace("'calque.ArrayImpl'", "'ArrayImpl'")  # a name of C shows its module
        results.append([type(e).__name__, text])
    else:
        results.append("not refused")

x = jnp.arange(12.0).reshape(3, 4)
for _ in range(2):
    note([x + 1, 2 * x, x @ x.T, x**1.5, x**2, -x, x > 3, x // 2, divmod(x, 3)[1]])
    note([x[1], x[:, 2], x[::2, ::-1], x[..., None], x[jnp.array([0, 2])], x[-1, 100]])
    note([x.at[1, 2].set(9), x.at[0].add(x[1]), x.T, x.reshape(-1), x.sum(0), x.max(), x.astype("int32"), x.mean(axis=1)])
f = calque.jit(lambda x, y, *, scale=1.0: {"a": jnp.sin(x) @ y.T * scale, "b": (x.sum(), y)})
for s in (1.0, 2.0):
    note(f(x, np.ones((2, 4), "f4"), scale=s))
note(calque.jit(lambda x: x[x.shape[0] - 1] * 3, static_argnums=())(x))
note(calque.jit(lambda x, n: x * n, static_argnums=1)(x, 3))
note(calque.grad(lambda x: (jnp.tanh(x) ** 2).sum())(x))
note(calque.jacfwd(lambda v: v * v)(x[0]))
note(calque.vmap(lambda r: r @ r)(x))
note(calque.jit(lambda x: lax.fori_loop(0, 5, lambda i, c: c * 1.5 + i, x))(x))
note(lax.scan(lambda c, r: (c + r, c * r), jnp.zeros(4), x))
note(lax.cond(True, lambda: x, lambda: x * 2))
note(lax.while_loop(lambda c: c.sum() < 100, lambda c: c * 2, x[1]))
note(calque.random.normal(calque.random.key(3), (5,)))
note(calque.pure_callback(lambda v: np.asarray(v) * 2, calque.ShapeDtypeStruct((3, 4), np.float32), x))
note(jnp.sort(-x, axis=1)); note(jnp.cumsum(x, 1)); note(jnp.linalg.solve(jnp.eye(3) * 2, x)); note(jnp.concatenate([x, x]))
note([jnp.zeros((0, 3)), jnp.ones(()), jnp.asarray([1, 2], "int8"), jnp.asarray(True), jnp.asarray(1j), jnp.ones(3, "bfloat16")])
note(pickle.loads(pickle.dumps(x)))
step = calque.jit(lambda a, b: (a + b, b * 2), donate_argnums=0)
a, b = jnp.ones(5), jnp.arange(5.0)
note(step(a, b)); note(b)
refused(lambda: a + 1)
refused(step, b, b)
refused(lambda: x[0, 0, 0]); refused(lambda: x + jnp.ones(5)); refused(hash, x); refused(calque.jit(lambda x: bool(x.sum())), x)
refused(setattr, x, "aval", None); refused(type(x)); refused(lambda: calque.jit(lambda x: x)("text"))
class Model:
    w = 2.0
    @calque.jit
    def double(self):
        return 1
    @calque.jit
    def __call__(self, x):
        return x
calque.tree_util.register_pytree_node(Model, lambda m: ((m.w,), None), lambda _, c: Model())
note(Model().double())
note(f.lower(x, x).compile()(x, x) if hasattr(f.lower(x, x), "compile") else None)
threads, outs = [], [None] * 4
def work(k):
    outs[k] = calque.jit(lambda x: (x * k).sum())(x)
for k in range(4):
    threads.append(threading.Thread(target=work, args=(k,))); threads[-1].start()
for t in threads: t.join()
note(outs)
calque.config.update("calque_enable_x64", True)
note([jnp.arange(3) * 2, jnp.ones(2) / 3])
print(json.dumps([callpath.LEARNS, "calque.machine.objects.array_type" in sys.modules, results]))
"""


def run(**environment: str) -> list[Any]:
    full = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **environment}
    out = subprocess.run(
        [sys.executable, "-c", PROGRAMS], env=full, capture_output=True, text=True, timeout=300
    )
    assert out.returncode == 0, out.stderr[-3000:]
    return json.loads(out.stdout.splitlines()[-1])


def test_programs_give_the_same_without_machine_code() -> None:
    with_it, without = run(CALQUE_CALLPATH="on"), run(CALQUE_CALLPATH="off")
    assert with_it[:2] == [True, True] and without[:2] == [False, False]
    assert len(with_it[2]) == len(without[2]) >= 40
    for a, b in zip(with_it[2], without[2], strict=True):
        assert a == b and a != "not refused"


class Aval:
    shape, dtype = (3,), np.dtype("float32")


def test_plain_arrays() -> None:
    source = np.arange(3, dtype=np.float32)
    x = plain.wrap_numpy(Aval(), source)
    view = plain.as_numpy(x, source.dtype, (3,))
    assert (
        view.tolist() == [0, 1, 2] and not view.flags.writeable and np.shares_memory(view, source)
    )
    y = plain.share(x, Aval())
    assert y._ptr == x._ptr and plain.as_numpy(y, np.dtype("u1"), (2, 6)).shape == (2, 6)
    with pytest.raises(TypeError, match="C-contiguous"):
        plain.wrap_numpy(Aval(), source[::2])
    with pytest.raises(TypeError, match="cannot create"):
        plain.ArrayImpl()
    for change in (
        lambda: setattr(x, "aval", 1),
        lambda: setattr(x, "other", 1),
        lambda: delattr(x, "aval"),
    ):
        with pytest.raises(AttributeError):
            change()
    plain.delete_array(x)
    with pytest.raises(RuntimeError, match=r"deleted with shape=float32\[3\]"):
        plain.as_numpy(x, source.dtype, (3,))
    assert plain.as_numpy(y, source.dtype, (3,)).tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match="negative"):
        plain.new_array(Aval(), -1)
    with pytest.raises(MemoryError):
        plain.new_array(Aval(), 1 << 60)
    assert plain.as_numpy(plain.new_array(Aval(), 0), source.dtype, (0, 4)).shape == (0, 4)
