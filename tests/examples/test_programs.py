"""The programs in examples/ as their users run them, at their small setting: what comes out is
right, and a picture is drawn."""

import importlib.util
import os
import pathlib
import re
import subprocess
import sys
from xml.etree import ElementTree

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
EXAMPLES = ROOT / "examples"
SHARED = {"terminal", "pictures", "digit_images"}  # what the programs import
SVG = "{http://www.w3.org/2000/svg}"

# What each prints at its end, and the range that holds it: nothing untrained, unsolved or unstable
# is in there.
FIGURES = {
    "linear_regression": {
        "loss at the start": (5, 20),
        "loss": (0.07, 0.11),  # the noise has a variance of 0.09
        "slope": (2.9, 3.1),
        "distance from least squares": (0, 1e-4),
    },
    "derivatives": {
        "error of three derivatives": (0, 1e-5),
        "error of the curvature": (0, 1e-5),
        "asymmetry of the hessian": (0, 1e-5),
        "error of the product": (0, 1e-4),
        "difference of the gradients": (0, 1e-5),
        "size of the hessian": (1, 1000),
    },
    "newton": {"steps of newton": (5, 25), "x": (0.999, 1.001), "left by descent": (1, 10)},
    "digits": {"loss": (0, 0.5), "accuracy": (0.88, 1)},
    "convnet": {"loss": (0, 0.9), "accuracy": (0.65, 1)},
    "language_model": {"loss": (0.25, 0.5), "words that exist": (0.85, 1)},
    "optax_spirals": {"loss": (0, 0.05), "told apart": (0.99, 1)},
    "flax_transformer": {"loss": (0, 0.2), "numbers in their place": (0.95, 1)},
    "nbody": {
        "energy": (-1.2872, -1.2871),
        "change of energy": (0, 1e-4),
        "momentum": (0, 1e-4),
        "distance from the start after a period": (0, 1e-3),
        "distance after half a period": (1.9, 2),
    },
    "waves": {
        "change of energy": (0, 1e-5),
        "share behind the wall": (0.1, 0.3),
        "asymmetry": (0, 1e-5),
    },
    "bayes": {
        "accepted": (0.4, 0.99),
        "mean off in standard deviations": (0, 0.2),
        "spread to the exact one": (0, 0.15),
        "truth off in standard deviations": (0, 3),
    },
    "cannon": {
        "off at first": (5, 10),
        "off at the end": (0, 1e-4),
        "speed": (31.9, 32.1),
        "gradient to the difference": (0.98, 1.02),
    },
    "kalman": {
        "error of the measurements": (0.45, 0.55),
        "error before learning": (1, 4),
        "error of the filter": (0.2, 0.35),
        "push": (1.2, 1.8),
        "blur": (0.45, 0.55),
    },
    "mixture": {
        "worst change of the likelihood": (-1e-5, 1),
        "centres off": (0, 0.3),
        "sorted rightly": (0.95, 1),
    },
    "primes": {"primes": (1229, 1229), "twins": (205, 205), "greatest": (9973, 9973)},
}
NEEDS = {"optax_spirals": ["optax"], "flax_transformer": ["flax", "optax"]}
TESTED_ELSEWHERE = {"demo", "two_processes"}  # make demo; tests/xla/test_processes.py


def run(*command, **options):
    """What a process prints, without the variables that would serve calque as JAX already."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, *command],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
        **options,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", FIGURES)
def test_what_comes_out(name, tmp_path):
    for package in NEEDS.get(name, ()):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed")
    picture = tmp_path / "picture.svg"
    code, out, errors = run(EXAMPLES / f"{name}.py", "--small", "--picture", picture, cwd=tmp_path)
    assert code == 0, errors
    assert "\r" not in out and not errors  # lines are redrawn on terminals only
    printed = dict(re.findall(r"^([a-z ]+): (\S+)$", out, re.M))
    for figure, (least, most) in FIGURES[name].items():
        assert least <= float(printed[figure]) <= most, f"{figure}: {printed[figure]}"
    drawn = list(ElementTree.parse(picture).iter())
    curves = [element.get("points") or element.get("d") or "" for element in drawn]
    fields = [element for element in drawn if element.tag == f"{SVG}image"]
    assert fields or any(len(curve) > 30 for curve in curves)
    assert not any("nan" in curve for curve in curves)


def test_every_example_is_listed_and_short():
    programs = {path.stem for path in EXAMPLES.glob("*.py")} - SHARED
    assert programs == FIGURES.keys() | TESTED_ELSEWHERE
    for name in FIGURES:
        source = (EXAMPLES / f"{name}.py").read_text()
        assert source.count("\n") <= 100, name
        assert f"\n    python examples/{name}.py\n" in source.split('"""')[1], name
        assert f"{name}.py" in (EXAMPLES / "README.md").read_text(), name


@pytest.mark.parametrize("name", NEEDS)
def test_a_library_that_is_missing_is_named(name, tmp_path):
    program = f"""
import runpy, sys
sys.modules["optax"] = None
sys.argv = [{name!r}, "--small"]
sys.path[0] = {str(EXAMPLES)!r}
runpy.run_path({str(EXAMPLES / name)!r} + ".py", run_name="__main__")
"""
    code, out, errors = run("-c", program, cwd=tmp_path)
    assert code == 1 and not out and "This example needs optax: pip install" in errors
    assert "Traceback" not in errors
