"""One element of the result of an element-wise primitive, made of one element of each operand."""

from __future__ import annotations

from calque.native.scalars.elements.rules import ELEMENT, Application, lower, supports
from calque.native.scalars.elements.values import Cx, Value

__all__ = ["ELEMENT", "Application", "Cx", "Value", "lower", "supports"]
