"""Spans reach the recorder, if there is one."""

from __future__ import annotations

import threading

import pytest

from calque.machine.spans import Span, now, record_with, recorded, span


class Kept(list[Span]):
    def add(self, made: Span) -> None:
        self.append(made)


def test_nobody_is_told_without_a_recorder() -> None:
    assert not recorded()
    with span("trace", "f") as nothing:
        assert nothing is None


def test_the_recorder_is_told_of_spans_that_fail_too() -> None:
    kept = Kept()
    before = now()
    assert record_with(kept) is None
    try:
        assert recorded()
        with span("compile", "f", {"equations": 3}), span("trace", "g"):
            pass
        with pytest.raises(KeyError), span("trace", "h"):
            raise KeyError
    finally:
        assert record_with(None) is kept
    assert [(s.kind, s.name, s.details) for s in kept] == [
        ("trace", "g", {}),
        ("compile", "f", {"equations": 3}),
        ("trace", "h", {}),
    ]
    assert all(before <= s.begin <= s.end for s in kept)
    assert {s.thread for s in kept} == {threading.get_ident()}
