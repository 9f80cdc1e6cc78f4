"""Charts say what was measured, and nothing a label holds leaves its place."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from writer_rl.report.charts import Curve, line_chart, smoothed, ticks

NUMBERS = st.floats(-1e6, 1e6)


def test_smoothing_by_hand():
    assert smoothed([1.0, 0.0, 0.0], 0.5) == [1.0, 0.5, 0.25] and smoothed([]) == []


@pytest.mark.parametrize(
    "low, high, expected", [(0.0, 1.0, [0.0, 0.25, 0.5, 0.75, 1.0]), (-3, 5, [-2, 0, 2, 4]), (0.411, 0.437, [0.42, 0.43])]
)
def test_ticks_are_round(low, high, expected):
    found = ticks(low, high)
    assert set(expected) <= set(found) and all(low <= value <= high + 1e-9 for value in found)


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.text())
def test_every_chart_is_well_formed_and_every_point_is_inside(values, label):
    svg = line_chart([Curve(label, tuple(enumerate(values)))], label)
    controls = re.sub("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd]", "", svg)  # what XML has no character for
    root = ElementTree.fromstring(controls)
    width, height = (float(v) for v in root.attrib["viewBox"].split()[2:])
    for polyline in root.iter("polyline"):
        for point in polyline.attrib["points"].split():
            x, y = map(float, point.split(","))
            assert 0 <= x <= width and 0 <= y <= height


def test_nothing_to_draw_is_no_chart():
    assert line_chart([], "x") == "" == line_chart([Curve("a", ())], "x")


def test_a_label_is_text():
    svg = line_chart([Curve("<script>", ((1, 2), (2, 3)))], '"><script>')
    assert "<script>" not in svg
