"""What becomes a library, and what is refused with its name."""

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from tests.native.libraries.shared import S, needs_images, some

pytestmark = needs_images


@pytest.mark.parametrize(
    "f, said",
    [
        (lambda x: jax.pure_callback(np.sin, x, x), "pure_callback .runs in Python."),
        (lambda x: (jax.debug.print("{}", x), x)[1], "runs in Python"),
        (lambda x: jnp.linalg.eigvalsh(x[:, None] * x), "eigh .calls lapack ssyevd of SciPy."),
    ],
)
def test_python_and_scipy_are_refused_by_name(tmp_path, f, said):
    with pytest.raises(NotImplementedError, match=said):
        jax.export_library(f, (some(5),), tmp_path / "f")
    assert not list(tmp_path.iterdir())


def test_results_of_found_size_are_refused(tmp_path):
    with pytest.raises(NotImplementedError, match=r"size of result 1 is found .* size="):
        jax.export_library(lambda x: (x, x[x > 0]), (some(5),), tmp_path / "f")


def test_tables_for_one_size_are_refused_where_it_is_free(tmp_path):
    with pytest.raises(NotImplementedError, match="fft needs tables that are made for one size"):
        jax.export_library(jnp.fft.fft, (S(("n",), "complex64"),), tmp_path / "f")
