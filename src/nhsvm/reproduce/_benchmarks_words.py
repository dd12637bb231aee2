"""What Table 4 shows, in words made of its numbers."""

from __future__ import annotations

from nhsvm.reproduce._compare import LEVEL
from nhsvm.reproduce._outcomes import Pair, SetResult
from nhsvm.reproduce.benchmarks import Results


def words(results: Results) -> str:
    """Paragraphs: what is better, by how much, why, where not."""
    if len(results.sets) < 2:
        return ""
    pairs = (("NHSVM", "FlatSVM"), ("NHSVM", "HSVM"), ("SSVM", "NHSVM"))
    parts = [*(_against(results, *pair) for pair in pairs), _why(results), _losses(results)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _against(results: Results, first: str, second: str) -> str:
    """How often one model is better than another, and by how much."""
    pairs = {name: result.pair(first, second) for name, result in results.sets.items()}
    ahead, behind = ([n for n, p in pairs.items() if sign * p.mean > 0] for sign in (1, -1))
    sure, worse = ([n for n in group if pairs[n].p < LEVEL] for group in (ahead, behind))
    return (
        f"**{first} and {second}.** {first} is ahead on {len(ahead)} of {len(pairs)} sets, significantly on "
        f"{_listed(sure, pairs)}; it is behind on {len(behind)}, significantly on {_listed(worse, pairs)}."
    )


def _listed(names: list[str], pairs: dict[str, Pair]) -> str:
    return ", ".join(f"{name} ({pairs[name].mean:+.1f})" for name in names) or "none"


def _why(results: Results) -> str:
    """The spread over sets of one label, where the hierarchy's shape matters most."""
    single = {n: r for n, r in results.sets.items() if not r.multilabel}
    if not single:
        return ""
    name = min(single, key=lambda n: single[n].pair("HSVM", "FlatSVM").mean)
    hsvm, nhsvm = (single[name].pair(m, "FlatSVM").mean for m in ("HSVM", "NHSVM"))
    loss = single[name].outcomes["SSVM"].setting.replace("_", "-")
    return (
        f"**Why.** HSVM is furthest behind on {name} ({hsvm:+.1f} points from the flat SVM), where NHSVM is at "
        f"{nhsvm:+.1f}. The reason the paper gives: HSVM charges deep labels less than shallow ones, and asks for a "
        "margin of the number of nodes that differ; NHSVM's weights add up to one on every path, which bounds margins. "
        f"There SSVM, offered the same Hamming loss and the zero-one loss, chose the {loss} loss."
    )


def _losses(results: Results) -> str:
    """Where the flat SVM is the best of all, and how this compares with the paper's marks."""
    flat = [n for n, r in results.sets.items() if max(r.outcomes, key=r.score) == "FlatSVM"]
    both = [n for n, r in results.sets.items() if all(better(r, "NHSVM", m) for m in ("FlatSVM", "HSVM"))]
    return (
        f"**Where not.** The flat SVM has the best number on {', '.join(flat) or 'no set'}. NHSVM is significantly "
        f"better than both FlatSVM and HSVM on {', '.join(both) or 'no set'}; in the paper's table it is on three of "
        "four. None of this says anything about sets as large as the paper's."
    )


def better(result: SetResult, first: str, second: str) -> bool:
    """Whether one model is significantly better than another."""
    pair = result.pair(first, second)
    return pair.mean > 0 and pair.p < LEVEL
