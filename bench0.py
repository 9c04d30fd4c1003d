import sys, time

sys.path[:0] = ["/work/shared/bench"]
