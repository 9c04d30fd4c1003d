"""Sorting: keys, networks, partitions and digits, for every dtype."""
