"""Records of the interface have the sizes that its headers give them, on machines of 64 bits."""

import ctypes

import pytest

from calque.machine.foreign import structs


@pytest.mark.parametrize(
    "record, size",
    [
        (structs.ApiVersion, 24), (structs.Buffer, 48), (structs.Values, 40),
        (structs.Attributes, 48), (structs.CallFrame, 176), (structs.Metadata, 48),
        (structs.ErrorCreate, 32), (structs.State, 48), (structs.StateWithoutStage, 40),
        (structs.TypeRegister, 48), (structs.Memory, 48), (structs.Schedule, 40),
        (structs.Api, 48 + 8 * 18),
    ],
)  # fmt: skip
def test_sizes(record, size):
    assert ctypes.sizeof(record) == size


def test_a_record_knows_its_size():
    made = structs.made(structs.Values, size=3)
    assert (made.struct_size, made.size, made.extension_start) == (40, 3, None)
    assert structs.made(structs.CallFrame, struct_size=168).struct_size == 168
    assert structs.CallFrame.future.offset == 168
