"""Timelines for TensorBoard."""

from calque.profiling.xplane import xspace

from .shared import message


def test_threads_are_lines_and_names_have_numbers():
    events = [
        {"ph": "X", "tid": 5, "name": "sin", "ts": 1.5, "dur": 2.0},
        {"ph": "X", "tid": 6, "name": "cos", "ts": 0.0, "dur": 1.0},
        {"ph": "X", "tid": 5, "name": "sin", "ts": 4.0, "dur": 1.0},
        {"ph": "M", "tid": 5, "name": "thread_name", "args": {"name": "MainThread"}},
    ]
    plane = message(message(xspace(events, 1000))[1][0])
    assert plane[2] == [b"/host:CPU"]
    lines = {m[1][0]: m for m in map(message, plane[3])}
    assert lines[5][2] == [b"MainThread"] and lines[5][3] == [1000]
    first = message(lines[5][4][0])
    names = {m[1][0]: message(m[2][0])[2][0] for m in map(message, plane[4])}
    assert first == {1: first[1], 2: [1_500_000], 3: [2_000_000]}
    assert names[first[1][0]] == b"sin" and len(names) == 2 and len(lines[5][4]) == 2
