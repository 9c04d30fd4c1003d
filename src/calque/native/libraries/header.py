"""The header of a library, for C and C++."""

from __future__ import annotations

from calque.native.libraries.interface import Interface, Value

_TEXT = """/* {library}: written by calque. It needs nothing but C's library.

   Arrays lie in memory row by row, aligned as their elements are, and no result may overlap an
   argument or another result. Functions may be called by several threads at once. */
#ifndef {guard}
#define {guard}

#include <stdbool.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {{
#endif

/* Computes the results; their memory is the caller's. Returns 0, or a status of which
   {name}_message gives the text; then the results hold nothing of use.
{values} */
int32_t {name}({arguments});

/* Writes the sizes of a result, counted from 0, to `shape`, one for each dimension. Returns a
   status. */
int32_t {name}_shape({shape_arguments});

/* The text of a status. It is there as long as the library is. */
const char *{name}_message(int32_t status);

/* Work on a range may be shared among threads: `share` has to call task(args, first, last) on
   parts that together are begin to end, each once, from any threads, and to return when all are
   done. Parts begin at begin plus a multiple of grain. `threads` is how many will work, each with
   4 MB of stack. At first, and with NULL, the calling thread does all. Results do not depend on it.
   Not to be called while {name} runs. */
typedef void (*{name}_task)(void *args, int64_t begin, int64_t end);
typedef void (*{name}_share)(void *context, {name}_task task, void *args, int64_t begin,
                             int64_t end, int64_t grain);
void {name}_threads({name}_share share, void *context, int64_t threads);

/* Gives memory back that is kept for later calls, as before the library is unloaded. */
void {name}_release(void);

#ifdef __cplusplus
}}
#endif
#endif
"""


def header_text(interface: Interface, library: str) -> str:
    sizes = [f"int64_t {n}" for n in interface.sizes]
    arguments = [f"const {v.ctype} *{v.name}" for v in interface.arguments]
    results = [f"{v.ctype} *{v.name}" for v in interface.results]
    lines = [f"   {n}: a size, at least 1" for n in interface.sizes]
    lines += [_line("argument", v) for v in interface.arguments]
    lines += [_line(f"result {k}", v) for k, v in enumerate(interface.results)]
    return _TEXT.format(
        library=library,
        name=interface.name,
        guard=f"CALQUE_{interface.name.upper()}_H",
        values="\n".join(lines),
        arguments=", ".join([*sizes, *arguments, *results]) or "void",
        shape_arguments=", ".join([*sizes, "int32_t result", "int64_t *shape"]),
    )


def _line(kind: str, v: Value) -> str:
    shape = ", ".join(map(str, v.shape))
    note = ", two numbers an element" if v.parts == 2 else ""
    if v.ctype.startswith("uint") and not v.dtype.startswith("uint"):
        note = ", the bits of an element"
    return f"   {v.name}: {kind}, {v.dtype}[{shape}]{note}"
