"""docs/results/peers.md, made of the records alone."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from records import Records
from registry import MODELS, OURS, SETS
from words import reasons, summary

COLUMNS: tuple[tuple[str, str, str], ...] = (
    ("accuracy", "accuracy", ".4f"),
    ("macro-F1", "macro_f1", ".4f"),
    ("hierarchical F1", "hierarchical_f1", ".4f"),
    ("fit s", "fit_wall", ".2f"),
    ("fit CPU s", "fit_cpu", ".2f"),
    ("predict s", "predict_wall", ".2f"),
    ("predict CPU s", "predict_cpu", ".2f"),
    ("memory added by fit, MB", "fit_added_mb", ".0f"),
    ("process at its peak, MB", "fit_peak_mb", ".0f"),
    ("model on disk, MB", "model_mb", ".1f"),
)
HIGH = ("accuracy", "macro_f1", "hierarchical_f1")

INTRODUCTION = """# Every peer beside us

    python benchmarks/peers/setup.py
    python benchmarks/peers/run.py --data DIR --scratch DIR --budget {budget}
    python benchmarks/peers/run.py page

The last command makes this page of `peers.json`, which the one before it writes. Times alone are measured again, with
the settings that were chosen, by `run.py --phase final --again`. {state}
"""

PROTOCOL = """## Protocol

- **The same for everybody**: the same training and test samples, the same tf-idf rows (sublinear tf; standardised
  columns for imclef07a, which is dense), the same fifth of the training samples held out to choose settings
  (stratified; labels with one sample are never held out), six settings each, tried in the order given until {budget}
  processor seconds are spent. The best on held-out samples is fitted to all training samples in a fresh process. All
  scores are computed by the same code. Everything else is a model's default.
- **fastText** gets the words instead of rows: the same words, in their order. Where a set has word counts only
  (lshtc_dryrun, generated), it gets each word as often as it occurs. It cannot read imclef07a.
- **Threads**: two for all that can use them. LIBLINEAR in scikit-learn has one.
- **Fit** is the call that learns, from samples in the form that the model takes. omikuji reads its samples from a text
  file and napkinXC writes its model to disk and reads it back: these have that in their time. Ours are preceded by a
  tiny fit, since kernels are compiled once a machine and loaded once a process.
- **CPU** is of all threads. Where other work runs on the machine, CPU seconds say more than seconds on the clock.
- **Memory added by fit** is the most that the process had in memory, less what it had with its samples loaded; the
  peak has all of it.
- **Trees**: models that take a given tree get the hierarchy; in a DAG (mitre_attack) a node hangs below its first
  parent. A label on an inner node gets a leaf of its own below it. PECOS needs all leaves on one level: short paths go
  on with single children. napkinXC gets no nodes with a single child.
- **Macro-F1** is over the labels that occur in the test samples or are predicted; **hierarchical F1** is over the
  nodes above the labels and themselves (micro average), in the given hierarchy, DAG or not.
"""


def write_page(records: Records, out: Path) -> None:
    """Write the page; cells that are missing are shown as missing."""
    budgets = sorted(
        {c["tuning"]["budget"] for s in records.sets.values() for c in s["cells"].values() if "tuning" in c}
    )
    budget = " or ".join(f"{seconds:g}" for seconds in budgets)
    parts = [
        INTRODUCTION.format(budget=budget, state=_state(records.sets)),
        "\n".join(summary(records.sets)),
        reasons(records.sets),
    ]
    parts += ["\n".join(_table(name, found)) for name, found in records.sets.items()]
    parts += [PROTOCOL.format(budget=budget), "\n".join(_models(records.sets)), "\n".join(_machine(records.sets))]
    out.write_text("\n".join(part.rstrip("\n") + "\n" for part in parts), encoding="utf-8")


def _state(sets: dict[str, Any]) -> str:
    """How much of it has been run, and beside how much other work."""
    done = [cell["final"] for found in sets.values() for cell in found["cells"].values() if "final" in cell]
    text = f"So far {len(done)} of {len(SETS) * len(MODELS)} cells (a model on a set) have results."
    busy = [name for name, found in sets.items() if _is_busy(found)]
    if busy:
        text += f" **The machine was busy with other work** during some fits of {', '.join(busy)}: these had less than "
        text += "0.9 of a processor. Go by CPU seconds there, and by these with care."
    return text


def _is_busy(found: dict[str, Any]) -> bool:
    """Whether a fit of a set that took a while has had to wait."""
    done = [cell["final"] for cell in found["cells"].values() if "final" in cell]
    return any(f["fit_cpu"] < 0.9 * f["fit_wall"] for f in done if f["fit_wall"] > 1.0)


def _table(set_name: str, found: dict[str, Any]) -> Iterator[str]:
    yield f"## {set_name}\n"
    yield found["description"] + "\n"
    cells = found["cells"]
    best = {key: max((c["final"][key] for c in cells.values() if "final" in c), default=0.0) for key in HIGH}
    yield "| | " + " | ".join(title for title, _, _ in COLUMNS) + " | setting |"
    yield "|---|" + "--:|" * len(COLUMNS) + "---|"
    for name in MODELS:
        cell = cells.get(name, {})
        shown = f"**{name}**" if MODELS[name].environment == OURS else name
        if "final" not in cell:
            yield f"| {shown} | {cell.get('failed', 'not run')} |" + " |" * len(COLUMNS)
            continue
        values = [_number(cell["final"][key], form, best.get(key)) for _, key, form in COLUMNS]
        yield f"| {shown} | " + " | ".join(values) + f" | {_setting(cell)} |"
    yield ""


def _number(value: float, form: str, best: float | None) -> str:
    text = format(value, form)
    return f"**{text}**" if value == best else text


def _setting(cell: dict[str, Any]) -> str:
    tuning = cell["tuning"]
    text = ", ".join(f"{key} {value:g}" for key, value in tuning["chosen"].items())
    tried = len(tuning["tried"])
    notes = ([] if tried == 6 else [f"{tried} of 6 tried"]) + [
        found for found in cell["final"]["warnings"] if "Deprecation" not in found
    ]
    return text + (f" ({'; '.join(notes)})" if notes else "")


def _models(sets: dict[str, Any]) -> Iterator[str]:
    yield "## Models and settings\n"
    yield "| | hierarchy | what, and the settings tried | versions |"
    yield "|---|---|---|---|"
    for name, entry in MODELS.items():
        done = [found["cells"][name]["final"] for found in sets.values() if "final" in found["cells"].get(name, {})]
        versions = sorted({_versions(final) for final in done})
        yield f"| {name} | {entry.uses} | {entry.about} | {'; '.join(versions) or 'not run'} |"
    yield ""


def _versions(final: dict[str, Any]) -> str:
    return ", ".join(f"{name} {version}" for name, version in final["versions"].items())


def _machine(sets: dict[str, Any]) -> Iterator[str]:
    yield "## Machine\n"
    for text in sorted({", ".join(f"{key}: {value}" for key, value in s["machine"].items()) for s in sets.values()}):
        yield f"- {text}"
    loads = [c["final"]["load"] for s in sets.values() for c in s["cells"].values() if "final" in c]
    if loads:
        yield f"- mean number of running processes when the final fits began: {min(loads):.1f} to {max(loads):.1f}"
