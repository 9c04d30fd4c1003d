"""`make conformance`: what it runs where there is a kit, and what it says where there is none."""

import importlib.util
import pathlib
import sys

import pytest

TOOL = pathlib.Path(__file__).resolve().parent.parent / "tools" / "conformance.py"
if not TOOL.exists():
    pytest.skip("the tools are not beside the tests", allow_module_level=True)
spec = importlib.util.spec_from_file_location("conformance", TOOL)
assert spec is not None and spec.loader is not None
conformance = importlib.util.module_from_spec(spec)
spec.loader.exec_module(conformance)


@pytest.fixture
def kit(tmp_path, monkeypatch):
    """A kit whose programs write down how they are called."""
    record = tmp_path / "calls"
    for name in conformance.NEEDED:
        path = tmp_path / "kit" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            f"import sys\nopen({str(record)!r}, 'a').write(' '.join(sys.argv) + '\\n')\n"
            f"sys.exit('--report' in sys.argv)\n"
        )
    monkeypatch.setenv("CONFORMANCE_PYTHON", sys.executable)
    monkeypatch.setenv("CONFORMANCE_OUT", str(tmp_path / "out"))
    monkeypatch.setenv("CONFORMANCE_SECONDS", "7")
    return tmp_path / "kit"


def test_without_a_kit_it_says_so(monkeypatch, capsys, tmp_path) -> None:
    monkeypatch.delenv("CONFORMANCE_KIT", raising=False)
    assert conformance.main([]) == 0
    assert "skipped, set CONFORMANCE_KIT" in capsys.readouterr().out
    assert conformance.main([str(tmp_path)]) == 0
    assert "has no run_jax_suite.py, env.sh, clients/run_clients.py" in capsys.readouterr().out


def test_what_is_run(kit, monkeypatch, capsys) -> None:
    monkeypatch.setenv("CONFORMANCE_KIT", str(kit))
    assert conformance.main([]) == 1  # one of them ended with a failure, and the rest was run
    calls = (kit.parent / "calls").read_text().splitlines()
    names = [pathlib.Path(c.split()[0]).name for c in calls]
    assert names == ["run_jax_suite.py"] * 2 + ["run_clients.py"] * 3 + ["run_programs.py"]
    assert "--impl jax" in calls[0] and "--impl calque" in calls[1]
    control = str(kit.parent / "out" / "suite.jax.json")
    assert control in calls[0] and f"--control {control}" in calls[1]
    assert all("--level own" in c for c in calls[2:]) and "--seconds 7" in calls[2]
    linked = kit.parent / "out" / "work" / "extra" / "calque"
    assert linked.resolve() == TOOL.parent.parent / "src" / "calque"
