"""`calque.numpy.public.folds`."""

from calque.numpy.public import folds
from tests.numpy.public.shared import check_written


def test_what_is_written_is_what_was_made() -> None:
    check_written(folds)
