"""Pictures of models as files."""

import struct
from xml.etree import ElementTree

import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.lab.points import SAMPLES, checked
from maxmargin.lab.still import still_of
from tests.helpers.lab import fitted


@pytest.mark.parametrize(
    ("key", "sample"), [("svc", "XOR"), ("svr", "sinc"), ("one-class", "ring")]
)
def test_a_picture_has_the_size_that_was_asked_for(key, sample):
    outcome = fitted(key, SAMPLES[sample]())
    png = still_of(outcome, "PNG", 640, 360)
    assert png.startswith(b"\x89PNG")
    assert struct.unpack(">II", png[16:24]) == (640, 360)
    root = ElementTree.fromstring(still_of(outcome, "SVG", 1234, 900))
    assert (root.get("width"), root.get("height")) == ("1234", "900")
    width, height = map(float, root.get("viewBox").split()[2:])
    assert width / height == pytest.approx(1234 / 900, rel=1e-3)


@pytest.mark.parametrize("size", [(199, 600), (800, 4001)])
def test_a_size_out_of_range_is_refused(size):
    outcome = fitted("svc", SAMPLES["six points"]())
    with pytest.raises(ValueError, match="must be 200 to 4000 pixels"):
        still_of(outcome, "PNG", *size)


def test_names_are_neither_formulas_nor_markup():
    name = r"$\undefined{$ <script>"
    points = checked([[0, 0], [1, 0], [3, 3], [4, 3]], [0, 0, 1, 1], [name, "b"], [name, "y"])
    svg = still_of(fitted("svc", points), "SVG", 800, 600)
    assert b"<script" not in svg
    assert ElementTree.fromstring(svg) is not None
