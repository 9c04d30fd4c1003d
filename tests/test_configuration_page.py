"""The page on configuration names every variable that the source reads, and every option with its
default."""

import json
import os
import pathlib
import re
import subprocess
import sys

from calque.core.foreign_flags import FOREIGN

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "guide" / "configuration.md").read_text()
VARIABLE = re.compile(r"\bCALQUE_[A-Z0-9_]+")
SOURCE = "".join(p.read_text() for p in sorted((ROOT / "src").rglob("*.py")))
READ_DEFAULTS = """
import json, calque
print(json.dumps({n.removeprefix("calque_"): repr(v) for n, v in calque.config.values.items()}))
"""


def defaults() -> dict[str, str]:
    """The options in a process in which nobody has set or added any, with their defaults."""
    ours = ("CALQUE_", "JAX_")
    plain = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    kept = {"CALQUE_CACHE_DIR": os.environ.get("CALQUE_CACHE_DIR")}
    environment = {**plain, **{name: value for name, value in kept.items() if value}}
    command = [sys.executable, "-c", READ_DEFAULTS]
    out = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return dict(json.loads(out.stdout))


def rows(section: str) -> dict[str, str]:
    """What stands in the second column of the table under a heading, by the first."""
    text = PAGE.split(f"## {section}\n", 1)[1].split("\n## ", 1)[0]
    found = re.findall(r"^\| `(\w+)` \| (.*?) \|", text, re.MULTILINE)
    assert len(found) == len(dict(found)), "a name stands there twice"
    return dict(found)


def test_every_variable_of_the_source_is_explained() -> None:
    read = set(VARIABLE.findall(SOURCE))
    assert {"CALQUE_CACHE_DIR", "CALQUE_NUM_THREADS", "CALQUE_CPU"} <= read
    assert read <= set(VARIABLE.findall(PAGE))


def test_every_variable_of_the_page_is_read() -> None:
    options = {f"CALQUE_{name.upper()}" for name in rows("Options")} | {"CALQUE_NAME"}
    assert set(VARIABLE.findall(PAGE)) <= set(VARIABLE.findall(SOURCE)) | options
    assert set(rows("Variables of the machine")) <= set(VARIABLE.findall(SOURCE))


def test_every_option_stands_there_with_its_default() -> None:
    known = {name: value for name, value in defaults().items() if name not in FOREIGN}
    assert {name: default.strip("`") for name, default in rows("Options").items()} == known


def test_every_option_without_effect_is_listed() -> None:
    listed = PAGE.split("All of them:", 1)[1].split("```text", 1)[1].split("```", 1)[0]
    assert [name.strip() for name in listed.split(",")] == sorted(FOREIGN)
