"""Factors of matrices as they are written for GPUs and TPUs, which nothing here runs."""

import re
from functools import partial
from typing import Any

import numpy as np
import pytest

import calque as jax
import calque.numpy as jnp
from calque import export, lax
from tests import peers
from tests.xla.mlir import needs_jaxlib, printed

linalg = lax.linalg
tall = np.ones((2, 5, 3), np.float32)
square = np.ones((2, 4, 4), np.float32)
CALLS = {  # of a module of linear algebra and an array: what is called on GPUs
    "cholesky": (lambda la, x: la.cholesky(x), square, ["cusolver_potrf_ffi"]),
    "eigh": (
        lambda la, x: la.eigh(x, symmetrize_input=False),
        square.astype(np.complex64),
        ["cusolver_syevd_ffi"],
    ),
    "lu": (
        lambda la, x: la.lu(x), tall, ["cu_lu_pivots_to_permutation", "cusolver_getrf_ffi"]
    ),
    "qr": (lambda la, x: la.qr(x), tall, ["cusolver_geqrf_ffi", "cusolver_orgqr_ffi"]),
    "flat qr": (
        lambda la, x: la.qr(x, full_matrices=False),
        np.ones((3, 5)),
        ["cusolver_geqrf_ffi", "cusolver_orgqr_ffi"],
    ),
    "svd": (lambda la, x: la.svd(x, full_matrices=False), tall, ["cusolver_gesvdj_ffi"]),
    "full svd": (lambda la, x: la.svd(x), tall, ["cusolver_gesvdj_ffi"]),
    "economic svd": (
        lambda la, x: la.svd(x, full_matrices=False),
        np.ones((40, 33), np.complex128),
        ["cusolver_gesvdj_ffi"],
    ),
    "wide svd": (
        lambda la, x: la.svd(x, full_matrices=False),
        np.ones((2, 1030), np.float32),
        ["cusolver_gesvd_ffi"],
    ),
    "singular values": (
        lambda la, x: la.svd(x, compute_uv=False),
        np.ones((1030, 2), np.float32),
        ["cusolver_gesvd_ffi"],
    ),
    "tridiagonal": (lambda la, x: la.tridiagonal(x), square, ["cusolver_sytrd_ffi"]),
    "reflections": (
        lambda la, x: la.householder_product(x, x[:, 0]), square, ["cusolver_orgqr_ffi"]
    ),
    "tridiagonal_solve": (
        lambda la, x: la.tridiagonal_solve(x[:, 0], x[:, 1], x[:, 2], x),
        square,
        ["cusparse_gtsv2_ffi"],
    ),
}  # fmt: skip
# targets that the packages of plugins for CUDA register, as jaxlib 0.10 has them
REGISTERED = {
    "cu_lu_pivots_to_permutation", "cusolver_geqrf_ffi", "cusolver_gesvd_ffi",
    "cusolver_gesvdj_ffi", "cusolver_getrf_ffi", "cusolver_orgqr_ffi", "cusolver_potrf_ffi",
    "cusolver_syevd_ffi", "cusolver_sytrd_ffi", "cusparse_gtsv2_ffi",
}  # fmt: skip


def text(f: Any, x: Any, platform: str) -> str:
    with jax.enable_x64(x.dtype.name in ("float64", "complex128")):
        return export.export(jax.jit(f), platforms=[platform])(x).mlir_module()


def targets(written: str) -> list[str]:
    return sorted(set(re.findall(r"custom_call @([\w.]+)\(", written)))


@needs_jaxlib
@pytest.mark.parametrize("name", CALLS)
def test_on_gpus_routines_of_the_maker_are_called(name: str) -> None:
    f, x, wanted = CALLS[name]
    f = partial(f, linalg)
    written = text(f, x, "cuda")
    printed(written)
    assert targets(written) == wanted and {*wanted} <= REGISTERED
    on_rocm = {"cusolver": "hipsolver", "cusparse": "hipsparse", "cu": "hip"}
    others = sorted(re.sub(r"^cu(solver|sparse)?", lambda m: on_rocm[m[0]], t) for t in wanted)
    assert targets(text(f, x, "rocm")) == others


@needs_jaxlib
@pytest.mark.parametrize(
    "f, x, wanted",
    [
        (linalg.cholesky, square, []),
        (linalg.eigh, square, ["Eigh"]),
        (linalg.lu, tall, ["LuDecomposition"]),
        (linalg.qr, tall, ["ProductOfElementaryHouseholderReflectors", "Qr"]),
        (jnp.linalg.inv, square, ["LuDecomposition"]),
    ],
)
def test_on_tpus_xla_has_them(f: Any, x: Any, wanted: list[str]) -> None:
    written = text(f, x, "tpu")
    printed(written)
    assert targets(written) == wanted
    assert ("stablehlo.cholesky" in written) == (f is linalg.cholesky)


@needs_jaxlib
def test_triangular_systems_are_solved_by_xla() -> None:
    def solve(a: Any, **options: Any) -> str:
        return text(lambda a: linalg.triangular_solve(a, a, **options), a, "cuda")

    complex_matrix = square.astype(np.complex64)
    assert "transpose_a = #stablehlo<transpose NO_TRANSPOSE>" in solve(square, lower=True)
    both = {"transpose_a": True, "conjugate_a": True}
    assert "transpose ADJOINT>" in solve(complex_matrix, left_side=True, **both)
    assert "transpose TRANSPOSE>" in solve(square, unit_diagonal=True, **both)
    assert "NO_TRANSPOSE" in solve(complex_matrix, conjugate_a=True)
    assert "stablehlo.negate" in solve(complex_matrix, conjugate_a=True)


@needs_jaxlib
def test_what_no_routine_takes_is_computed_on_the_host() -> None:
    for f in (linalg.schur, linalg.hessenberg, partial(linalg.qr, pivoting=True)):
        with pytest.raises(ValueError, match="it calls Python on the host"):
            text(f, square, "cuda")
        with pytest.raises(NotImplementedError, match="programs on tpu cannot call Python"):
            text(f, square, "tpu")


@needs_jaxlib
@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_systems_that_no_routine_takes_are_solved_by_a_program(platform: str) -> None:
    def solve(x: Any) -> Any:
        return linalg.tridiagonal_solve(x[..., 0], x[..., 1], x[..., 0], x)

    for x in (np.ones((2, 2), np.float32), square.astype(np.complex64)):
        written = text(solve, x, platform)
        printed(written)
        assert targets(written) == []


@needs_jaxlib
def test_singular_values_on_tpus_are_a_program_that_calls_qr() -> None:
    written = text(linalg.svd, tall, "tpu")
    printed(written)
    assert targets(written) == ["ProductOfElementaryHouseholderReflectors", "Qr"]


def run_for_tpu(f: Any, *args: np.ndarray) -> list[np.ndarray]:
    anywhere = [export.DisabledSafetyCheck.platform()]
    made = export.export(jax.jit(f), platforms=["tpu"], disabled_checks=anywhere)(*args)
    return [np.asarray(x) for x in jax.tree.leaves(jax.jit(made.call, backend="xla_cpu")(*args))]


@needs_jaxlib
@pytest.mark.parametrize("dtype", ["float32", "complex64"])
def test_factors_on_tpus_are_right(dtype: str) -> None:
    """XLA expands its calls on CPUs, too, but for LU."""
    r = np.random.default_rng(0)
    a, imaginary = r.standard_normal((2, 2, 7, 7))
    a = (a + 1j * imaginary if dtype == "complex64" else a).astype(dtype)
    adjoint = np.conj(np.swapaxes(a, -1, -2))
    whole = a @ adjoint + np.eye(7, dtype=dtype)
    close = {"atol": 2e-4, "rtol": 2e-5}
    v, w = run_for_tpu(linalg.eigh, whole)
    np.testing.assert_allclose(w, np.linalg.eigvalsh(whole), **close)
    np.testing.assert_allclose(whole @ v, v * w[..., None, :], **close)
    for full in (True, False):
        q, upper = run_for_tpu(lambda x: linalg.qr(x, full_matrices=full), a[..., :4])
        np.testing.assert_allclose(q @ upper, a[..., :4], **close)
    (lower,) = run_for_tpu(linalg.cholesky, whole)
    np.testing.assert_allclose(lower, np.linalg.cholesky(whole), **close)
    for options in ({}, {"transpose_a": True}, {"conjugate_a": True}, {"left_side": True}):

        def solve(x: Any, y: Any) -> Any:
            return linalg.triangular_solve(x, y, lower=True, **options)

        found, wanted = run_for_tpu(solve, lower, a)[0], solve(lower, a)
        np.testing.assert_allclose(found, wanted, **close)


@needs_jaxlib
@pytest.mark.peer
@pytest.mark.parametrize("name", CALLS)
def test_as_jax_calls_them(name: str) -> None:
    """The operands, results, options and layouts of each call, but for what tells how calls are
    split over devices."""
    jax_ = peers.jax()
    f, x, _ = CALLS[name]
    with jax_.enable_x64(True):
        function = jax_.jit(lambda x: f(jax_.lax.linalg, x))
        theirs = function.trace(x).lower(lowering_platforms=("cuda",)).as_text()
    assert calls(text(partial(f, linalg), x, "cuda")) == calls(theirs)


def calls(written: str) -> list[str]:
    found = re.findall(r"custom_call (@.*?)(?: loc\(.*)?$", written, re.MULTILINE)
    plain = [re.sub(r", sdy\.sharding_rule = .*?custom>", "", c) for c in found]
    plain = [c.replace('{backend_config = "", ', "{") for c in plain]  # what is not said
    return [re.sub(r"%\w+(#\d+)?", "%", c) for c in plain]
