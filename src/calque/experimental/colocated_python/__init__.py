"""Python functions that run where their arguments are. Here that is this process, whose devices are
its CPUs: the functions are called as they are, and what is asked of them is checked."""

from calque.experimental.colocated_python.func import colocated_python
from calque.experimental.colocated_python.objects import colocated_python_class
from calque.experimental.colocated_python.places import colocated_cpu_devices

__all__ = ["colocated_cpu_devices", "colocated_python", "colocated_python_class"]
