"""What has no effect here, and says so once."""

import logging

from calque.experimental import wishes
from calque.machine.caches import caches


def test_the_log_notes_a_wish_once(caplog):
    with caplog.at_level(logging.INFO, logger="calque"):
        wishes.note("a wish of this test")
        wishes.note("a wish of this test")
    assert caplog.messages == ["a wish of this test: it has no effect here"]


def test_what_was_noted_is_bounded():
    noted = next(c for c in caches.counters() if c.name == "wishes that the log has noted")
    assert noted.bound == 256
