"""The tool that says what speaks against a release."""

import importlib.util
import pathlib
import re

import pytest

import calque

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOOL = ROOT / "tools" / "check_release.py"
if not TOOL.exists():
    pytest.skip("the tools are not beside the tests", allow_module_level=True)
spec = importlib.util.spec_from_file_location("check_release", TOOL)
assert spec is not None and spec.loader is not None
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)


@pytest.fixture
def ready(tmp_path):
    """A tree that may be released as v1.2.3."""
    (tmp_path / "src" / "calque").mkdir(parents=True)
    (tmp_path / "src" / "calque" / "__init__.py").write_text('import x\n__version__ = "1.2.3"\n')
    (tmp_path / "CITATION.cff").write_text("title: calque\nversion: 1.2.3\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changelog\n\n## 1.2.3 (2026-01-02)\n\n- All.\n")
    (tmp_path / "pyproject.toml").write_text('[project]\nurls = { Source = "https://a.org/b" }\n')
    return tmp_path


def test_nothing_speaks_against_a_tree_that_is_ready(ready):
    assert tool.problems("v1.2.3", ready) == []


@pytest.mark.parametrize(
    "file, old, new, said",
    [
        ("src/calque/__init__.py", "1.2.3", "1.2.4", "the version of the package 1.2.4"),
        ("CITATION.cff", "1.2.3", "1.2.2", "CITATION.cff has the version 1.2.2"),
        ("CHANGELOG.md", "2026-01-02", "unreleased", "give it a date"),
        ("CHANGELOG.md", "1.2.3", "1.2.2", "has no heading `## 1.2.3 "),
        ("pyproject.toml", "a.org", "a.example", "the address Source"),
    ],
)
def test_what_is_not_ready_is_said(ready, file, old, new, said):
    path = ready / file
    path.write_text(path.read_text().replace(old, new))
    assert any(said in problem for problem in tool.problems("v1.2.3", ready))


def test_the_version_has_one_place():
    source = (ROOT / "src" / "calque" / "__init__.py").read_text()
    assert tool.version_of(source) == calque.__version__
    assert not re.search(r"^version = \"", (ROOT / "pyproject.toml").read_text(), re.M)
    assert f"\nversion: {calque.__version__}\n" in (ROOT / "CITATION.cff").read_text()
