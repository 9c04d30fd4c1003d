"""The help of functions that factories make, written in tables."""
