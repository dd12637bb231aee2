"""A hierarchy as lines of text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nhsvm.errors import OptionError
from nhsvm.hierarchy.graph import Graph
from nhsvm.hierarchy.labels import VirtualLeaf
from nhsvm.typing import Label


def draw(labels: Sequence[Label], graph: Graph, notes: Mapping[Label, str], max_nodes: int) -> str:
    """Depth-first drawing; below its second parent a node is named again but not unfolded again."""
    if max_nodes < 1:
        raise OptionError(f"max_nodes must be at least 1, not {max_nodes}")
    lines: list[tuple[str, str]] = []
    drawn: set[int] = set()
    # (node, prefix of its line, prefix of its children's lines), last in first out
    stack = [(root, "", "") for root in reversed(range(graph.n_roots))]
    while stack and len(lines) < max_nodes:
        node, prefix, below = stack.pop()
        again = node in drawn and not graph.is_leaf[node]
        drawn.add(node)
        name = _name(labels[node])
        lines.append((prefix + name + (" (see above)" if again else ""), notes.get(labels[node], "")))
        if not again:
            children = [int(c) for c in graph.children.row(node)]
            for child in reversed(children):
                last = child == children[-1]
                stack.append((child, below + ("└── " if last else "├── "), below + ("    " if last else "│   ")))
    width = max(len(text) for text, _ in lines)
    out = [f"{text:<{width}}  {note}".rstrip() for text, note in lines]
    if stack:  # what is left may be nodes drawn already, below further parents
        left = graph.n_nodes - len(drawn)
        out.append("..." if not left else f"... and {left} more node{'s' * (left != 1)}")
    return "\n".join(out)


def _name(label: Label) -> str:
    return f"({label.of} itself)" if isinstance(label, VirtualLeaf) else str(label)


def summary(graph: Graph) -> str:
    """Kind and counts in one line."""
    kind = ("tree" if graph.n_roots == 1 else "forest") if graph.is_tree else "DAG"
    leaves = "1 leaf" if graph.n_leaves == 1 else f"{graph.n_leaves} leaves"
    counts = [(graph.n_nodes, "node"), (graph.n_roots, "root"), (graph.n_levels, "level")]
    nodes, roots, levels = (f"{n} {name}{'s' * (n != 1)}" for n, name in counts)
    return f"{kind}, {nodes}, {leaves}, {roots}, {levels}"
