"""Checks of exported programs that can be left out."""

from calque.xla.exporting.checks import DisabledSafetyCheck


def test_checks_are_values() -> None:
    platform = DisabledSafetyCheck.platform()
    call = DisabledSafetyCheck.custom_call("f")
    assert platform == DisabledSafetyCheck.platform() != call
    assert {platform, call, DisabledSafetyCheck.custom_call("f")} == {platform, call}
    assert (platform.is_custom_call(), call.is_custom_call()) == (None, "f")
    assert repr(call) == "custom_call:f" and platform != "platform"
