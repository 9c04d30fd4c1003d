"""The checker of the house itself: floors, lazy imports, rooms that no floor names."""

import ast
import importlib.util
import pathlib

import pytest

TOOL = pathlib.Path(__file__).resolve().parent.parent / "tools" / "check_house.py"
if not TOOL.exists():
    pytest.skip("the tools are not beside the tests", allow_module_level=True)
spec = importlib.util.spec_from_file_location("check_house", TOOL)
assert spec is not None and spec.loader is not None
house = importlib.util.module_from_spec(spec)
spec.loader.exec_module(house)

KNOWN = {
    name: pathlib.Path(name)
    for name in ("calque", "calque.core", "calque.core.trace", "calque.native", "calque.scipy")
}


@pytest.mark.parametrize(
    "module, target, higher",
    [
        ("calque.core.trace", "calque.native.backend", "calque"),
        ("calque.native.backend", "calque.core.trace", None),
        ("calque.core.avals", "calque.core.trace", "calque.core"),
        ("calque.core.trace", "calque.core.avals", None),
        ("calque.core.dims", "calque.core.dtypes", None),  # on one floor
        ("calque.native.emit.kernels", "calque.native.plan.steps", "calque.native"),
        ("calque", "calque.native", None),
        ("calque.machine.lazy", "calque.random", "calque"),
    ],
)
def test_what_stands_above(module: str, target: str, higher: str | None) -> None:
    assert house.above(module, target) == higher


@pytest.mark.parametrize(
    "call, targets",
    [
        ('LazyModule("calque.native")', ["calque.native"]),
        ('lazy.function("calque.core.trace", "bind")', ["calque.core.trace"]),
        ('imported(name="calque.native")', ["calque.native"]),
        ('imported(f"calque.scipy.{name}")', ["calque.scipy"]),
        ('importlib.import_module("calque.core.nowhere")', ["calque.core"]),
        ('_lazy.offer(ops, "calque.core.trace", ("f",))', ["calque.core.trace"]),
        ('LazyModule("scipy.special")', []),
        ('LazyModule("calquer")', []),
        ('print("calque.native")', []),
        ("LazyModule(name)", []),
    ],
)
def test_lazy_imports_are_followed(call: str, targets: list[str]) -> None:
    node = ast.parse(call, mode="eval").body
    assert house.imported_lazily(node, KNOWN) == targets


def check(tmp_path: pathlib.Path, module: str, source: str) -> list[str]:
    path = tmp_path / "module.py"
    path.write_text(source)
    return house.check_module(module, path, KNOWN, [])[0]


@pytest.mark.parametrize(
    "line, way",
    [
        ("import calque.native", "imports"),
        ('x = LazyModule("calque.native")', "imports lazily"),
        ("if TYPE_CHECKING:\n    from calque import native", "names for the checker"),
    ],
)
def test_no_arrow_points_up(tmp_path: pathlib.Path, line: str, way: str) -> None:
    (problem,) = check(tmp_path, "calque.core.trace", line)
    assert f"calque.core.trace {way} calque.native, which is above it in calque" in problem
    assert not check(tmp_path, "calque.scipy.stats", line)


def test_every_room_stands_on_one_floor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(house, "FLOORS", {"calque": ["core", "native lax core"]})
    problems = house.unlisted(KNOWN)
    assert [p.split(":")[0] for p in problems] == [
        "calque.scipy stands on no floor",
        "calque.core stands in FLOORS 2 times and exists",
        "calque.lax stands in FLOORS 1 times and does not exist",
    ]


def test_the_floors_name_every_room() -> None:
    assert not house.unlisted(house.modules())


@pytest.mark.parametrize(
    "text, problem",
    [
        ("NAMES: Final = {'a': 1}", ""),
        ("NAMES: Final[dict[str, int]] = {'a': 1}", ""),
        ("__all__ = ['f']", ""),
        ("known = Table('known', 8)", ""),
        ("def f():\n    found = []", ""),
        ("class A:\n    slots = []", ""),
        ("names = {'a': 1}", "can be changed"),
        ("names: dict[str, int] = {'a': 1} | other", "can be changed"),
        ("names = [n for n in x]", "can be changed"),
        ("if x:\n    names = list(y)", "can be changed"),
        ("found: Final = {}", "is filled later"),
        ("found: Final[list[int]] = []", "is filled later"),
        ("found: Final = set()", "is filled later"),
        ("seen: Final = deque(maxlen=3)", "is filled later"),
        ("numbers: Final = itertools.count()", "is filled later"),
        ("n = 0\ndef f():\n    global n", "global n"),
        ("class A(threading.local):\n    n = 0", "belongs to a thread"),
        ("rules: Final[dict[str, int]] = process.container('rules', {})", ""),
    ],
)
def test_state_has_an_owner(text: str, problem: str) -> None:
    found = house.loose_state("calque.core.x", pathlib.Path("x.py"), ast.parse(text))
    assert len(found) == bool(problem) and all(problem in p for p in found)


def test_the_page_prints_the_floors() -> None:
    page, wanted = house.page_with_floors()
    assert page == wanted and "calque.native" in house.printed_floors()


def test_files_without_tests_are_told(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root, tests = tmp_path / "src", tmp_path / "tests"
    files = {
        "room/tested.py": "def f(): ...",
        "room/untested.py": "class A:\n    def f(self): ...",
        "room/table.py": "NAMES = ('a', 'b')",
        "room/protocols.py": "class P(Protocol):\n    def f(self): ...",
        "room/__init__.py": "def f(): ...",
    }
    for name, text in files.items():
        path = root / "calque" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tests / "room").mkdir(parents=True)
    (tests / "room" / "test_tested.py").write_text("")
    monkeypatch.setattr(house, "ROOT", root)
    monkeypatch.setattr(house, "TESTS", tests)
    known = house.modules()
    (told,) = house.untested(known)
    assert told.startswith("calque.room.untested has no tests: tests/room/test_untested.py")


def test_crowded_folders_are_told() -> None:
    full = {f"calque.room.{i}": pathlib.Path(f"room/{i}.py") for i in range(house.FOLDER_FILES)}
    assert house.crowded(full) == []
    (told,) = house.crowded(full | {"calque.room.one_more": pathlib.Path("room/one_more.py")})
    assert "room: 41 files" in told
