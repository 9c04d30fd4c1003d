"""Messages that other readers understand."""

from calque.profiling.protobuf import data, number, numbers, varint

from .shared import message


def test_fields():
    raw = number(1, 300) + data(2, "text") + numbers(3, [1, 128]) + data(2, number(5, 0))
    assert raw[:3] == b"\x08\xac\x02"  # the example of the format's own description
    assert message(raw) == {1: [300], 2: [b"text", b"\x28\x00"], 3: [b"\x01\x80\x01"]}
    assert len(varint(-1)) == 10
