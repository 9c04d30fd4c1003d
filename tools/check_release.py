#!/usr/bin/env python3
"""Checks that a tag may be released: it names the version of the package, CITATION.cff says the
same, the changelog has closed that version, and the addresses of the project are real.

    python tools/check_release.py v0.2.0

The version stands in one place, `calque.__version__`. To make a release: set it there and in
CITATION.cff, give the changelog's heading its date (`## 0.2.0 (2026-12-01)`), and tag the commit
`v0.2.0`; the workflow in .github/workflows/release.yml does the rest.
"""

import argparse
import ast
import pathlib
import re
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent


def version_of(source: str) -> str:
    """The version that the source of the package gives itself."""
    for statement in ast.parse(source).body:
        if isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Constant):
            if [t.id for t in statement.targets if isinstance(t, ast.Name)] == ["__version__"]:
                return str(statement.value.value)
    raise ValueError("the package gives itself no __version__")


def problems(tag: str, root: pathlib.Path = ROOT) -> list[str]:
    """What speaks against a release of this tag."""
    version = version_of((root / "src" / "calque" / "__init__.py").read_text())
    found = []
    if tag != f"v{version}":
        found.append(f"the tag is {tag}, the version of the package {version}")
    cited = re.search(r"^version: (\S+)$", (root / "CITATION.cff").read_text(), re.M)
    if cited is None or cited[1] != version:
        found.append(f"CITATION.cff has the version {cited and cited[1]}, the package {version}")
    heading = re.search(
        rf"^## {re.escape(version)} \((.*)\)$", (root / "CHANGELOG.md").read_text(), re.M
    )
    if heading is None:
        found.append(f"CHANGELOG.md has no heading `## {version} (date)`")
    elif not re.fullmatch(r"\d{4}-\d\d-\d\d", heading[1]):
        found.append(f"CHANGELOG.md says that {version} is {heading[1]}: give it a date")
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    for name, address in project["urls"].items():
        if ".example" in address:
            found.append(f"the address {name} in pyproject.toml leads nowhere: {address}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("tag")
    found = problems(parser.parse_args().tag)
    for problem in found:
        print(problem)
    print(f"{len(found)} problems")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
