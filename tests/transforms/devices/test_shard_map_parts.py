"""Arrays as parts with a dimension for each axis, and back."""

import numpy as np
import pytest

from calque.sharding import PartitionSpec as P
from calque.transforms.devices.shard_map_parts import of_parts, whole
from calque.transforms.engines.axes import Axis

AXES = [Axis("x", 2, devices=True), Axis("y", 3, devices=True)]
ARRAY = np.arange(72.0, dtype=np.float32).reshape(6, 12)


@pytest.mark.parametrize(
    "spec", [P(), P("x"), P("y", "x"), P(("x", "y")), P(None, ("y", "x")), P("x", "y")]
)
def test_parts_are_put_together_again(spec):
    seen = []

    def body(part):
        seen.append(part.shape)
        return [part]

    outs, varying, _ = of_parts(body, [ARRAY], [spec], AXES)
    sizes = {"x": 2, "y": 3}
    cuts = [e if isinstance(e, tuple) else (e,) if e else () for e in spec.padded(2)]
    want = tuple(n // int(np.prod([sizes[a] for a in c])) for n, c in zip(ARRAY.shape, cuts))
    assert seen == [want]
    np.testing.assert_array_equal(whole(outs[0], varying[0], spec, AXES), ARRAY)


def test_summands_are_kept_as_their_sum():
    spec = P(unreduced={"x"})
    outs, varying, _ = of_parts(lambda part: [part], [ARRAY], [spec], AXES)
    np.testing.assert_array_equal(whole(outs[0], varying[0], spec, AXES), ARRAY)
    same, none, _ = of_parts(lambda part: [part], [ARRAY], [P()], AXES)
    np.testing.assert_array_equal(whole(same[0], none[0], spec, AXES), 2 * ARRAY)
