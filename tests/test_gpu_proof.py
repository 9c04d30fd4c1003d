"""The tool that proves a GPU, on XLA's CPU: some of its checks, its programs, and its verdict."""

import importlib.util
import pathlib

import pytest

from tests.xla.mlir import needs_jaxlib

TOOL = pathlib.Path(__file__).resolve().parent.parent / "tools" / "gpu_proof.py"
if not TOOL.exists():
    pytest.skip("the tools are not beside the tests", allow_module_level=True)
spec = importlib.util.spec_from_file_location("gpu_proof", TOOL)
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


@needs_jaxlib
def test_checks_hold():
    found = dict(tool.checks("xla_cpu"))
    assert len(found) >= 20
    for name in ("random bits", "cholesky", "svd", "memories", "donated memory", "DLPack"):
        assert found[name](), name


@needs_jaxlib
def test_each_group_runs():
    found = tool.measured("calque", "xla_cpu", 32, 1)
    assert {name.partition(":")[0] for name in found} == {*tool.GROUPS, "small call"}
    assert all(seconds > 0 for seconds, _ in found.values())


def test_failing_checks_and_slow_groups_are_told(monkeypatch, capsys):
    planted = [("holds", lambda: True), ("fails", lambda: False), ("raises", lambda: 1 / 0)]
    monkeypatch.setattr(tool, "checks", lambda platform: iter(planted))
    assert tool.check_all("any") == 2
    said = capsys.readouterr().out
    assert "WRONG" in said and "FAILED by ZeroDivisionError" in said
    row = {"calque": 1e-3, "jax": 1e-3, "speed": 1.0, "agree": True}
    rows = {f"{group}: program": row for group in tool.GROUPS}
    assert tool.report(rows) == 0
    rows["dot: program"] = {**row, "speed": 0.9, "agree": False}
    assert tool.report(rows) == 2
    said = capsys.readouterr().out
    assert said.count("TOO SLOW") == said.count("OTHER RESULTS") == 1
