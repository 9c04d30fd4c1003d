"""The notebooks in examples/notebooks run from the first cell to the last, and find what they look
for. A small runner takes the place of Jupyter; where that is installed, it runs them, too."""

import ast
import importlib.util
import json
import os
import pathlib
import sys

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BOOKS = ROOT / "examples" / "notebooks"
JUPYTER = all(importlib.util.find_spec(m) for m in ("nbformat", "nbclient", "ipykernel"))


def run(name, monkeypatch):
    """The names that a notebook leaves, and what its cells show."""
    monkeypatch.chdir(BOOKS)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "pictures", raising=False)
    names, shown = {"__name__": "__main__"}, []
    for cell in json.loads((BOOKS / f"{name}.ipynb").read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        tree = ast.parse("".join(cell["source"]), cell["id"])
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, cell["id"], "exec"), names)
        if last is not None:
            value = eval(compile(ast.Expression(last.value), cell["id"], "eval"), names)
            forms = [getattr(value, form, None) for form in ("_repr_svg_", "_repr_html_")]
            shown.append(next((form() for form in forms if form), repr(value)))
    return names, shown


def test_first_steps(monkeypatch):
    names, shown = run("first_steps", monkeypatch)
    assert names["losses"][0] > 1 and names["losses"][-1] < 0.02
    assert any("sin" in text for text in shown) and any("<polyline" in text for text in shown)
    assert "loss" in shown[-1] and "calque-report" in shown[-1]


def test_waves(monkeypatch):
    names, shown = run("waves", monkeypatch)
    assert names["error"] < 0.01
    start = names["path"][0] - names["stone"]
    assert float(abs(start).max()) > 0.02  # the grid alone does not find it
    assert sum("<svg" in text for text in shown) == 3


def test_bayes(monkeypatch):
    names, shown = run("bayes", monkeypatch)
    mean, spread = names["mean"], names["spread"]
    assert (abs(mean - names["truth"]) < 3 * spread).all() and (spread < 0.5).all()
    assert (names["between"] < spread).all()  # the chains agree
    assert "<svg" in shown[-1]


def names_of_notebooks():
    return sorted(path.stem for path in BOOKS.glob("*.ipynb"))


@pytest.mark.parametrize("name", names_of_notebooks())
def test_the_form_of_the_file(name):
    book = json.loads((BOOKS / f"{name}.ipynb").read_text())
    assert book["nbformat"] == 4 and book["nbformat_minor"] == 5
    assert book["metadata"]["kernelspec"]["name"] == "python3"
    cells = book["cells"]
    assert len({cell["id"] for cell in cells}) == len(cells)
    assert cells[0]["cell_type"] == "markdown" and cells[0]["source"][0].startswith("# ")
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"] == [] and cell["execution_count"] is None
    assert f"notebooks/{name}.ipynb" in (ROOT / "examples" / "README.md").read_text()
    assert f"examples/notebooks/{name}.ipynb" in (ROOT / "README.md").read_text()


@pytest.mark.skipif(not JUPYTER, reason="nbformat, nbclient and ipykernel are not installed")
@pytest.mark.parametrize("name", names_of_notebooks())
def test_in_jupyter(name, monkeypatch):
    nbformat = importlib.import_module("nbformat")
    nbclient = importlib.import_module("nbclient")
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    book = nbformat.read(BOOKS / f"{name}.ipynb", as_version=4)
    nbformat.validate(book)
    client = nbclient.NotebookClient(book, timeout=120, resources={"metadata": {"path": BOOKS}})
    client.execute()
    outputs = [output for cell in book.cells for output in cell.get("outputs", ())]
    assert not any(output.output_type == "error" for output in outputs)
    assert any("image/svg+xml" in output.get("data", {}) for output in outputs)
