"""The plain words of the page: what the numbers say, computed from them, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from registry import MODELS, OURS

Finals = dict[str, dict[str, Any]]

LOOSE = "NHSVM, tol 0.1"
WHY = """**Why, and what would close it.** PECOS, omikuji and napkinXC learn a label from the samples that reach its
node only, stop LIBLINEAR at a tolerance of 0.1, and drop weights below 0.1. Their speed and small files should come
from that, but which of it matters most was not measured. LibMultiLabel does the first two, and with up to 100 labels
its tree is one node. Ours learn all labels jointly, to a gap of 0.1 % that is proved, and keep every weight. To stop
earlier (`tol`) closes a part of the difference in time. Small files can be had afterwards (`nhsvm.prune`, weights of
one or two bytes: [small models](small_models.md)); to drop weights while learning, as PECOS does, we do not have."""


def finals(found: dict[str, Any]) -> Finals:
    return {name: cell["final"] for name, cell in found["cells"].items() if "final" in cell}


def is_ours(name: str) -> bool:
    return MODELS[name].environment == OURS


def _top(models: Finals, key: str, ours: bool) -> str:
    return max((name for name in models if is_ours(name) == ours), key=lambda name: models[name][key])


def _quickest(models: Finals, ours: bool, least: float) -> str | None:
    """Least processor time to fit, of the models with at least this accuracy."""
    able = [name for name in models if is_ours(name) == ours and models[name]["accuracy"] >= least]
    return min(able, key=lambda name: models[name]["fit_cpu"], default=None)


def complete(sets: dict[str, Any]) -> dict[str, Any]:
    """The sets on which every model has been run, or cannot be: who is first among some of them says nothing."""
    return {
        name: found
        for name, found in sets.items()
        if all({"final", "failed"} & set(found["cells"].get(model, ())) for model in MODELS)
        and len({is_ours(model) for model in finals(found)}) == 2
    }


def summary(sets: dict[str, Any]) -> Iterator[str]:
    """For every set: the best of ours, the best of theirs, and who gets there first."""
    yield "## In words\n"
    yield (
        "For each set: the best accuracy of ours and of the peers, and the least processor time to an accuracy of at "
        "most one point below the best of all. The best of several on test samples is flattered, on both sides.\n"
    )
    yield (
        "| set | best of ours | best peer | difference ± standard error of one, points "
        "| quickest of ours | quickest peer | ours / peer |"
    )
    yield "|---|---|---|--:|---|---|--:|"
    for name, found in complete(sets).items():
        yield _line(name, finals(found), found["n_test"])
    yield ""


def _line(set_name: str, models: Finals, n_test: int) -> str:
    mine, theirs = _top(models, "accuracy", True), _top(models, "accuracy", False)
    gain = 100 * (models[mine]["accuracy"] - models[theirs]["accuracy"])
    least = max(models[mine]["accuracy"], models[theirs]["accuracy"]) - 0.01
    quick = [_quickest(models, ours, least) for ours in (True, False)]
    times = [f"{name}, {models[name]['fit_cpu']:.2f} s" if name else "none" for name in quick]
    ratio = f"{models[quick[0]]['fit_cpu'] / models[quick[1]]['fit_cpu']:.2f}" if all(quick) else ""
    best = [f"{name} {models[name]['accuracy']:.4f}" for name in (mine, theirs)]
    error = 100 * (models[mine]["accuracy"] * (1 - models[mine]["accuracy"]) / n_test) ** 0.5
    return f"| {set_name} | {best[0]} | {best[1]} | {gain:+.2f} ± {error:.2f} | {times[0]} | {times[1]} | {ratio} |"


def reasons(sets: dict[str, Any]) -> str:
    """Where we win, where we lose, and what would help."""
    known = {name: finals(found) for name, found in complete(sets).items()}
    if not known:
        return "On no set has every model been run, so nothing is said about who is first."
    return "\n\n".join((_accuracy_words(known), _time_words(known), " ".join((WHY, _loose_words(known))).rstrip()))


def _lead(models: Finals, key: str) -> float:
    """How far the best of ours is ahead of the best peer."""
    return models[_top(models, key, True)][key] - models[_top(models, key, False)][key]


def _accuracy_words(known: dict[str, Finals]) -> str:
    leads = {name: _lead(models, "accuracy") for name, models in known.items()}
    lost = [f"{name} ({100 * lead:+.2f} points)" for name, lead in leads.items() if lead < 0]
    even = [name for name, lead in leads.items() if lead == 0]
    ahead = len(known) - len(lost) - len(even)
    text = f"**Accuracy.** One of ours is the most accurate on {ahead} of {len(known)} sets that are done"
    text += f"; a peer is on {', '.join(lost)}" if lost else ""
    text += f"; they are even on {', '.join(even)}. " if even else ". "
    ahead = sum(_lead(models, "hierarchical_f1") > 0 for models in known.values())
    text += "A difference below the standard error in the table is no difference. "
    return text + f"By hierarchical F1, which counts how far off a wrong label is, ours are first on {ahead}."


def _time_words(known: dict[str, Finals]) -> str:
    lines = [
        "**Time.** Peers that take less processor time to fit than NHSVM and are at most half a point less accurate:\n"
    ]
    lines += [f"- {name}: {_quicker(models)}" for name, models in known.items() if "NHSVM" in models]
    return "\n".join(lines)


def _quicker(models: Finals) -> str:
    ours = models["NHSVM"]
    ratio = {name: ours["fit_cpu"] / found["fit_cpu"] for name, found in models.items() if not is_ours(name)}
    gain = {name: 100 * (models[name]["accuracy"] - ours["accuracy"]) for name in ratio}
    quick = sorted((name for name in ratio if ratio[name] > 1 and gain[name] >= -0.5), key=lambda name: -ratio[name])
    return ", ".join(f"{name} ({ratio[name]:.1f} times, {gain[name]:+.1f} points)" for name in quick) or "none"


def _loose_words(known: dict[str, Finals]) -> str:
    """What stopping early saves and costs."""
    pairs = [(models["NHSVM"], models[LOOSE]) for models in known.values() if {"NHSVM", LOOSE} <= set(models)]
    if not pairs:
        return ""
    saved = [tight["fit_cpu"] / loose["fit_cpu"] for tight, loose in pairs]
    change = [100 * (loose["accuracy"] - tight["accuracy"]) for tight, loose in pairs]
    return (
        f"`{LOOSE}` takes the processor {min(saved):.1f} to {max(saved):.1f} times less than `NHSVM` at the settings "
        f"chosen for each, and its accuracy differs by {min(change):+.1f} to {max(change):+.1f} points, over "
        f"{len(pairs)} sets."
    )
