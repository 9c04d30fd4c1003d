"""FlatBuffers by the description of a format: written bytes are read back, cut ones are refused."""

from __future__ import annotations

from typing import Any

import pytest

from calque.xla.exporting.flat_buffers import decoded, encoded, size_of

FORMAT: Any = {
    "Leaf": (("name", "string"), ("small", "i8"), ("flag", "bool")),
    "Tree": (
        ("version", "u16"),
        ("leaf", "Leaf"),
        ("leaves", "[Leaf]"),
        ("names", "[string]"),
        ("numbers", "[u32]"),
        ("shorts", "[u16]"),
        ("data", "bytes"),
        ("count", "u32"),
        ("inner", "Tree"),
    ),
}
VALUE = {
    "version": 3,
    "leaf": {"name": "größe", "small": -5, "flag": True},
    "leaves": [{"name": "a"}, {"small": 7}, {}],
    "names": ["x", "", "long name"],
    "numbers": [1, 2**32 - 1],
    "shorts": [],
    "data": b"\0\1\2",
    "inner": {"count": 9, "numbers": [4]},
}


def test_what_is_written_is_read() -> None:
    found = decoded(FORMAT, "Tree", encoded(FORMAT, "Tree", VALUE))
    assert found["version"] == 3 and found["count"] == 0
    assert found["leaf"] == VALUE["leaf"] and found["names"] == VALUE["names"]
    assert [leaf["name"] for leaf in found["leaves"]] == ["a", None, None]
    assert [leaf["small"] for leaf in found["leaves"]] == [0, 7, 0]
    assert found["numbers"] == VALUE["numbers"] and found["shorts"] == []
    assert found["data"] == b"\0\1\2"
    assert found["inner"]["count"] == 9 and found["inner"]["inner"] is None


def test_fields_that_a_reader_or_a_writer_does_not_know() -> None:
    older = {**FORMAT, "Tree": FORMAT["Tree"][:2]}
    assert decoded(older, "Tree", encoded(FORMAT, "Tree", VALUE))["version"] == 3
    newer = {**FORMAT, "Tree": (*FORMAT["Tree"], ("more", "u32"), ("most", "string"))}
    found = decoded(newer, "Tree", encoded(FORMAT, "Tree", VALUE))
    assert found["more"] == 0 and found["most"] is None


def test_numbers_are_aligned() -> None:
    data = encoded(FORMAT, "Tree", VALUE)
    at = data.index((2**32 - 1).to_bytes(4, "little"))
    assert at % 4 == 0 and (size_of("u16"), size_of("[u16]"), size_of("Tree")) == (2, 4, 4)


def test_bytes_that_are_none() -> None:
    data = encoded(FORMAT, "Tree", VALUE)
    for wrong in (b"", b"\1", b"\xff" * 40, data[: len(data) // 2]):
        with pytest.raises(ValueError, match="bytes"):
            decoded(FORMAT, "Tree", wrong)
