"""Colours are for terminals."""

import sys

from calque.command_line import terminal


def test_colours(monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False, raising=False)
    assert terminal.shown("ok", "good") == "ok"
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    assert terminal.shown("ok", "good") == "\033[32mok\033[0m"
    for name, value in (("NO_COLOR", "1"), ("TERM", "dumb")):
        with monkeypatch.context() as m:
            m.setenv(name, value)
            assert terminal.shown("ok", "good") == "ok"


def test_sizes():
    assert [terminal.size(n) for n in (0, 1023, 1536, 5 << 20, 3 << 30)] == [
        "0 B",
        "1023 B",
        "1.5 KiB",
        "5.0 MiB",
        "3.0 GiB",
    ]
