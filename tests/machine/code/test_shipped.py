"""Images that come with the package: packs, their levels, and a package that has one."""

import json
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

from calque.machine.code import image, shipped
from calque.machine.code.target import Target

ROOT = pathlib.Path(__file__).resolve().parents[3]


def processor(cpu="skylake", features="", triple="x86_64-unknown-linux-gnu"):
    return Target(triple, cpu, features, 32, 16, 1, 2, 3, "key")


def test_the_level_is_the_best_whose_features_are_all_there():
    every = ",".join(f"+{f}" for f in sorted(shipped.LEVELS["x86-64-v4"]))
    assert shipped.level_of(processor(features=every)) == "x86-64-v4"
    assert shipped.level_of(processor(features=every.replace("+avx512vl", "-avx512vl"))) == (
        "x86-64-v3"
    )
    assert shipped.level_of(processor(features=every.replace("+fma", "-fma"))) == "x86-64-v2"
    assert shipped.level_of(processor(features="+sse3,-sse4.2")) is None
    assert shipped.level_of(processor(features=every, triple="aarch64-unknown-linux")) is None


def test_a_named_processor_has_packs_only_if_it_is_a_level():
    assert shipped.level_of(processor("x86-64-v3", "-prefer-256-bit")) == "x86-64-v3"
    assert shipped.level_of(processor("x86-64", "-prefer-256-bit")) is None
    assert shipped.level_of(processor("znver3")) is None


def test_levels_contain_one_another():
    v4, v3, v2 = shipped.LEVELS.values()
    assert v4 > v3 > v2


def test_a_pack_gives_back_what_was_written(tmp_path):
    path = str(tmp_path / "deep" / "x.pack")
    images = {"a": b"one" * 100, "b": b"two", "c": b"one" * 100}
    shipped.write(path, images)
    assert shipped.read(path) == images and shipped.read(path + "x") == {}
    alone = os.path.getsize(path)
    shipped.write(path, {"a": b"one" * 100, "b": b"two"})
    assert alone - os.path.getsize(path) < 100  # equal images stand there once


@pytest.mark.parametrize("at", [0, 15, 40, -1])
def test_an_altered_pack_is_refused(tmp_path, at):
    path = tmp_path / "x.pack"
    shipped.write(str(path), {"a": b"one" * 100})
    raw = bytearray(path.read_bytes())
    raw[at] ^= 1
    path.write_bytes(raw)
    with pytest.raises(ValueError, match="delete it"):
        shipped.read(str(path))


# Compiles nothing of the runtime, or everything: what it prints is right all the same.
PROGRAM = """
import json, sys
import calque.numpy as jnp
from calque.machine.code import llvm
from calque.machine.routines.fft import transforms
transforms.calque_fft.address
print(json.dumps([llvm.stats.shipped, llvm.stats.compiled, "llvmlite" in sys.modules]))
"""


@pytest.mark.skipif(not image.usable(), reason="images are for x86-64 Linux")
def test_a_package_with_a_pack_compiles_no_runtime(tmp_path):
    if shipped.level() is None:
        pytest.skip("the processor of this run is no level")
    shutil.copytree(
        ROOT / "src" / "calque",
        tmp_path / "calque",
        ignore=shutil.ignore_patterns("__pycache__", "images"),
    )
    made = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_images.py"), "--best"]
        + ["--to", str(tmp_path / "calque" / "images")],
        capture_output=True,
        text=True,
    )
    assert made.returncode == 0, made.stdout + made.stderr
    assert "Traceback" not in made.stdout  # of levels that this machine has not
    pack = next((tmp_path / "calque" / "images").iterdir())

    def run():
        environment = {**os.environ, "PYTHONPATH": str(tmp_path), "CALQUE_CACHE": "off"}
        environment["CALQUE_CPU"] = pack.stem
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    given, compiled, _ = run()
    assert given > 10 and compiled == 0
    raw = bytearray(pack.read_bytes())
    for at in range(len(raw) // 2, len(raw), 256):  # images that are not whole are compiled
        raw[at] ^= 1
    pack.write_bytes(raw)
    fewer, compiled, _ = run()
    assert compiled > 0  # what serves trees in plain Python until it is at hand is not
    assert given - 1 <= fewer + compiled <= given
    pack.write_bytes(b"something else")
    assert run()[:2] == [0, given - 1]
