"""Rotations: every representation against SciPy's, composition, means, interpolation, derivatives,
refusals."""

import importlib
import sys
from typing import Any

import numpy as np
import pytest
from scipy.spatial.transform import Rotation as Theirs
from scipy.spatial.transform import Slerp as TheirSlerp

import calque
import calque.numpy as jnp
from calque.scipy.spatial.transform import Rotation, Slerp
from calque.test_util import check_grads
from tests.ops.helpers import x64
from tests.peers import compare, jax

_rng = np.random.default_rng(0)
Q = _rng.normal(size=(9, 4))
Q[0] = (0, 0, 0, 1)
Q[1] = (1, 0, 0, 0)
Q[2] = (0, -1, 0, 1e-9)
V = _rng.normal(size=(9, 3)).astype(np.float32)
OURS, THEIRS = Rotation.from_quat(jnp.asarray(Q, "float32")), Theirs.from_quat(Q)


def close(got: Any, want: Any, tol: float = 2e-5) -> None:
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=tol, atol=tol)


def test_representations() -> None:
    close(OURS.as_matrix(), THEIRS.as_matrix())
    close(OURS.as_quat(), THEIRS.as_quat())
    close(OURS.as_quat(canonical=True)[3:], THEIRS.as_quat(canonical=True)[3:])
    close(OURS.as_quat(scalar_first=True), THEIRS.as_quat(scalar_first=True))
    close(OURS[3:].as_mrp(), THEIRS[3:].as_mrp())
    close(OURS[3:].as_rotvec(), THEIRS[3:].as_rotvec())
    close(OURS[:1].as_rotvec(degrees=True), np.zeros((1, 3)))
    close(OURS.magnitude(), THEIRS.magnitude())
    for back in (
        Rotation.from_matrix(OURS.as_matrix()), Rotation.from_mrp(OURS.as_mrp()),
        Rotation.from_rotvec(OURS.as_rotvec(True), True), OURS.inv().inv(),
    ):  # fmt: skip
        close(back.as_matrix(), THEIRS.as_matrix())
    close(Rotation.from_rotvec(V).as_quat(), Theirs.from_rotvec(V).as_quat())
    close(Rotation.from_rotvec(V * 1e-5).as_rotvec(), V * 1e-5, 1e-9)


@pytest.mark.parametrize("seq", ["xyz", "XYZ", "zxz", "ZYX", "yzy", "YXY", "zyx"])
def test_euler_angles(seq: str) -> None:
    angles = (_rng.uniform(-1, 1, (6, 3)) * (3.1, 1.5, 3.1)).astype(np.float32)
    close(Rotation.from_euler(seq, angles).as_matrix(), Theirs.from_euler(seq, angles).as_matrix())
    close(
        Rotation.from_euler(seq, angles[0] * 50, True).as_matrix(),
        Theirs.from_euler(seq, angles[0] * 50, True).as_matrix(),
        1e-4,
    )
    close(OURS[3:].as_euler(seq), THEIRS[3:].as_euler(seq), 1e-4)
    close(OURS[3:].as_euler(seq, degrees=True), THEIRS[3:].as_euler(seq, degrees=True), 5e-3)
    with pytest.warns(UserWarning, match="Gimbal"):
        locked = Theirs.from_euler(seq, [0.3, 0 if seq[0] == seq[2] else np.pi / 2, 0.4])
        want = locked.as_euler(seq)
    with x64():
        close(Rotation.from_quat(jnp.asarray(locked.as_quat())).as_euler(seq), want)


def test_one_axis() -> None:
    for angles in (0.3, np.array([[0.3], [1.0]])):
        close(Rotation.from_euler("y", angles).as_quat(), Theirs.from_euler("y", angles).as_quat())
    close(
        Rotation.from_euler("y", [0.3, 1.0]).as_quat(),
        Theirs.from_euler("y", [[0.3], [1.0]]).as_quat(),
    )
    close(
        Rotation.from_euler("xz", [0.3, 1.0]).as_quat(),
        Theirs.from_euler("xz", [0.3, 1.0]).as_quat(),
    )


def test_operations() -> None:
    close((OURS * OURS[3]).as_matrix(), (THEIRS * THEIRS[3]).as_matrix())
    close(OURS.inv().as_matrix(), THEIRS.inv().as_matrix())
    close(OURS.apply(V), THEIRS.apply(V))
    close(OURS[4].apply(V, inverse=True), THEIRS[4].apply(V, inverse=True))
    weights = np.arange(1.0, 7)
    close(OURS[3:].mean(weights).as_matrix(), THEIRS[3:].mean(weights).as_matrix(), 1e-4)
    close(OURS[3:].mean().as_matrix(), THEIRS[3:].mean().as_matrix(), 1e-4)
    assert len(OURS) == 9 and not OURS.single and OURS[2].single
    close(Rotation.concatenate([OURS, OURS[:2]]).quat[9:], OURS.quat[:2])
    close(Rotation.identity().as_matrix(), np.eye(3))
    assert Rotation.identity(3).quat.shape == (3, 4)
    drawn = Rotation.random(calque.random.key(0), 500)
    close(jnp.linalg.norm(drawn.quat, axis=-1), np.ones(500))
    assert (
        float(jnp.abs(drawn.as_matrix().mean(0)).max()) < 0.1
        and Rotation.random(calque.random.key(0)).single
    )


def test_interpolation() -> None:
    times = np.arange(6.0)
    at = np.array([0, 0.2, 1, 2.5, 4.9, 5, -0.5])
    ours = Slerp.init(times, OURS[3:])
    want = TheirSlerp(times, THEIRS[3:])(at[:-1])
    close(ours(at[:-1]).as_matrix(), want.as_matrix(), 1e-4)
    close(ours(0.2).as_matrix(), want.as_matrix()[1], 1e-4)
    close(calque.jit(lambda s, t: s(t).as_matrix())(ours, at[:-1]), want.as_matrix(), 1e-4)


def test_trees_and_batches() -> None:
    turned = calque.jit(calque.vmap(lambda r, v: r.apply(v)))(OURS, V)
    close(turned, THEIRS.apply(V))
    doubled = calque.tree_util.tree_map(lambda q: q, OURS)
    assert isinstance(doubled, Rotation) and len(doubled) == 9


def test_derivatives() -> None:
    with x64():
        v = jnp.asarray(V[0].astype(float))
        for f in (
            lambda x: Rotation.from_rotvec(x).as_matrix(),
            lambda x: Rotation.from_rotvec(x).as_euler("xyz"),
            lambda x: Rotation.from_mrp(x).as_rotvec(),
            lambda x: Rotation.from_matrix(Rotation.from_rotvec(x).as_matrix()).as_rotvec(),
            lambda x: Rotation.from_rotvec(x).magnitude(),
        ):  # fmt: skip
            check_grads(f, (v,), order=1, atol=1e-6, rtol=1e-6)
        slope = calque.jacobian(lambda x: Rotation.from_rotvec(x).as_rotvec())(jnp.zeros(3))
        close(slope, np.eye(3))  # also where the angle is 0


def test_refusals() -> None:
    for bad in (
        lambda: Rotation.from_euler("xyzx", np.zeros(4)), lambda: Rotation.from_euler("xYz",
        np.zeros(3)), lambda: Rotation.from_euler("xxy", np.zeros(3)),
        lambda: Rotation.from_euler("xyz", np.zeros(2)), lambda: OURS.as_euler("xy"),
        lambda: OURS.mean(np.ones(2)), lambda: OURS.mean(np.ones((9, 1))),
        lambda: Rotation.from_quat(np.ones(3)), lambda: Rotation.from_matrix(np.ones((2, 3))),
        lambda: Slerp.init(np.arange(2.0), OURS),
        lambda: Slerp.init(np.arange(1.0), OURS[:1]), lambda: Slerp.init(np.ones((2, 2)),
        OURS[:2]), lambda: Slerp.init(np.arange(2.0), OURS[:2])(np.ones((1, 1))),
    ):  # fmt: skip
        with pytest.raises(ValueError, match=r"."):
            bad()
    for bad in (
        lambda: OURS[0][0],
        lambda: len(OURS[0]),
        lambda: Slerp.init(np.arange(9.0), OURS.quat),
    ):
        with pytest.raises(TypeError):
            bad()


@pytest.mark.peer
def test_values_of_jax() -> None:
    jax()
    theirs = importlib.import_module("jax.scipy.spatial.transform")
    quat, times, at = (
        np.asarray(OURS.quat),
        np.arange(9, dtype=np.float32),
        np.array([0.5, 3.25], np.float32),
    )

    def results(m: Any) -> list[Any]:
        r = m.Rotation.from_quat(quat)
        tail = [r.as_mrp()[3:], r.as_rotvec()[3:], r.as_euler("zyx")[3:]]
        between = m.Slerp.init(times, r)(at).quat
        return [
            *tail,
            r.as_matrix(),
            r.as_quat(canonical=True),
            r.magnitude(),
            (r * r[3]).quat,
            r.mean().as_matrix(),
            between,
        ]

    compare(
        results(sys.modules["calque.scipy.spatial.transform"]),
        jax().jit(lambda: results(theirs))(),
        1e-4,
    )
