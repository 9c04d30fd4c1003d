"""Functions beside the devices of their arguments: they run at once; what is said of them holds."""

import numpy as np
import pytest

import calque
import calque.numpy as jnp
from calque.experimental.colocated_python import colocated_python


@colocated_python
def described(x, *, scale=1):
    """Plain Python, which needs the values."""
    return {"scaled": x * scale, "largest": np.max(np.asarray(x))}


def test_calls_run_as_plain_python():
    out = described(jnp.arange(3.0), scale=2)
    np.testing.assert_array_equal(out["scaled"], [0, 2, 4])
    assert isinstance(out["largest"], calque.Array) and out["largest"] == 2
    assert described.__name__ == "described" and "needs the values" in described.__doc__
    with pytest.raises(ValueError, match="takes no traced values"):
        calque.jit(described)(jnp.arange(3.0))


def test_what_is_said_of_calls_is_checked():
    three = calque.ShapeDtypeStruct((3,), np.float32)
    narrow = described.specialize(in_specs=((three,), {}))
    assert narrow(jnp.arange(3.0))["largest"] == 2
    with pytest.raises(ValueError, match=r"arguments of described is float32\[4\]"):
        narrow(jnp.arange(4.0))
    with pytest.raises(ValueError, match="in_specs already specified"):
        narrow.specialize(in_specs=((three,), {}))
    where = calque.sharding.SingleDeviceSharding(calque.devices()[0])

    def placed(x):
        return {"scaled": x.update(sharding=where), "largest": three}

    with pytest.raises(ValueError, match="results of described"):
        described.specialize(out_specs_fn=placed)(jnp.arange(3.0))


def test_functions_without_arguments_say_where_they_run():
    f = colocated_python(lambda: jnp.ones(2))
    with pytest.raises(ValueError, match="No devices found"):
        f()
    assert f.specialize(devices=calque.devices()[:1])().shape == (2,)
    with pytest.raises(TypeError, match="callable"):
        colocated_python(3)
