"""The functions of a library as C calls them."""

import ctypes
import shutil
import subprocess

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from tests.native.libraries.shared import S, exported, needs_images, some

pytestmark = needs_images

PROGRAM = r"""
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "model.h"
#include "other.h"
#include "wide.h"

struct part { model_task task; void *args; int64_t begin, end; };
static int shared = 0;

static void *work(void *p) {
  struct part *part = p;
  part->task(part->args, part->begin, part->end);
  return NULL;
}

static void share(void *context, model_task task, void *args, int64_t begin, int64_t end,
                  int64_t grain) {
  int64_t middle = begin + (end - begin) / grain / 2 * grain;
  struct part rest = {task, args, middle, end};
  pthread_t thread;
  ++*(int *)context;
  pthread_create(&thread, NULL, work, &rest);
  task(args, begin, middle);
  pthread_join(thread, NULL);
}

static int run(int64_t n, int64_t m) {
  float *x = malloc(n * m * sizeof *x), *sorted = malloc(n * m * sizeof *x);
  float *sums = malloc(n * sizeof *x);
  int32_t status;
  int64_t shape[2] = {0, 0};
  for (int64_t i = 0; i < n * m; ++i) x[i] = (float)((i * 7919) % 1000) / 1000;
  status = model_shape(n, m, 1, shape);
  if (status || shape[0] != n || shape[1] != m) return 1;
  if (model_shape(n, m, 0, shape) || shape[0] != n) return 2;
  if (model(n, m, x, sums, sorted)) return 3;
  for (int64_t i = 0; i < n; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < m; ++j) sum += tanh(x[i * m + j]);
    if (fabs(sum - sums[i]) > 1e-5 * m) return 4;
    for (int64_t j = 1; j < m; ++j)
      if (sorted[i * m + j - 1] > sorted[i * m + j]) return 5;
  }
  free(x), free(sorted), free(sums);
  return 0;
}

int main(void) {
  float x[4] = {0, 0, 0, 0};
  int64_t shape[2];
  int32_t out;
  for (int threads = 0; threads < 2; ++threads) {
    if (run(1, 1) || run(3, 40) || run(500, 900)) return run(500, 900);
    model_threads(share, &shared, 2);
  }
  if (!shared) return 10;
  model_threads(NULL, NULL, 1);
  if (other((const int32_t *)x, &out) || out != 3) return 11;
  printf("%s\n", model_message(model(0, 4, x, x, x)));
  printf("%s\n", model_message(model(1, -3, x, x, x)));
  printf("%s\n", model_message(model(2, 2, NULL, x, x)));
  printf("%s\n", model_message(model(2, 2, x, x, NULL)));
  printf("%s\n", model_message(model_shape(2, 2, 2, shape)));
  printf("%s\n", model_message(model_shape(2, 2, 0, NULL)));
  printf("%s\n", wide_message(wide((int64_t)1 << 40, (int64_t)1 << 40, x, x)));
  printf("%s\n", wide_message(wide((int64_t)1 << 45, 4, x, x)));
  printf("%s\n", model_message(12345));
  printf("%s\n", model_message(0));
  model_release();
  other_release();
  return 0;
}
"""
SAID = """the size n is not from 1 to 2**47
the size m is not from 1 to 2**47
there is no memory for the argument x
there is no memory for the result out1
there is no result of this number, or no place for its sizes
there is no result of this number, or no place for its sizes
a size that follows from the given ones does not fit in 64 bits, or is negative
no memory for what the function computes in between
unknown status
no error
"""


@pytest.mark.skipif(shutil.which("cc") is None, reason="no compiler of C")
def test_a_program_in_c(tmp_path):
    def model(x):
        y = jnp.tanh(x)
        return y.sum(1), jnp.sort(y, 1) + 0 * y[::-1].sum()

    jax.export_library(model, (S(("n", "m"), "float32"),), tmp_path / "model")
    jax.export_library(lambda x: x.sum() + 3, (S((4,), "int32"),), tmp_path / "other")
    jax.export_library(
        lambda x: jnp.sort(jnp.sort(x, 1) * 2, 0), (S(("n", "m"), "float32"),), tmp_path / "wide"
    )
    (tmp_path / "main.c").write_text(PROGRAM)
    command = ["cc", "-std=c99", "-Wall", "-Werror", "main.c", "-L.", "-lmodel", "-lother"]
    command += ["-lwide", "-lpthread", "-lm", "-Wl,-rpath,.", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    done = subprocess.run(["./main"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, SAID)


def test_sizes_without_a_program_are_told(tmp_path):
    def f(x):
        if x.shape[0] % 4:
            raise ValueError("not so")
        return x.reshape(-1, 4).sum(1)

    h, _ = exported(tmp_path, f, (S(("n",), "float32"),))
    np.testing.assert_array_equal(h(np.arange(8, dtype=np.float32)), [6, 22])
    with pytest.raises(RuntimeError, match=r"no program for these sizes.*mod\(n, 4\) == 0"):
        h(some(7))

    def g(x):
        if x.shape[0] < 20:
            raise ValueError("too short")
        return x[20:]

    def never(x):
        raise ValueError("never")

    with pytest.raises(ValueError, match="never"):
        jax.export_library(never, (S(("n",), "float32"),), tmp_path / "f")
    h, _ = exported(tmp_path, g, (S(("n",), "float32"),), "g")
    np.testing.assert_array_equal(h(np.arange(23, dtype=np.float32)), [20, 21, 22])
    assert h(np.arange(20, dtype=np.float32)).shape == (0,)
    with pytest.raises(RuntimeError, match=r"no program for these sizes.*n - 20 >= 0"):
        h(some(19))


def test_empty_arrays_need_no_memory(tmp_path):
    _, module = exported(tmp_path, lambda x: (x, x.sum()), (S((0, 3), "float32"),))
    out = ctypes.c_float(7)
    assert module._library.f(None, None, ctypes.byref(out)) == 0
    assert out.value == 0


def test_a_function_without_arguments(tmp_path):
    f, _ = exported(tmp_path, lambda: jnp.arange(5) * 2, ())
    np.testing.assert_array_equal(f(), np.arange(5) * 2)


def test_many_words_that_depend_on_sizes(tmp_path):
    def f(x):
        for k in range(120):
            x = jnp.sort(x) * 0.5 + jnp.cumsum(x)[::-1] * (k + 1) / 100
        return x

    g, _ = exported(tmp_path, f, (S(("n",), "float32"),))
    for n in (1, 60):
        x = some(n)
        np.testing.assert_allclose(g(x), jax.jit(f)(x), rtol=1e-4)
