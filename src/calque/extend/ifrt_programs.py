"""Programs for plugins of IFRT, the runtime of Pathways: there is none here, and making one is
refused."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, Final, NoReturn


def _refused(*args: Any, **kwargs: Any) -> NoReturn:
    raise NotImplementedError(
        "extend.ifrt_programs: programs for plugins of IFRT run on Pathways, and calque runs"
        " programs itself: give the function to calque.jit"
    )


ifrt_programs: Final = SimpleNamespace(
    make_plugin_program=_refused, make_plugin_compile_options=_refused, make_hlo_program=_refused
)
