"""The help of functions that factories and tables make."""
