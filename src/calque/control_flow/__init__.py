"""Python control flow over traced values: `convert`, and `jit(f, control_flow="convert")`.

The syntax tree of a function is rewritten (`rewriting`, after `jumps` has replaced return, break
and continue by flags) into calls of small functions (`running`) that ask at run time whether a
condition is traced. Where it is not, Python's own path is taken. Where it is, the branches are
recorded with all the variables that they change (`values`, `repeating`) and become cond, while and
scan.

Why no library: the ones that exist descend from TensorFlow's AutoGraph. AutoGraph itself comes with
TensorFlow; pyctr, its extraction, is a prototype that was given up; diastatic-malt is a maintained
copy for PennyLane. It would be one more dependency, whose operators still have to be written, and
works by means that do not fit here: it writes the new source into temporary modules and maps errors
back to the user's lines, where a compiled tree keeps them; it replaces variables by objects of its
own where they may be unset, where cells can be left empty; and it has no notion of the types that
branches must share, which is most of the work. gast evens out the syntax trees of Python versions:
from 3.11 on there is little to even out."""

from calque.control_flow.functions import convert

__all__ = ["convert"]
