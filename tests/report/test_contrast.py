"""Texts of the page can be read: contrasts of 4.5 to 1 and more, as WCAG 2 asks for (AA), and 3 to 1 for marks."""

import re
from importlib.resources import files
from itertools import pairwise

import pytest

CSS, SCRIPT = (files("nhsvm.report").joinpath(f"report.{end}").read_text(encoding="utf-8") for end in ("css", "js"))
BLOCKS = [dict(re.findall(r"--([\w-]+): (#\w+);", block)) for block in re.findall(r":root \{(.*?)\}", CSS, re.DOTALL)]
LIGHT, DARK, PAPER = BLOCKS[0], BLOCKS[0] | BLOCKS[1], BLOCKS[0] | BLOCKS[2]
TEXTS = [(ink, on) for ink in ("ink", "soft", "accent") for on in ("page", "card")] + [("ink", "note"), ("ink", "hair")]
MARKS = [("second", "card"), ("focus", "page"), ("focus", "card")]


def rgb(colour):
    digits = colour[1:] if len(colour) == 7 else "".join(2 * c for c in colour[1:])
    return [int(digits[k : k + 2], 16) for k in (0, 2, 4)]


def luminance(colour):
    parts = [(v / 255) / 12.92 if v / 255 <= 0.04045 else ((v / 255 + 0.055) / 1.055) ** 2.4 for v in colour]
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2]


def contrast(a, b):
    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def test_contrast_itself():
    assert contrast(rgb("#fff"), rgb("#000000")) == pytest.approx(21)
    assert contrast(rgb("#777"), rgb("#fff")) == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("scheme", [LIGHT, DARK, PAPER], ids=["light", "dark", "paper"])
@pytest.mark.parametrize(("front", "back"), TEXTS + MARKS)
def test_colours(scheme, front, back):
    assert contrast(rgb(scheme[front]), rgb(scheme[back])) >= (3 if (front, back) in MARKS else 4.5)


def test_words_in_boxes():
    """Black or white, by the luminance at which both are equally good; then one of them is always good enough."""
    threshold = float(re.search(r"luminance\(colour\) > ([\d.]+) \? \"#000\" : \"#fff\"", SCRIPT)[1])
    stops = [rgb(colour) for colour in re.findall(r"\[[\d.]+, \"(#\w{6})\"\]", SCRIPT)]
    assert len(stops) == 9
    for a, b in pairwise(stops):
        for k in range(101):
            box = [(100 - k) / 100 * x + k / 100 * y for x, y in zip(a, b, strict=True)]
            ink = "#000" if luminance(box) > threshold else "#fff"
            assert contrast(rgb(ink), box) >= 4.5
