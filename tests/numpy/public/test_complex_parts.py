"""`calque.numpy.public.complex_parts`."""

from calque.numpy.public import complex_parts
from tests.numpy.public.shared import check_written


def test_what_is_written_is_what_was_made() -> None:
    check_written(complex_parts)
