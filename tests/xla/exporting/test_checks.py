"""Checks of exported programs that can be left out."""

import pytest

from calque.xla.exporting.checks import DisabledSafetyCheck, refuse_unstable


def test_checks_are_values() -> None:
    platform = DisabledSafetyCheck.platform()
    call = DisabledSafetyCheck.custom_call("f")
    assert platform == DisabledSafetyCheck.platform() != call
    assert {platform, call, DisabledSafetyCheck.custom_call("f")} == {platform, call}
    assert (platform.is_custom_call(), call.is_custom_call()) == (None, "f")
    assert repr(call) == "custom_call:f" and platform != "platform"


def test_functions_of_libraries_that_stay() -> None:
    text = "\n".join(
        f"%{i} = stablehlo.custom_call @{name}(%arg0)"
        for i, name in enumerate(["lapack_spotrf_ffi", '"mine too"', "shape_assertion", "mine"])
    )
    both = [DisabledSafetyCheck.custom_call(name) for name in ("mine", "mine too")]
    refuse_unstable("f", text, both)
    refuse_unstable("f", text, [DisabledSafetyCheck.custom_call("ALL")])
    with pytest.raises(
        ValueError, match=r"guarantees: f calls mine too\. .*custom_call\('mine too"
    ):
        refuse_unstable("f", text, both[:1])
