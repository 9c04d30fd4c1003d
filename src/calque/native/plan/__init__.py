"""From a graph to the steps and the memory of a driver program."""
