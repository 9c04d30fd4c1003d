"""calque.scipy.spatial.transform: rotations of space and interpolation between them."""

import itertools
import math
import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from calque import numpy as jnp
from calque.core import guards as _guards
from calque.core.arrays import Array
from calque.core.types import ArrayLike, DTypeLike
from calque.numpy.promotion import promote_inexact
from calque.random.distributions import normal

__all__ = ["Rotation", "Slerp"]

_AXES: Final = {"x": 0, "y": 1, "z": 2}


def _floats(x: Any, size: int, name: str) -> Any:
    """An array of floats whose last axis has this size."""
    (x,) = promote_inexact(jnp.asarray(x))
    x = jnp.asarray(x)
    if x.ndim < 1 or x.shape[-1] != size:
        raise ValueError(f"Rotation: {name} must have shape (..., {size}), got {x.shape}")
    return x


def _dot(x: Any, y: Any) -> Any:
    """The products of vectors, with an axis of size 1 for them."""
    return jnp.sum(x * y, axis=-1, keepdims=True)


def _normalised(x: Any) -> Any:
    return x / jnp.sqrt(_dot(x, x))


def _product(p: Any, q: Any) -> Any:
    """The product of quaternions: q is applied first."""
    u, a, v, b = p[..., :3], p[..., 3:], q[..., :3], q[..., 3:]
    return jnp.concatenate([a * v + b * u + jnp.cross(u, v), a * b - _dot(u, v)], axis=-1)


def _factor(name: str, degrees: bool) -> float:
    return (math.pi / 180 if name == "in" else 180 / math.pi) if degrees else 1.0


# ---------------------------------------------------------------- to and from quaternions


def _from_rotvec(v: Any) -> Any:
    square = _dot(v, v)
    small = square < 1e-6
    angle = jnp.sqrt(jnp.where(small, 1.0, square))
    series = 0.5 - square / 48 + square * square / 3840
    scale = jnp.where(small, series, jnp.sin(angle / 2) / angle)
    return jnp.concatenate(
        [scale * v, jnp.where(small, 1 - square / 8, jnp.cos(angle / 2))], axis=-1
    )


def _half_angle(quat: Any) -> tuple[Any, Any]:
    """The vector part and half of the angle, from 0 to pi / 2, of rotations; both smooth where the
    angle is 0."""
    quat = jnp.where(quat[..., 3:] < 0, -quat, quat)
    v, w = quat[..., :3], quat[..., 3:]
    square = _dot(v, v)
    return v, jnp.where(
        square == 0, 0.0, jnp.arctan2(jnp.sqrt(jnp.where(square == 0, 1.0, square)), w)
    )


def _as_rotvec(quat: Any) -> Any:
    v, half = _half_angle(quat)
    small = half < 5e-4
    angle2 = 4 * half * half
    series = 2 + angle2 / 12 + 7 * angle2 * angle2 / 2880
    safe = jnp.where(small, 1.0, half)
    return jnp.where(small, series, 2 * safe / jnp.sin(safe)) * v


def _as_matrix(quat: Any) -> Any:
    x, y, z, w = (quat[..., i] for i in range(4))
    rows = (
        (x * x - y * y - z * z + w * w, 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), -x * x + y * y - z * z + w * w, 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), -x * x - y * y + z * z + w * w),
    )
    return jnp.stack([jnp.stack(r, axis=-1) for r in rows], axis=-2)


def _from_matrix(m: Any) -> Any:
    """By the largest of the trace and the diagonal elements, so that nothing small is divided
    by."""
    trace = m[..., 0, 0] + m[..., 1, 1] + m[..., 2, 2]
    candidates = []
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        parts: list[Any] = [None] * 4
        parts[i] = 1 - trace + 2 * m[..., i, i]
        parts[j] = m[..., j, i] + m[..., i, j]
        parts[k] = m[..., k, i] + m[..., i, k]
        parts[3] = m[..., k, j] - m[..., j, k]
        candidates.append(jnp.stack(parts, axis=-1))
    turn = [m[..., 2, 1] - m[..., 1, 2], m[..., 0, 2] - m[..., 2, 0], m[..., 1, 0] - m[..., 0, 1]]
    candidates.append(jnp.stack([*turn, 1 + trace], axis=-1))
    decision = jnp.stack([m[..., 0, 0], m[..., 1, 1], m[..., 2, 2], trace], axis=-1)
    choice = jnp.argmax(decision, axis=-1)[..., None]
    quat = candidates[3]
    for i in range(3):
        quat = jnp.where(choice == i, candidates[i], quat)
    return _normalised(quat)


# ---------------------------------------------------------------- Euler angles


def _sequence(seq: str) -> tuple[list[int], bool]:
    """The axes as numbers, and whether they turn with the body (capitals)."""
    if not 1 <= len(seq) <= 3:
        raise ValueError(
            f"Expected axis specification to be a non-empty string of upto 3 characters, got {seq}"
        )
    intrinsic = re.fullmatch("[XYZ]{1,3}", seq) is not None
    if not intrinsic and re.fullmatch("[xyz]{1,3}", seq) is None:
        raise ValueError(
            f"Expected axes from `seq` to be from ['x', 'y', 'z'] or ['X', 'Y', 'Z'], got {seq}"
        )
    if any(a == b for a, b in itertools.pairwise(seq)):
        raise ValueError(f"Expected consecutive axes to be different, got {seq}")
    return [_AXES[c] for c in seq.lower()], intrinsic


def _from_euler(axes: Sequence[int], intrinsic: bool, angles: Any) -> Any:
    quat: Any = None
    for place, axis in enumerate(axes):
        half = angles[..., place, None] / 2
        unit = np.eye(4, dtype=angles.dtype)
        turn = jnp.sin(half) * unit[axis] + jnp.cos(half) * unit[3]
        quat = turn if quat is None else _product(quat, turn) if intrinsic else _product(turn, quat)
    return quat


def _as_euler(quat: Any, axes: Sequence[int], intrinsic: bool) -> Any:
    """The angles of three axes (Bernardes and Viollet 2022); where the first and third cannot be
    told apart, one of them is 0."""
    i, j, k = axes[::-1] if intrinsic else axes
    symmetric = i == k
    k = 3 - i - j if symmetric else k
    sign = float((i - j) * (j - k) * (k - i) // 2)
    q = [quat[..., n] for n in range(4)]
    if symmetric:
        a, b, c, d = q[3], q[i], q[j], q[k] * sign
    else:
        a, b, c, d = q[3] - q[j], q[i] + q[k] * sign, q[j] + q[3], q[k] * sign - q[i]
    middle = 2 * jnp.arctan2(jnp.hypot(c, d), jnp.hypot(a, b))
    none, half_turn = jnp.abs(middle) <= 1e-7, jnp.abs(middle - math.pi) <= 1e-7
    total, difference = jnp.arctan2(b, a), jnp.arctan2(d, c)
    first, third = total - difference, total + difference
    alone = jnp.where(none, 2 * total, 2 * difference * (1.0 if intrinsic else -1.0))
    locked = none | half_turn
    first, third = (third, first) if intrinsic else (first, third)
    first, third = jnp.where(locked, alone, first), jnp.where(locked, 0.0, third)
    if not symmetric:
        middle = middle - math.pi / 2
        first, third = (first * sign, third) if intrinsic else (first, third * sign)
    angles = jnp.stack([first, middle, third], axis=-1)
    return jnp.where(
        angles < -math.pi,
        angles + 2 * math.pi,
        jnp.where(angles > math.pi, angles - 2 * math.pi, angles),
    )


# ---------------------------------------------------------------- the classes


class Rotation(NamedTuple):
    """One rotation in space, or an array of them. It is a tree of one array, the unit quaternions
    with the scalar last, and made by its class methods; `*` composes rotations.

    Args:
        quat: the quaternions.

    >>> turn = spatial.transform.Rotation.from_euler("z", 90, degrees=True)
    >>> turn.apply(jnp.array([1.0, 0.0, 0.0])).round(3) + 0.0
    Array([0., 1., 0.], dtype=float32)"""

    quat: Any

    @classmethod
    def concatenate(cls, rotations: Sequence["Rotation"]) -> "Rotation":
        """The rotations of several arrays, one after the other.

        Args:
            rotations: a sequence of rotations or arrays of them.
        Returns:
            An array of rotations."""
        return cls(jnp.concatenate([r.quat for r in rotations]))

    @classmethod
    def from_euler(cls, seq: str, angles: ArrayLike, degrees: bool = False) -> "Rotation":
        """Turns about one to three axes in succession.

        Args:
            seq: the axes, such as "xyz" for axes that stay, or "XYZ" for axes that turn with the
                body.
            angles: an angle for each axis, along the last axis.
            degrees: whether the angles are in degrees rather than in radians.
        Returns:
            A rotation, or an array of them."""
        axes, intrinsic = _sequence(seq)
        (angles,) = promote_inexact(jnp.asarray(angles))
        angles = jnp.asarray(angles)
        if len(seq) == 1 and (angles.ndim == 0 or angles.shape[-1] != 1):
            angles = angles[..., None]
        if angles.ndim == 0 or angles.shape[-1] != len(seq):
            raise ValueError(
                f"from_euler: angles for {seq!r} must have shape (..., {len(seq)}), got"
                f" {angles.shape}"
            )
        return cls(_from_euler(axes, intrinsic, angles * _factor("in", degrees)))

    @classmethod
    def from_matrix(cls, matrix: ArrayLike) -> "Rotation":
        """The rotations that matrices describe.

        Args:
            matrix: orthogonal matrices of determinant 1 in the last two axes.
        Returns:
            A rotation, or an array of them."""
        matrix = _floats(matrix, 3, "matrix")
        if matrix.shape[-2:] != (3, 3):
            raise ValueError(f"Rotation: matrix must have shape (..., 3, 3), got {matrix.shape}")
        return cls(_from_matrix(matrix))

    @classmethod
    def from_mrp(cls, mrp: ArrayLike) -> "Rotation":
        """The rotations that modified Rodrigues parameters describe.

        Args:
            mrp: vectors along the axis, as long as the tangent of a quarter of the angle.
        Returns:
            A rotation, or an array of them."""
        mrp = _floats(mrp, 3, "mrp")
        square = _dot(mrp, mrp)
        return cls(jnp.concatenate([2 * mrp, 1 - square], axis=-1) / (1 + square))

    @classmethod
    def from_quat(cls, quat: ArrayLike) -> "Rotation":
        """The rotations that quaternions describe.

        Args:
            quat: quaternions (x, y, z, w) along the last axis, of any length but 0.
        Returns:
            A rotation, or an array of them."""
        return cls(_normalised(_floats(quat, 4, "quat")))

    @classmethod
    def from_rotvec(cls, rotvec: ArrayLike, degrees: bool = False) -> "Rotation":
        """The rotations that rotation vectors describe.

        Args:
            rotvec: vectors along the axis, as long as the angle.
            degrees: whether the angle is in degrees rather than in radians.
        Returns:
            A rotation, or an array of them."""
        return cls(_from_rotvec(_floats(rotvec, 3, "rotvec") * _factor("in", degrees)))

    @classmethod
    def identity(cls, num: int | None = None, dtype: DTypeLike = float) -> "Rotation":
        """The rotation that moves nothing.

        Args:
            num: how many of them; None is one without an axis.
            dtype: of the quaternions.
        Returns:
            A rotation, or an array of them."""
        quat = jnp.asarray([0.0, 0.0, 0.0, 1.0], dtype=dtype)
        return cls(quat if num is None else jnp.tile(quat, (num, 1)))

    @classmethod
    def random(cls, random_key: ArrayLike, num: int | None = None) -> "Rotation":
        """Rotations drawn uniformly.

        Args:
            random_key: a key of `random.key`.
            num: how many; None is one without an axis.
        Returns:
            A rotation, or an array of them.
        Differs from SciPy:
            A key takes the place of a generator."""
        return cls(_normalised(normal(random_key, (4,) if num is None else (num, 4))))

    def __getitem__(self, indexer: Any) -> "Rotation":  # type: ignore[override]
        if self.single:
            raise TypeError("Single rotation is not subscriptable.")
        return Rotation(self.quat[indexer])

    def __len__(self) -> int:
        if self.single:
            raise TypeError("Single rotation has no len().")
        return int(self.quat.shape[0])

    def __mul__(self, other: "Rotation") -> "Rotation":  # type: ignore[override]
        """The rotation by `other` and then by this one."""
        return Rotation(_product(*jnp.broadcast_arrays(self.quat, other.quat)))

    def apply(self, vectors: ArrayLike, inverse: bool = False) -> Array:
        """Vectors after the rotation.

        Args:
            vectors: vectors along the last axis.
            inverse: whether to turn back instead.
        Returns:
            Vectors."""
        matrix = self.as_matrix()
        matrix = jnp.where(inverse, jnp.matrix_transpose(matrix), matrix)
        return jnp.matmul(matrix, _floats(vectors, 3, "vectors")[..., None])[..., 0]

    def as_euler(self, seq: str, degrees: bool = False) -> Array:
        """The angles of turns about three axes that make up the rotation.

        Args:
            seq: the three axes, such as "xyz" for axes that stay, or "XYZ" for axes that turn with
                the body.
            degrees: whether the angles are in degrees rather than in radians.
        Returns:
            Angles along the last axis, from -pi to pi; where they are not unique, the first or the
            last is 0.
        Differs from SciPy:
            There is no warning where they are not unique."""
        if len(seq) != 3:
            raise ValueError(f"Expected 3 axes, got {seq}.")
        return _as_euler(self.quat, *_sequence(seq)) * _factor("out", degrees)

    def as_matrix(self) -> Array:
        """The orthogonal matrices of the rotations.

        Returns:
            Matrices in the last two axes."""
        return _as_matrix(self.quat)

    def as_mrp(self) -> Array:
        """The modified Rodrigues parameters of the rotations.

        Returns:
            Vectors along the axis, as long as the tangent of a quarter of the angle, at most 1."""
        quat = jnp.where(self.quat[..., 3:] < 0, -self.quat, self.quat)
        return quat[..., :3] / (1 + quat[..., 3:])

    def as_rotvec(self, degrees: bool = False) -> Array:
        """The rotation vectors of the rotations.

        Args:
            degrees: whether the angle is in degrees rather than in radians.
        Returns:
            Vectors along the axis, as long as the angle, from 0 to pi."""
        return _as_rotvec(self.quat) * _factor("out", degrees)

    def as_quat(self, canonical: bool = False, scalar_first: bool = False) -> Array:
        """The unit quaternions of the rotations.

        Args:
            canonical: whether, of the two that mean a rotation, the one with a positive scalar is
                chosen.
            scalar_first: whether the scalar stands first rather than last.
        Returns:
            Quaternions along the last axis."""
        quat = self.quat
        if canonical:
            x, y, z, w = (quat[..., i : i + 1] for i in range(4))
            decides = jnp.where(w != 0, w, jnp.where(x != 0, x, jnp.where(y != 0, y, z)))
            quat = jnp.where(decides < 0, -quat, quat)
        return jnp.roll(quat, 1, axis=-1) if scalar_first else quat

    def inv(self) -> "Rotation":
        """The rotations back.

        Returns:
            A rotation, or an array of them."""
        return Rotation(self.quat * np.array([-1, -1, -1, 1], self.quat.dtype))

    def magnitude(self) -> Array:
        """The angles of the rotations.

        Returns:
            Numbers from 0 to pi."""
        return 2 * _half_angle(self.quat)[1][..., 0]

    def mean(self, weights: ArrayLike | None = None) -> "Rotation":
        """The rotation that is nearest to all.

        Args:
            weights: how much each rotation counts; None is all the same.
        Returns:
            A rotation."""
        quat = self.quat
        weights = (
            jnp.ones(len(self), quat.dtype)
            if weights is None
            else jnp.asarray(weights, dtype=quat.dtype)
        )
        if weights.ndim != 1:
            raise ValueError(f"Expected `weights` to be 1 dimensional, got shape {weights.shape}.")
        if weights.shape[0] != len(self):
            raise ValueError(
                "Expected `weights` to have number of values equal to number of rotations, got "
                f"{weights.shape[0]} values and {len(self)} rotations."
            )
        return Rotation(jnp.linalg.eigh((weights * quat.T) @ quat)[1][:, -1])

    @property
    def single(self) -> bool:
        """Whether this is one rotation and no array of them."""
        return self.quat.ndim == 1


class Slerp(NamedTuple):
    """Rotations between given ones, with constant speed in each interval. It is made by
    `Slerp.init`, and called with times.

    Args:
        times: the times of the given rotations.
        timedelta: how long each interval is.
        rotations: the rotation at the start of each interval.
        rotvecs: the rotation vector of each interval.

    >>> keys = spatial.transform.Rotation.from_euler("z", jnp.array([[0.0], [90.0]]), degrees=True)
    >>> slerp = spatial.transform.Slerp.init(jnp.array([0.0, 1.0]), keys)
    >>> slerp(jnp.array([0.5])).as_euler("xyz", degrees=True)[0, 2].round(2)
    Array(45., dtype=float32)"""

    times: Any
    timedelta: Any
    rotations: Rotation
    rotvecs: Any

    @classmethod
    def init(cls, times: ArrayLike, rotations: Rotation) -> "Slerp":
        """A function of times, from given rotations.

        Args:
            times: when each rotation is reached, rising.
            rotations: as many rotations.
        Returns:
            A `Slerp`."""
        if not isinstance(rotations, Rotation):
            raise TypeError("`rotations` must be a `Rotation` instance.")
        if rotations.single or len(rotations) == 1:
            raise ValueError("`rotations` must be a sequence of at least 2 rotations.")
        times = jnp.asarray(times, dtype=rotations.quat.dtype)
        if times.ndim != 1:
            raise ValueError(
                f"Expected times to be specified in a 1 dimensional array, got {times.ndim}"
                " dimensions."
            )
        if times.shape[0] != len(rotations):
            raise ValueError(
                "Expected number of rotations to be equal to number of timestamps given, got "
                f"{len(rotations)} rotations and {times.shape[0]} timestamps."
            )
        begin, end = rotations.__getitem__(slice(-1)), rotations.__getitem__(slice(1, None))
        return cls(times, jnp.diff(times), begin, (begin.inv() * end).as_rotvec())

    def __call__(self, times: ArrayLike) -> Rotation:
        times = jnp.asarray(times, dtype=self.times.dtype)
        if times.ndim > 1:
            raise ValueError("`times` must be at most 1-dimensional.")
        last = self.timedelta.shape[0] - 1
        k = jnp.clip(jnp.searchsorted(self.times, times) - 1, 0, last)
        share = (times - self.times[k]) / self.timedelta[k]
        return self.rotations[k] * Rotation.from_rotvec(self.rotvecs[k] * share[..., None])


_guards.guard_public(globals())
