"""The scaling study: the law that is fitted, and what is written about it."""

import json
import sys
from pathlib import Path

import pytest

SCALE = Path(__file__).parents[2] / "benchmarks" / "scale"

before = list(sys.path)
sys.path.append(str(SCALE))
import study  # noqa: E402

sys.path[:] = before  # its files have names that folders of tests have too

BASE = {"samples": 20_000, "features": 30_000, "nodes": 1_400, "labels": 1.0}


def record(kind, factor):
    """A run that follows a law."""
    made = BASE | {name: BASE[name] * factor for name in (study.KINDS if kind == "all" else (kind,))}
    time = 1e-6 * made["samples"] ** 1.1 * made["features"] ** 0.2 * made["nodes"] ** 0.5 * made["labels"] ** 0.3
    return {"kind": kind, "factor": factor, "passes": 5, "cpu_seconds": time, "added_gb": time / 100, **made}


@pytest.fixture(scope="module")
def records():
    return [record(kind, factor) for kind, factor in study.runs()]


def test_every_axis_has_points_enough_and_the_base_is_run_once(records):
    single, several, check = study.parts(records)
    for kind in study.KINDS:
        assert len({r[kind] for r in single}) >= 4
    assert len({r["labels"] for r in several}) >= 4
    assert sum(all(r[kind] == BASE[kind] for kind in study.KINDS) for r in single) == 1
    assert all(check[kind] > max(r[kind] for r in single) for kind in study.KINDS)


def test_a_law_is_found_again(records):
    single, several, check = study.parts(records)
    powers, _ = study.law(single, "cpu_seconds")
    assert powers == pytest.approx({"samples": 1.1, "features": 0.2, "nodes": 0.5})
    assert study.law(several, "cpu_seconds", ("labels",))[0] == pytest.approx({"labels": 0.3})
    assert study.asked(single, "cpu_seconds", check) == pytest.approx((check["cpu_seconds"],) * 3)


def test_far_beyond_goes_on_from_the_largest_run(records):
    """With the powers of the law, from what was measured: half of it is half of it there."""
    single, _, check = study.parts(records)
    far = study.asked(single, "added_gb", study.FAR)[0]
    assert study.beyond_the_check(single, "added_gb", check) == pytest.approx(far)
    half = check | {"added_gb": check["added_gb"] / 2}
    assert study.beyond_the_check(single, "added_gb", half) == pytest.approx(far / 2)
    linear = study.beyond_the_check(single, "added_gb", check, samples=1.0)
    assert linear == pytest.approx(far * (study.FAR["samples"] / check["samples"]) ** -0.1)


def test_the_page_has_every_run_and_the_picture_is_made(records, tmp_path):
    text = study.page(records, 0.2)
    assert sum(line.startswith("| ") for line in text.splitlines()) == len(records) + 1
    assert "documents^1.10 · words^0.20 · nodes^0.50 (off by a factor of 1.00 at the most in the 13 runs" in text
    assert "took 1.2 times the time and 1.2 times the memory\nof one label at 20,000 documents" in text
    assert "--size" not in text
    assert "--size 0.1 " in study.page(records, 0.1)
    study.picture(records, tmp_path / "study.png")
    assert (tmp_path / "study.png").read_bytes().startswith(b"\x89PNG")


def test_the_page_is_that_of_the_records():
    """What the page says is what this makes of the runs beside it."""
    results = SCALE.parents[1] / "docs" / "results"
    records = json.loads((results / "scale_study.json").read_text())
    assert (results / "scale_study.md").read_text(encoding="utf-8") == study.page(records, study.SIZE)
