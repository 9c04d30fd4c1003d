"""What calque made of a function, and why: `explain` and the counters of the process."""

from calque.explaining.report import Report, explain
from calque.explaining.statistics import stats

__all__ = ["Report", "explain", "stats"]
