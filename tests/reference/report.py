"""Counts of branches, depths and confusions by sets and loops."""

from collections import Counter


def branch(h, y_true, y_pred, node):
    """(samples, predicted, both, labels, found, said, left) of a node and what is below it."""
    below = h.descendants([node]) | {node}
    samples = predicted = both = labels = found = said = left = 0
    for t, p in zip(y_true, y_pred, strict=True):
        samples += bool(t & below)
        predicted += bool(p & below)
        both += bool(t & below) and bool(p & below)
        labels += len(t & below)
        found += len(t & p & below)
        said += len(p & below)
        left += 0 if p & below else len(t & below)
    return samples, predicted, both, labels, found, said, left


def first_errors(h, y_true, y_pred):
    """How many samples go wrong at each depth and are right above."""
    wrong = (h.closure(list(t)) ^ h.closure(list(p)) for t, p in zip(y_true, y_pred, strict=True))
    return Counter(min(map(h.depth, nodes)) for nodes in wrong if nodes)


def confusions(y_true, y_pred):
    """How often a missed label meets a wrong one."""
    pairs = ((a, b) for t, p in zip(y_true, y_pred, strict=True) for a in t - p for b in p - t)
    return Counter(pairs)
