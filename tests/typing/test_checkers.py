"""What type checkers see of calque: ordinary code passes, mistakes are found."""

import ast
import pathlib
import shutil

import pytest

from tests.typing import classes, ordinary
from tests.typing.checkers import Reports, available, mypy, pyright

HERE = pathlib.Path(__file__).parent
MARK = "#! "


@pytest.fixture(scope="module", params=[mypy, pyright], ids=["mypy", "pyright"])
def reports(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> tuple[str, Reports]:
    """The name of a checker and what it says of the files, read at once."""
    available(request.param)
    folder = tmp_path_factory.mktemp("user")
    names = ["ordinary", "classes", "mistakes"]
    for name in names:
        shutil.copy(HERE / f"{name}.py", folder)
    return request.param.__name__, request.param(folder, names)


def planted() -> list[tuple[range, str, dict[str, str]]]:
    """The lines of each mistake, its text, and the words that each checker must say."""
    text = (HERE / "mistakes.py").read_text()
    lines, found = text.splitlines(), []
    for statement in ast.parse(text).body:
        above = lines[statement.lineno - 2]
        if above.startswith(MARK):
            first, _, second = above.removeprefix(MARK).partition(" | ")
            words = {"mypy": first, "pyright": second or first}
            where = range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)
            found.append((where, lines[statement.lineno - 1], words))
    return found


def test_ordinary_code_passes(reports: tuple[str, Reports]) -> None:
    assert reports[1]["ordinary"] == [] and reports[1]["classes"] == []


def test_every_mistake_is_found_and_nothing_else(reports: tuple[str, Reports]) -> None:
    checker, found = reports
    mistakes = planted()
    assert len(mistakes) == (HERE / "mistakes.py").read_text().count("\n" + MARK) >= 60
    missed = [
        (text, words[checker])
        for where, text, words in mistakes
        if not any(line in where and words[checker] in said for line, said in found["mistakes"])
    ]
    assert missed == []
    marked = {line for where, _, _ in mistakes for line in where}
    assert [(line, said) for line, said in found["mistakes"] if line not in marked] == []


def test_ordinary_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    ordinary.main()
    assert "accuracy" in capsys.readouterr().out
    classes.main()
    assert "CpuDevice" in capsys.readouterr().out
