"""What calque made of a function, and why: `explain`, `show` and the counters of the process."""

from calque.explaining.report import Report, explain
from calque.explaining.showing import Drawn, show
from calque.explaining.statistics import stats

__all__ = ["Drawn", "Report", "explain", "show", "stats"]
