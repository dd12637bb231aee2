"""The measures on plain Python sets, straight from their definitions."""

from __future__ import annotations

from math import isnan

import networkx as nx


def counted(h, roots):
    """The nodes that count."""
    left_out = set() if roots is True or (roots == "auto" and len(h.roots) > 1) else set(h.roots)
    return {n for n in h.nodes if n not in left_out}


def node_sets(h, y, roots):
    return [set(h.closure(set(labels))) & counted(h, roots) for labels in y]


def mean(values, weight):
    return sum(w * v for v, w in zip(values, weight, strict=True)) / sum(weight)


def share(part, whole, other, otherwise=0.0):
    if whole:
        return part / whole
    return otherwise if other else 1.0


def jaccard(true, pred, weight):
    return mean([share(len(t & p), len(t | p), 0) for t, p in zip(true, pred, strict=True)], weight)


def sums(true, pred, weight):
    """Weighted Σ|Y∩Ŷ|, Σ|Y|, Σ|Ŷ|."""
    rows = list(zip(true, pred, weight, strict=True))
    return (
        sum(w * len(t & p) for t, p, w in rows),
        sum(w * len(t) for t, p, w in rows),
        sum(w * len(p) for t, p, w in rows),
    )


def f1_of(both, true, pred):
    return share(2 * both, true + pred, 0)


def column(true, pred, weight, name):
    """What :func:`sums` gives for one label alone."""
    return sums([t & {name} for t in true], [p & {name} for p in pred], weight)


def macro_f1(true, pred, weight, names, zero_division=float("nan")):
    values = []
    for name in names:
        both, t, p = column(true, pred, weight, name)
        if t + p:
            values.append(2 * both / (t + p))
        elif not isnan(zero_division):
            values.append(zero_division)
    return sum(values) / len(values) if values else 1.0


def distance(h, a, b):
    """Over all common ancestors, the unnamed root included, the shortest way up from both."""
    graph = h.to_networkx().reverse()
    graph.add_edges_from((root, ("above", "all")) for root in h.roots)
    up_a, up_b = (nx.single_source_shortest_path_length(graph, n) for n in (a, b))
    common = set(up_a) & set(up_b)
    if len(h.roots) == 1:
        common -= {("above", "all")}
    return min(up_a[c] + up_b[c] for c in common)


def lca_f1(h, a, b):
    """From the sets themselves: each label with its shortest way up to the common ancestor that is nearest to both."""
    graph = h.to_networkx().reverse()
    graph.add_edges_from((root, ("above", "all")) for root in h.roots)
    ways_a, ways_b = (nx.single_source_shortest_path(graph, n) for n in (a, b))
    c = min(set(ways_a) & set(ways_b), key=lambda n: len(ways_a[n]) + len(ways_b[n]))
    y, z = set(ways_a[c]), set(ways_b[c])
    precision, recall = len(y & z) / len(z), len(y & z) / len(y)
    return 2 * precision * recall / (precision + recall)


def accuracy_at_depth(h, y_true, y_pred, weight):
    found = {}
    for k in range(h.graph.n_levels):
        right = total = 0.0
        for labels, guess, w in zip(y_true, y_pred, weight, strict=True):
            t, p = ({n for n in h.closure(set(s)) if h.depth(n) == k} for s in (labels, guess))
            if t:
                total += w
                right += w * (t == p)
        if total:
            found[k] = right / total
    return found
