"""Export is refused with what to do instead."""

import pytest

from calque import export


@pytest.mark.parametrize(
    "call",
    [
        lambda: export.export(len),
        lambda: export.deserialize(b""),
        lambda: export.symbolic_shape("a, b"),
        lambda: export.SymbolicScope(),
        lambda: export.DisabledSafetyCheck.platform(),
    ],
)
def test_refused_with_the_remedy(call):
    with pytest.raises(NotImplementedError, match="cannot export programs yet"):
        call()


def test_what_is_known():
    assert export.default_export_platform() == "cpu" and not export.is_symbolic_dim(3)
