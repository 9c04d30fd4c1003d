"""The header: what it declares is what C and C++ compile."""

import shutil
import subprocess

import pytest

import calque as jax
import calque.numpy as jnp
from tests.native.libraries.shared import S, needs_images, some

pytestmark = needs_images


def test_it_says_what_goes_in_and_out(tmp_path):
    def f(params, x):
        return {"y": x @ params["w"], "z": jnp.fft.fft(x[0])}

    args = ({"w": some(4, 3)}, S(("n", 4), "float32"))
    made = jax.export_library(f, args, tmp_path / "f")
    text = (tmp_path / "f.h").read_text()
    assert "int32_t f(int64_t n, const float *params_w, const float *x, float *out_y" in text
    for line in (
        "n: a size, at least 1",
        "params_w: argument, float32[4, 3]",
        "x: argument, float32[n, 4]",
        "out_y: result 0, float32[n, 3]",
        "out_z: result 1, complex64[4], two numbers an element",
        "int32_t f_shape(int64_t n, int32_t result, int64_t *shape);",
    ):
        assert line in text
    assert made.header.endswith("f.h")


@pytest.mark.parametrize("compiler, suffix", [("cc", "c"), ("c++", "cpp")])
def test_compilers_take_it(tmp_path, compiler, suffix):
    if shutil.which(compiler) is None:
        pytest.skip(f"no {compiler}")
    jax.export_library(lambda x, y: (x + y) > 0, (S(("n",), "float32"), some()), tmp_path / "f")
    program = tmp_path / f"main.{suffix}"
    program.write_text(
        '#include "f.h"\n#include "f.h"\nint main(void) { return f_message(0)[0] != 110; }\n'
    )
    flags = ["-Wall", "-Wextra", "-Werror", "-pedantic"]
    command = [compiler, *flags, str(program), "-L.", "-lf", "-Wl,-rpath,.", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    subprocess.run(["./main"], cwd=tmp_path, check=True)
