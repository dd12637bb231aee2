"""The measures on plain Python sets, straight from their definitions."""

from __future__ import annotations

from itertools import combinations, product
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


TOP = ("above", "all")


def upwards(h):
    """Edges from children to parents; if there are several roots, to an unnamed node above them too."""
    graph = h.to_networkx().reverse()
    if len(h.roots) > 1:
        graph.add_edges_from((root, TOP) for root in h.roots)
    return graph


def lca_f1(h, true, pred):
    """From the sets themselves, by trying everything."""
    graph, place = upwards(h), [*h.nodes, TOP].index
    lowest = lambda y: {a for a in y if not any(b != a and nx.has_path(graph, b, a) for b in y)}
    true, pred = lowest(true), lowest(pred)
    if true == pred or not (true and pred):
        return float(true == pred)
    ups = {n: nx.single_source_shortest_path_length(graph, n) for n in true | pred}

    def way(n, c):
        """Of the shortest ways up, the one that goes to the first node at every step."""
        return set(min(nx.all_shortest_paths(graph, n, c), key=lambda path: [place(m) for m in path]))

    def nearest(n, others):
        ways = {(o, c): ups[n][c] + ups[o][c] for o in others for c in set(ups[n]) & set(ups[o])}
        return {c for (_, c), length in ways.items() if length == min(ways.values())}

    labels = [(n, pred) for n in true - pred] + [(n, true) for n in pred - true]
    sides = []
    for tops in product(*(nearest(n, others) for n, others in labels)):
        own = {n: way(n, c) for (n, _), c in zip(labels, tops, strict=True)}
        t, p = (y.union(*(own[n] for n in y if n in own)) for y in (true, pred))
        more = [[way(n, c) for n in y for c in set(tops) if c in ups[n]] for y in (true, pred)]
        enough = [
            [s for k in range(len(ways) + 1) for w in combinations(ways, k) if set(tops) <= (s := side.union(*w))]
            for side, ways in ((t, more[0]), (p, more[1]))
        ]
        sides += product(*([s for s in some if len(s) == min(map(len, some))] for some in enough))
    t, p = min(sides, key=lambda side: (len(side[0]) + len(side[1]), -len(side[0] & side[1])))
    return 2 * len(t & p) / (len(t) + len(p))


def pairing_cost(h, true, pred, alone):
    """The cheapest of all sets of pairs in which every label that only one side has is paired or alone."""
    pairs = {(a, b): distance(h, a, b) for a in true for b in pred if not (a in pred and b in true)}
    costs = []
    for some in (c for k in range(len(pairs) + 1) for c in combinations(pairs, k)):
        left = (true - pred - {a for a, _ in some}, pred - true - {b for _, b in some})
        costs.append(sum(pairs[pair] for pair in some) + alone * (len(left[0]) + len(left[1])))
    return min(costs)


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
