"""What a library holds beside its program."""

from calque.machine import memory, threads
from calque.machine.code import image
from calque.machine.driver import stamps, standalone
from calque.machine.routines.sort import network, rows
from calque.native.libraries.runtime import runtime, units
from tests.native.libraries.shared import needs_images

SORT = "sort sort_rows"


def test_units_are_those_that_are_called():
    assert {u.name for u in units([])} == {"memory", "scratch", "library", "library_host"}
    more = units([rows.unit])
    assert network.unit in more and memory.unit in more and standalone.host in more
    assert stamps.unit not in more and threads.unit not in more
    assert len(more) == len(set(more))


@needs_images
def test_words_that_tell_of_a_process_have_values_of_their_own():
    made = runtime(
        [SORT] if hasattr(rows, "sort_rows") else [f"sort {rows.unit.functions[0].name}"]
    )
    assert all(map(image.is_image, made.images))
    assert made.values["threads_wanted"] == 1
    assert made.values["network_pieces"] == made.tables[0].name
    assert all(isinstance(v, int) or v == made.tables[0].name for v in made.values.values())
