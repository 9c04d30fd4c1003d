"""`info`: versions, machine, cache, engines; what a report of a defect should say."""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import os
import platform
import sys
from typing import Any, Final

from calque.command_line import terminal
from calque.core.backends import known
from calque.core.config import config
from calque.core.devices import all_devices
from calque.machine.code import diskcache, image, target
from calque.machine.objects.pyapi import IS_KNOWN
from calque.machine.processors import available_cpus
from calque.machine.threads import get_num_threads

PACKAGES: Final = ("numpy", "scipy", "llvmlite", "ml_dtypes", "jaxlib", "jax")


def main(found: Any) -> int:
    """Print it."""
    facts = gathered()
    if found.json:
        print(json.dumps(facts, indent=2))
        return 0
    for title, part in facts.items():
        print(terminal.shown(title, "title"))
        for name, value in part.items():
            print(f"  {name}: {value}")
        if not part:
            print("  none")
    return 0


def gathered() -> dict[str, dict[str, Any]]:
    """All of it."""
    t = target.describe()
    flags = {f for f in t.features.split(",") if f.startswith("+")}
    marks = [f for f in ("avx", "avx2", "fma", "avx512f", "neon", "sve") if f"+{f}" in flags]
    changed = {
        n: v for n, v in config.values.items() if n in _flags_of_environment() and v is not None
    }
    return {
        "versions": {
            "calque": importlib.import_module("calque").__version__,
            "python": f"{platform.python_implementation()} {sys.version.split()[0]}",
            **{name: version(name) for name in PACKAGES},
        },
        "machine": {
            "system": platform.platform(),
            "processor": f"{t.cpu} ({t.triple})",
            "vectors": f"{8 * t.vector_bytes} bits: {', '.join(marks) or 'none'}",
            "caches": ", ".join(map(terminal.size, (t.l1_bytes, t.l2_bytes, t.l3_bytes))),
            "cores for this process": available_cpus(),
            "threads of kernels": get_num_threads(),
        },
        "code": {
            "call path": "machine code"
            if IS_KNOWN
            else "plain Python: this interpreter is unknown",
            "linker": "calque's own images" if image.usable() else "LLVM",
            "cache": diskcache.directory() or f"off: {diskcache.reason()}",
            "cache holds": terminal.size(diskcache.size()),
        },
        "engines": {
            "compiler": known.chosen,
            "devices": ", ".join(map(str, all_devices())),
            "xla": "jaxlib is installed" if version("jaxlib") != "-" else "needs calque[xla]",
        },
        "environment": {
            name: os.environ[name]
            for name in sorted(os.environ)
            if name.startswith(("CALQUE_", "JAX_", "XLA_"))
            or name in ("NO_COLOR", "OMP_NUM_THREADS")
        },
        "options from the environment": changed,
    }


def version(package: str) -> str:
    """Of an installed package; "-" where it is not."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "-"


def _flags_of_environment() -> set[str]:
    given = {n.lower() for n in os.environ if n.startswith(("CALQUE_", "JAX_"))}
    return {"calque_" + n.partition("_")[2] for n in given}
