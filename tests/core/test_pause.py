"""What importing calque does to the garbage collector, and what it does not."""

import os
import subprocess
import sys
import textwrap

import pytest


def run(code: str) -> str:
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    out = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert out.returncode == 0, out.stderr
    return out.stdout


def test_the_first_full_collection_thaws_what_the_import_froze() -> None:
    code = """
        import gc, weakref
        class Thing: pass
        before = Thing(); before.itself = before
        gone = weakref.ref(before)
        import calque
        assert gc.get_freeze_count() > 1000 and gc.isenabled()
        del before
        gc.collect(1)
        assert gone() is not None and gc.get_freeze_count() > 1000
        gc.collect()
        assert gone() is None and gc.get_freeze_count() < 1000
        gc.freeze()
        gc.collect()
        assert gc.get_freeze_count() > 1000
        print("as it should be")
    """
    assert run(code) == "as it should be\n"


@pytest.mark.parametrize(
    ("before", "after", "frozen"),
    [
        ("gc.disable()", "assert not gc.isenabled()", False),
        ("many = [[] for _ in range(50_000)]", "assert gc.isenabled()", False),
        ("gc.freeze()", "assert gc.isenabled()", True),
        ("", "gc.freeze(); gc.collect()", True),
        ("", "gc.unfreeze(); gc.collect()", False),
    ],
)
def test_what_programs_decide_for_themselves_stays(before: str, after: str, frozen: bool) -> None:
    code = f"import gc\n{before}\nimport calque\n{after}\nprint(gc.get_freeze_count() > 1000)"
    assert run(code) == f"{frozen}\n"
