"""The tool that measures an installation."""

import importlib.util
import pathlib
import zipfile

import pytest

TOOL = pathlib.Path(__file__).resolve().parent.parent / "tools" / "check_install.py"
if not TOOL.exists():
    pytest.skip("the tools are not beside the tests", allow_module_level=True)
spec = importlib.util.spec_from_file_location("check_install", TOOL)
assert spec is not None and spec.loader is not None
tool = importlib.util.module_from_spec(spec)
spec.loader.exec_module(tool)

METADATA = """Metadata-Version: 2.4
Name: calque
License-Expression: Apache-2.0
Classifier: Typing :: Typed
Requires-Python: >=3.11
"""
FILES = (
    "calque/__init__.py",
    "calque/py.typed",
    "calque/core/vocabulary.pyi",
    "calque/images/x86-64-v3.pack",
    "calque-1.0.dist-info/entry_points.txt",
    "calque-1.0.dist-info/licenses/LICENSE",
)


def wheel(path, files=FILES, metadata=METADATA):
    with zipfile.ZipFile(path, "w") as file:
        for name in files:
            file.writestr(name, "")
        file.writestr("calque-1.0.dist-info/METADATA", metadata)
    return str(path)


def test_a_whole_wheel_lacks_nothing(tmp_path):
    assert tool.lacks(wheel(tmp_path / "a.whl"), images=True) == []


@pytest.mark.parametrize(
    "missing, said", list(zip(FILES[1:], ("types", "stubs", "images", "commands", "licence")))
)
def test_what_a_wheel_lacks_is_said(tmp_path, missing, said):
    rest = [name for name in FILES if name != missing]
    assert tool.lacks(wheel(tmp_path / "a.whl", rest), images=True) == [said]
    expected = [] if said == "images" else [said]
    assert tool.lacks(wheel(tmp_path / "b.whl", rest), images=False) == expected


def test_what_is_not_declared_is_said(tmp_path):
    metadata = METADATA.replace("License-Expression", "License")
    found = tool.lacks(wheel(tmp_path / "a.whl", metadata=metadata), images=True)
    assert found == ["License-Expression: Apache-2.0"]


def test_bytes_go_to_what_they_belong_to(tmp_path):
    for name, size in {
        "scipy/linalg/x.so": 500,
        "scipy.libs/blas.so": 300,
        "scipy-1.17.1.dist-info/RECORD": 7,
        "six.py": 20,
        "calque/__init__.py": 10,
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes(size))
    found = tool.shares(tmp_path)
    assert list(found.items()) == [("scipy", 807), ("six", 20), ("calque", 10)]
