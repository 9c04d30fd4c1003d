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


SETTLING = """
    import gc, weakref
    class Thing: pass
    {before}
    import calque
    from calque.core import pause
    {after}
    collections = lambda: [s["collections"] for s in gc.get_stats()]
    def make(n):
        with pause.no_collection():
            thing = Thing(); thing.itself = thing
            kept = [[] for _ in range(n)]
        return weakref.ref(thing), kept
    gc.collect()
    frozen, before = gc.get_freeze_count() > 1000, collections()
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", ""),
        ("many = [[] for _ in range(50_000)]", ""),
    ],
)
def test_what_is_made_while_collection_waits_is_searched_by_full_collections(
    before: str, after: str
) -> None:
    code = SETTLING.format(before=before, after=after)
    code += """
    gone, kept = make(40_000)
    assert collections() == before and gone() is not None
    gc.collect(1)
    assert gone() is not None
    gc.collect()
    assert gone() is None and gc.isenabled() and gc.get_freeze_count() < 1000
    few, kept = make(10)
    gc.collect(0)
    assert few() is None  # found as ever
    print("as it should be")
    """
    assert run(code) == "as it should be\n"


def test_what_the_import_froze_stays_so_until_the_first_full_collection() -> None:
    code = SETTLING.format(before="", after="").replace(
        "    gc.collect()\n    frozen", "    frozen"
    )
    code += """
    gone, kept = make(40_000)
    assert frozen and gc.get_freeze_count() > 40_000 and collections() == before
    gc.collect()
    assert gone() is None and gc.get_freeze_count() < 1000
    print("as it should be")
    """
    assert run(code) == "as it should be\n"


def test_only_so_much_counts_as_old_without_a_search() -> None:
    code = SETTLING.format(before="", after="")
    code += """
    kept = [make(pause.MOST // 4) for _ in range(10)]
    assert collections() != before  # the collector looked again before all were made
    print("as it should be")
    """
    assert run(code) == "as it should be\n"


def test_where_a_program_has_frozen_objects_the_collector_decides() -> None:
    code = SETTLING.format(before="", after="gc.collect(); gc.freeze()")
    code += """
    held = gc.get_freeze_count()
    gone, kept = make(40_000)
    [[] for _ in range(2000)]
    assert frozen and abs(gc.get_freeze_count() - held) < 1000
    assert collections() != before
    gc.collect(1)
    assert gone() is None
    print("as it should be")
    """
    assert run(code) == "as it should be\n"


@pytest.mark.parametrize("act", ["gc.freeze()", "gc.unfreeze()"])
def test_what_a_program_does_after_the_import_is_noticed_when_much_has_been_made(act: str) -> None:
    """What it froze is not thawed, and what it thawed is not frozen again."""
    code = SETTLING.format(before="", after=act).replace(
        "    gc.collect()\n    frozen", "    frozen"
    )
    code += """
    gone, kept = make(40_000)
    held = gc.get_freeze_count()
    gc.collect()
    assert abs(gc.get_freeze_count() - held) < 1000 and gone() is None
    assert (held > 1000) == (%r == "gc.freeze()") and gc.isenabled()
    print("as it should be")
    """
    assert run(code % act) == "as it should be\n"
