import numpy as np
import pytest

import calque
from calque.compat.private import literals


@pytest.mark.parametrize("name", [n for n in literals.__all__ if n != "LiteralArray"])
def test_no_value_is_one_of_these(name):
    cls = getattr(literals, name)
    for x in (1, 1.0, 1j, np.ones(2), calque.numpy.ones(2)):
        assert not isinstance(x, cls) and not isinstance(x, literals.LiteralArray)
    with pytest.raises(NotImplementedError, match=f"{name}.*jnp.asarray"):
        cls(1)
