"""One call over time."""

import xml.etree.ElementTree as xml

from calque.explaining import timeline as module
from calque.explaining.timeline import Bar, rows_of, timeline


def bars():
    return [
        Bar("first", "call-0", frozenset({"0:3"}), 0, 1000.0, 6000.0),
        Bar("a < b", "call-1", frozenset(), 1, 6000.0, 11000.0),
        Bar("short", "call-2", frozenset(), 0, 11000.0, 11001.0),
    ]


def test_bars_are_drawn_to_scale():
    svg = xml.fromstring(timeline(bars(), ["here", "there"]))
    drawn = [g for g in svg.iter("g") if g.get("class") == "bar"]
    rects = [g.find("rect") for g in drawn]
    assert [g.get("data-step") for g in drawn] == ["call-0", "call-1", "call-2"]
    assert drawn[0].get("data-line") == "0:3" and drawn[1].get("data-line") is None
    first, second, third = [(float(r.get("x")), float(r.get("width"))) for r in rects]
    assert first[0] == 0 and abs(second[0] - first[1]) < 0.1 and abs(first[1] - 499.95) < 0.1
    assert third[1] == module.LEAST
    assert rects[0].get("y") != rects[1].get("y")
    assert drawn[1].find("title").text == "a < b: 5 us"
    rows = [t.text for t in svg.iter("text") if t.get("class") == "row"]
    assert rows == ["here", "there"]


def test_times_stand_at_round_numbers():
    svg = xml.fromstring(timeline(bars(), ["here"]))
    ticks = [t.text for t in svg.iter("text") if t.get("class") == "tick"]
    assert ticks == ["0", "2 us", "4 us", "6 us", "8 us", "10 us"]


def test_too_many_bars_are_counted(monkeypatch):
    monkeypatch.setattr(module, "MOST", 1)
    assert "and 2 more" in timeline(bars(), ["here"])
    assert "no compiled step" in timeline([], [])


def test_the_thread_of_the_call_comes_first():
    assert rows_of([7, 9, 7, 5], 9) == {9: 0, 7: 1, 5: 2}
