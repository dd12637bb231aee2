"""The page as a file: complete in itself, escaped, the same every time, all or nothing."""

import base64
import hashlib
import json
import os
import re
import stat
import sys
from html.parser import HTMLParser
from itertools import pairwise

import pytest

from nhsvm import Hierarchy
from nhsvm.errors import OptionError
from nhsvm.report import evaluate, page, write_report
from nhsvm.report.measures import measure, sentences
from nhsvm.report.page import Axis, convergence
from report.saying import Says


class Elements(HTMLParser):
    """Tags with their attributes, whether they are closed, and text by tag."""

    VOID = ("meta", "link", "input", "br", "img")

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.text = [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.text.append(data)

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def tree_data(text):
    return json.loads(re.search(r'<script type="application/json" id="tree-data">(.*?)</script>', text, re.S)[1])


@pytest.mark.parametrize("name", ["single", "sets", "nasty"])
def test_the_page_is_well_formed_and_complete(name, request):
    found = request.getfixturevalue(name)
    text = page.render(found)
    elements = Elements(text)
    assert elements.open == []
    ids = [attrs["id"] for _, attrs in elements.tags if "id" in attrs]
    assert len(ids) == len(set(ids))
    for _, attrs in elements.tags:
        for key in ("aria-labelledby", "aria-describedby", "for"):
            assert attrs.get(key, ids[0]) in ids
        if attrs.get("href", "").startswith("#"):
            assert attrs["href"][1:] in ids
    headings = [tag for tag, _ in elements.tags if re.fullmatch(r"h\d", tag)]
    assert headings.count("h1") == 1
    assert all(int(b[1]) - int(a[1]) <= 1 for a, b in pairwise(headings))
    assert all(attrs.get("scope") in ("col", "row") for attrs in elements.all("th"))
    assert elements.all("html") == [{"lang": "en"}]
    assert sentences(found)[0] in " ".join(elements.text)


@pytest.mark.parametrize("name", ["single", "sets", "nasty"])
def test_nothing_comes_from_elsewhere(name, request):
    text = page.render(request.getfixturevalue(name))
    elements = Elements(text)
    for _, attrs in elements.tags:
        assert "src" not in attrs
        assert attrs.get("href", "#").startswith(("#", "data:,"))
    assert set(re.findall(r"\w+://[^\s\"'<)]*", text)) == {"http://www.w3.org/2000/svg"}  # a name, not an address
    assert "@import" not in text
    assert "url(" not in re.sub(r"url\(#\w+\)", "", text)


def test_the_policy_lets_only_our_style_and_script_run(single):
    text = page.render(single)
    policy = next(a["content"] for a in Elements(text).all("meta") if "http-equiv" in a)
    assert policy.startswith("default-src 'none'")
    for tag in ("style", "script"):
        inside = re.search(rf"<{tag}>(.*?)</{tag}>", text, re.S)[1]
        digest = base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_labels_and_texts_are_escaped(nasty):
    text = page.render(nasty, title="<i>title</i>")
    assert "alert(1)</script>" not in text
    assert "<img" not in text
    assert "<b>animal" not in text
    assert "<i>title" not in text
    assert text.count("<script") == 2  # data and ours
    assert "<script>alert(1)</script>" in tree_data(text)["name"]
    shown = "".join(Elements(text).text)
    assert "<script>alert(1)</script>" in shown
    assert "<img src=x onerror=alert(1)> barks </script>" in shown


def test_the_same_evaluation_gives_the_same_bytes(single, tmp_path):
    for name in ("a.html", "b.html"):
        write_report(single, tmp_path / name, "Title")
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()
    assert sorted(os.listdir(tmp_path)) == ["a.html", "b.html"]


def test_an_old_page_stays_when_the_new_one_fails(single, tmp_path, monkeypatch):
    target = tmp_path / "report.html"
    target.write_text("old")
    monkeypatch.setattr(os, "replace", lambda *args: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    with pytest.raises(OSError, match="No space left"):
        write_report(single, target)
    assert target.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]


def test_permissions_are_kept_and_links_followed(single, tmp_path):
    target, link = tmp_path / "report.html", tmp_path / "link.html"
    target.write_text("old")
    target.chmod(0o640)
    link.symlink_to(target)
    write_report(single, link)
    assert link.is_symlink()
    assert stat.S_IMODE(target.stat().st_mode) == 0o640
    assert target.read_text(encoding="utf-8").startswith("<!doctype html>")


@pytest.mark.parametrize("title", ["", "  ", 3])
def test_bad_titles(title, single, tmp_path):
    with pytest.raises(OptionError, match="title must be some text"):
        write_report(single, tmp_path / "report.html", title)
    assert os.listdir(tmp_path) == []


def test_what_is_no_evaluation(tmp_path):
    with pytest.raises(OptionError, match=r"must come from nhsvm\.report\.evaluate, not be a dict"):
        write_report({}, tmp_path / "report.html")


def test_places_that_cannot_be_written(single, tmp_path):
    with pytest.raises(FileNotFoundError):
        write_report(single, tmp_path / "missing" / "report.html")
    with pytest.raises(IsADirectoryError, match="is a folder"):
        write_report(single, tmp_path)


def test_without_jinja2(single, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jinja2", None)
    with pytest.raises(ImportError, match=r"pip install 'nhsvm\[report\]'"):
        write_report(single, tmp_path / "report.html")
    assert os.listdir(tmp_path) == []


def test_large_hierarchies_are_cut_with_a_note(single, monkeypatch):
    monkeypatch.setattr(page, "MAX_NODES", 3)
    monkeypatch.setattr(page, "MAX_ROWS", 2)
    text = page.render(single)
    data = tree_data(text)
    assert len(data["name"]) == 3
    assert all(parent < 3 for parent in data["parent"])
    assert sum(data["own"]) == single.nodes.own.sum()  # what is cut off counts with what is above
    assert "The picture has the first 3 of 7 nodes" in text
    assert "The table has 2 of 3 rows" in text


def test_the_picture_has_the_numbers_of_the_evaluation(single):
    data, nodes = tree_data(page.render(single)), single.nodes
    assert data["own"] == nodes.own.tolist()
    assert data["parent"] == nodes.parent.tolist()
    assert data["accuracy"] == pytest.approx(nodes.accuracy.tolist(), abs=1e-4)
    assert data["colours"] == ["accuracy", "recall", "f1", "weight"]


def test_sections_without_content_are_left_out():
    h = Hierarchy.from_edges([], nodes=["a", "b"])
    text = page.render(evaluate(Says(["a", "b"]), ["a", "b"], ["a", "b"], hierarchy=h))
    assert "The hierarchy is flat" in text
    assert "No label was taken for another." in text
    assert "None: everything is right." in text
    assert 'id="training"' not in text
    assert 'id="probabilities"' not in text
    assert tree_data(text)["colours"] == ["accuracy", "recall", "f1"]  # it has no weights
    wrong = evaluate(Says(["a", "b"]), ["a", "b"], ["b", "b"], hierarchy=h, examples=0)
    assert "None were kept." in page.render(wrong)


def record(seconds, primal, dual, certified=False):
    gap = None if dual is None else (primal - dual) / primal
    return {"iteration": 1, "seconds": seconds, "primal": primal, "dual": dual, "gap": gap, "certified": certified}


def test_charts_of_training():
    gap, objective = convergence([record(0.1, 100.0, -5.0), record(1.0, 20.0, 10.0), record(9.0, 11.0, 10.9, True)])
    assert [mark.solid for mark in gap.lines[0].marks] == [False, False, True]
    assert [line.name for line in objective.lines] == ["primal", "dual"]
    assert len(objective.lines[1].marks) == 2  # a dual value below zero is not drawn
    assert all(chart.left <= mark.x <= chart.right for chart in (gap, objective) for mark in chart.lines[0].marks)
    assert all(chart.top <= mark.y <= chart.bottom for chart in (gap, objective) for mark in chart.lines[0].marks)
    (only,) = convergence([record(1.0, 20.0, None)])  # a solver that knows no bound
    assert only.id == "objective"
    assert convergence([]) == []
    many = convergence([record(0.1 * k, 20.0 + 1 / k, 10.0) for k in range(1, 1000)])[0].lines[0].marks
    assert 100 <= len(many) <= 150
    assert "99.9 s" in many[-1].title


@pytest.mark.parametrize(
    ("values", "texts"),
    [
        ([0.0, 1.0], ["0", "0.2", "0.4", "0.6", "0.8", "1"]),
        ([3.0, 3.0], ["3", "4"]),
        ([2.0, 17.0], ["0", "5", "10", "15", "20"]),
        ([0.5, 0.5], ["0.5", "0.6"]),
        ([1e-6, 1.0], ["1e-06", "1e-05", "0.0001", "0.001", "0.01", "0.1", "1"]),
        ([1e-9, 1e9], ["1e-09", "1e-06", "0.001", "1", "1,000", "1,000,000", "1,000,000,000"]),
    ],
)
def test_ticks_are_round(values, texts):
    axis = Axis(values, 0, 100)
    assert [tick.text for tick in axis.ticks] == texts
    assert axis.ticks[0].at <= axis(min(values)) <= axis(max(values)) <= 100


def test_what_the_gap_proves_is_about_the_optimum():
    assert page._above({"objective": 11.0, "dual_objective": 10.0}) == "10%"  # the gap is 9.1 % of 11
    assert page._above({"objective": 11.0, "dual_objective": None}) == ""
    assert page._above({}) == ""


def test_words(single, sets):
    said = " ".join(sentences(single))
    assert re.match(r"Of 200 samples, \d+\.\d% got the right label\. A wrong label is \d\.\d edges away", said)
    assert "percentage points" in said
    assert "got exactly the right set of labels" in sentences(sets)[0]
    assert measure("error_distance", float("nan")) == "–"
    two = Hierarchy.from_edges([("a", "a1"), ("a", "a2"), ("b", "b1"), ("b", "b2")])
    y = ["a1", "a2", "b1", "b2"] * 10
    assert sentences(evaluate(Says(y), y, y, hierarchy=two)) == ["Of 40 samples, 100.0% got the right label."]
    wrong = evaluate(Says(y), ["a2", *y[1:]], y, hierarchy=two)
    assert sentences(wrong)[-1] == "The weakest large branch is a (accuracy 95.0%), the strongest b (100.0%)."
    chain = Hierarchy.from_edges([("a", "b"), ("b", "c")])
    assert len(sentences(evaluate(Says(["c"]), ["c"], ["c"], hierarchy=chain))) == 1  # no branches to compare
