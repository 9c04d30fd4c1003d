"""The pictures of the examples are what was asked for."""

import importlib.util
import pathlib
import re
import struct
import zlib
from xml.etree import ElementTree

import numpy as np
import pytest

PATH = pathlib.Path(__file__).resolve().parent.parent.parent / "examples" / "pictures.py"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def pictures():
    spec = importlib.util.spec_from_file_location("pictures_of_examples", PATH)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def drawn(picture):
    return ElementTree.fromstring(picture.svg())


def test_a_line_stands_where_its_numbers_are(pictures):
    picture = pictures.Picture("<title>", "x", "y")
    picture.line([0, 1, np.nan, 2], [0, 1, 5, 4], "a & b")
    root = drawn(picture)
    places = root.find(f".//{SVG}polyline").get("points").split(",")
    (x0, y0), (x1, y1), (x2, y2) = (map(float, place.split()) for place in places)
    assert x1 - x0 == pytest.approx(x2 - x1, abs=0.2)
    assert (y1 - y2) == pytest.approx(3 * (y0 - y1), abs=0.3)  # up is less
    words = [t.text for t in root.iter(f"{SVG}text")]
    assert {"<title>", "x", "y", "a & b", "0.5", "2"} <= set(words)


def test_points_are_dots(pictures):
    picture = pictures.Picture("")
    picture.points([1, 2, 3], [1, 2, 3])
    dots = [p.get("d") for p in drawn(picture).iter(f"{SVG}path") if "h0" in p.get("d")]
    assert len(dots) == 1 and dots[0].count("M") == 3


def test_square_pictures_have_one_unit(pictures):
    picture = pictures.Picture("", square=True)
    picture.line([0, 10, 10], [0, 0, 10])
    points = drawn(picture).find(f".//{SVG}polyline").get("points")
    (x0, y0), (x1, _), (_, y2) = (map(float, p.split()) for p in points.split(","))
    assert x1 - x0 == pytest.approx(y0 - y2, abs=0.2)


def test_nothing_and_a_single_number_can_be_drawn(pictures):
    assert drawn(pictures.Picture("empty")) is not None
    picture = pictures.Picture("one")
    picture.points([3], [7])
    assert "nan" not in picture.svg() and "inf" not in picture.svg()


def test_fields_are_pixels(pictures, tmp_path):
    picture = pictures.Picture("")
    picture.field([[0.0, 1.0], [2.0, 4.0], [0.0, 0.0]], (0, 2), (0, 3))
    picture.save(tmp_path / "x.svg")
    assert (tmp_path / "x.svg").read_text() == picture.svg() == picture._repr_svg_()
    assert len(re.findall("data:image/png;base64,", picture.svg())) == 1
    (image, _), *_ = picture.fields
    assert image[:8] == b"\x89PNG\r\n\x1a\n"
    columns, rows = struct.unpack(">II", image[16:24])
    start = image.index(b"IDAT")
    size = struct.unpack(">I", image[start - 4 : start])[0]
    lines = np.frombuffer(zlib.decompress(image[start + 4 : start + 4 + size]), np.uint8)
    pixels = lines.reshape(rows, 1 + 3 * columns)[:, 1:].reshape(rows, columns, 3)
    assert (rows, columns) == (3, 2)
    stops = pictures.STOPS
    assert (pixels[2, 0] == stops[0]).all()  # the first row is at the bottom
    assert (pixels[1, 1] == stops[-1]).all() and (pixels[1, 0] == stops[2]).all()
    assert (pixels[2, 1] == stops[1]).all()
