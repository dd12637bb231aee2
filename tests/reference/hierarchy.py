"""Naive twins of the hierarchy: sets and loops over edges, nothing clever."""

from __future__ import annotations

from itertools import chain, combinations


def closure(edges, start):
    """Ā: grow until no parent is missing."""
    found = set(start)
    while True:
        more = {p for p, c in edges if c in found} - found
        if not more:
            return frozenset(found)
        found |= more


def leaves(nodes, edges):
    return frozenset(nodes) - {p for p, _ in edges}


def level(edges, node):
    """Longest path from a root."""
    return max((1 + level(edges, p) for p, c in edges if c == node), default=0)


def common(nodes, edges):
    """Inner nodes in the closure of every leaf."""
    ends = leaves(nodes, edges)
    return frozenset.intersection(*(closure(edges, [leaf]) for leaf in ends)) - ends


def duplicate_sets(nodes, labels):
    """Nodes of the given label sets, grouped by which of these they are in."""
    groups = {}
    for node in nodes:
        groups.setdefault(tuple(node in label for label in labels), set()).add(node)
    return {frozenset(group) for where, group in groups.items() if any(where)}


def label_space(nodes, edges, multilabel):
    """Y_s or Y_m in full: the closures of all leaves, or of all non-empty sets of leaves."""
    ends = sorted(leaves(nodes, edges), key=repr)
    sizes = range(1, len(ends) + 1) if multilabel else [1]
    return {closure(edges, some) for some in chain.from_iterable(combinations(ends, k) for k in sizes)}
