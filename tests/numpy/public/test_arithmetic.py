"""`calque.numpy.public.arithmetic`."""

from calque.numpy.public import arithmetic
from tests.numpy.public.shared import check_written


def test_what_is_written_is_what_was_made() -> None:
    check_written(arithmetic)
