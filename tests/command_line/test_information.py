"""`info`."""

import json

import numpy as np

import calque
from calque.command_line.commands import main
from calque.command_line.information import version


def test_it_says_what_a_report_needs(capsys, monkeypatch):
    monkeypatch.setenv("CALQUE_ON_STALE", "warn")
    assert main(["info"]) == 0
    out = capsys.readouterr().out
    for words in (
        f"calque: {calque.__version__}",
        f"numpy: {np.__version__}",
        "processor: ",
        "cache: ",
    ):
        assert words in out
    assert "CALQUE_ON_STALE: warn" in out and "calque_on_stale: warn" in out
    assert main(["info", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["versions"]["numpy"] == np.__version__
    assert facts["machine"]["threads of kernels"] >= 1


def test_what_is_not_installed():
    assert version("no-such-package-at-all") == "-"
