"""Worked examples; the arithmetic stands beside them.

        top                       a     b          (two roots)
       /   \\                     / \\   / \\
   animal   plant               x   \\ /   z
   /    \\      \\                     y
  dog   cat    oak
"""

import numpy as np
import pytest

from nhsvm import Hierarchy
from nhsvm.metrics import (
    accuracy_at_depth,
    auprc,
    example_jaccard,
    f1,
    graph_accuracy,
    hamming_distance,
    hierarchical_f1,
    hierarchical_precision,
    hierarchical_recall,
    lca_f1,
    lshtc_measures,
    tree_distance,
)

TREE = Hierarchy.from_edges(
    [("top", "animal"), ("top", "plant"), ("animal", "dog"), ("animal", "cat"), ("plant", "oak")]
)
DAG = Hierarchy.from_edges([("a", "x"), ("a", "y"), ("b", "y"), ("b", "z")])
Y_TRUE = [{"dog", "oak"}, {"cat"}, {"oak"}]
Y_PRED = [{"dog"}, {"dog"}, {"cat", "oak"}]
# closures without top: {animal, dog, plant, oak}, {animal, cat}, {plant, oak}
#                       {animal, dog}, {animal, dog}, {animal, cat, plant, oak}
# common                2, 1, 2; true 4, 2, 2; predicted 2, 2, 4


def is_(value):
    return pytest.approx(value, rel=1e-15)


def test_jaccard():
    assert example_jaccard(Y_TRUE, Y_PRED, hierarchy=TREE) == is_((1 / 2 + 0 / 2 + 1 / 2) / 3)
    assert example_jaccard(Y_TRUE, Y_PRED, hierarchy=TREE, over="nodes") == is_((2 / 4 + 1 / 3 + 2 / 4) / 3)
    # with top, every set has one more, and it is common
    assert example_jaccard(Y_TRUE, Y_PRED, hierarchy=TREE, over="nodes", roots=True) == is_((3 / 5 + 2 / 4 + 3 / 5) / 3)


def test_f1():
    # common labels 1 + 0 + 1, true 2 + 1 + 1, predicted 1 + 1 + 2
    assert f1(Y_TRUE, Y_PRED, hierarchy=TREE) == is_(2 * 2 / (4 + 4))
    # dog: common 1, true 1, predicted 2; cat: 0, 1, 1; oak: 1, 2, 1
    assert f1(Y_TRUE, Y_PRED, hierarchy=TREE, average="macro") == is_((2 / 3 + 0 + 2 / 3) / 3)
    assert f1(Y_TRUE, Y_PRED, hierarchy=TREE, average="samples") == is_((2 / 3 + 0 + 2 / 3) / 3)
    assert f1(Y_TRUE, Y_PRED, hierarchy=TREE, over="nodes") == is_(2 * 5 / (8 + 8))
    # animal: common 2, true 2, predicted 3; plant: 1, 2, 1
    expected = (2 / 3 + 0 + 2 / 3 + 4 / 5 + 2 / 3) / 5
    assert f1(Y_TRUE, Y_PRED, hierarchy=TREE, average="macro", over="nodes") == is_(expected)
    # top: 3, 3, 3
    assert f1(Y_TRUE, Y_PRED, hierarchy=TREE, average="macro", over="nodes", roots=True) == is_((5 * expected + 1) / 6)


def test_f1_of_labels_that_do_not_occur():
    given = {"hierarchy": TREE, "average": "macro"}
    assert f1(["dog", "dog"], ["dog", "cat"], **given) == is_((2 / 3 + 0) / 2)
    assert f1(["dog", "dog"], ["dog", "cat"], **given, zero_division=0.0) == is_((2 / 3 + 0 + 0) / 3)
    assert f1(["dog", "dog"], ["dog", "cat"], **given, zero_division=1.0) == is_((2 / 3 + 0 + 1) / 3)
    # an inner node that is a label is one more column, and labels= says what the others are
    assert f1(["dog", "animal"], ["dog", "cat"], **given, zero_division=0.0) == is_((1 + 0 + 0 + 0) / 4)
    assert f1(["dog", "dog"], ["dog", "dog"], **given, zero_division=0.0, labels=["dog", "cat"]) == is_((1 + 0) / 2)


def test_hamming():
    # 1, 2 and 1 of 3 labels are wrong
    assert hamming_distance(Y_TRUE, Y_PRED, hierarchy=TREE) == is_((1 + 2 + 1) / (3 * 3))
    # 2, 2 and 2 of 5 nodes
    assert hamming_distance(Y_TRUE, Y_PRED, hierarchy=TREE, over="nodes") == is_(6 / (3 * 5))
    assert hamming_distance(Y_TRUE, Y_PRED, hierarchy=TREE, over="nodes", roots=True) == is_(6 / (3 * 6))
    assert hamming_distance(Y_TRUE, Y_PRED, hierarchy=TREE, over="nodes", normalize=False) == is_(2.0)


def test_hierarchical():
    assert hierarchical_precision(Y_TRUE, Y_PRED, hierarchy=TREE) == is_((2 + 1 + 2) / (2 + 2 + 4))
    assert hierarchical_recall(Y_TRUE, Y_PRED, hierarchy=TREE) == is_((2 + 1 + 2) / (4 + 2 + 2))
    assert hierarchical_precision(Y_TRUE, Y_PRED, hierarchy=TREE, average="samples") == is_((1 + 1 / 2 + 1 / 2) / 3)
    assert hierarchical_recall(Y_TRUE, Y_PRED, hierarchy=TREE, average="samples") == is_((1 / 2 + 1 / 2 + 1) / 3)
    assert hierarchical_f1(Y_TRUE, Y_PRED, hierarchy=TREE, average="samples") == is_((4 / 6 + 2 / 4 + 4 / 6) / 3)
    # weights 1, 2, 1: common 2 + 2 + 2, true 4 + 4 + 2, predicted 2 + 4 + 4
    assert hierarchical_f1(Y_TRUE, Y_PRED, hierarchy=TREE, sample_weight=[1, 2, 1]) == is_(2 * 6 / (10 + 10))


def test_hierarchical_roots():
    # y has {a, b, y}, z has {b, z}: common {b}
    assert hierarchical_precision(["y"], ["z"], hierarchy=DAG) == is_(1 / 2)
    assert hierarchical_recall(["y"], ["z"], hierarchy=DAG) == is_(1 / 3)
    assert hierarchical_f1(["y"], ["z"], hierarchy=DAG) == is_(2 / 5)
    assert hierarchical_f1(["y"], ["z"], hierarchy=DAG, roots=False) == 0.0
    # with top: common 3 + 2 + 3, true 5 + 3 + 3
    assert hierarchical_recall(Y_TRUE, Y_PRED, hierarchy=TREE, roots=True) == is_(8 / 11)


def test_nothing_predicted():
    given = {"hierarchy": TREE, "average": "samples"}
    # the first sample: precision is 0/0; the second: truth and prediction are empty and agree
    y_true, y_pred = [{"dog"}, set()], [set(), set()]
    assert hierarchical_precision(y_true, y_pred, **given) == is_((0 + 1) / 2)
    assert hierarchical_precision(y_true, y_pred, **given, zero_division=1.0) == 1.0
    assert hierarchical_recall(y_true, y_pred, **given) == is_((0 + 1) / 2)
    assert hierarchical_recall(y_pred, y_true, **given, zero_division=0.5) == is_((0.5 + 1) / 2)
    assert hierarchical_f1(y_true, y_pred, **given) == is_((0 + 1) / 2)
    assert example_jaccard(y_true, y_pred, hierarchy=TREE) == is_((0 + 1) / 2)
    assert hierarchical_precision(y_true, y_pred, hierarchy=TREE) == 0.0
    assert f1(y_true, y_pred, hierarchy=TREE) == 0.0
    for average in ("micro", "macro", "samples"):
        assert f1([[], []], [[], []], hierarchy=TREE, average=average) == 1.0


def test_only_the_root():
    """Without the root nothing is left: two empty sets."""
    only = Hierarchy.from_edges([], nodes=["only"])
    assert hierarchical_f1(["only"], ["only"], hierarchy=only) == 1.0
    assert hamming_distance(["only"], ["only"], hierarchy=only, over="nodes") == 0.0
    assert f1(["only"], ["only"], hierarchy=only, over="nodes", average="macro") == 1.0
    assert auprc(["only"], [[0.5]], hierarchy=only) == 0.0
    assert auprc(["only"], [[0.5]], hierarchy=only, zero_division=1.0) == 1.0
    assert auprc(["only"], [[0.5]], hierarchy=only, roots=True) == 1.0
    assert lshtc_measures([[]], [[]], hierarchy=only)["macro_f1"] == 1.0


def test_distance():
    # dog-cat 2, dog-oak 4, dog-top 2, dog-dog 0
    y_true, y_pred = ["dog"] * 4, ["cat", "oak", "top", "dog"]
    assert tree_distance(y_true, y_pred, hierarchy=TREE) == is_((2 + 4 + 2 + 0) / 4)
    assert tree_distance(y_true, y_pred, hierarchy=TREE, sample_weight=[1, 0, 0, 3]) == is_(2 / 4)
    # LCA animal: {cat, animal} and {dog, animal}: P = R = 1/2. LCA top: 3 nodes each, 1/3. Upwards only:
    # {dog, animal, top} and {top}: P = 1, R = 1/3, F1 = 2/4.
    assert lca_f1(y_true, y_pred, hierarchy=TREE) == is_((1 / 2 + 1 / 3 + 1 / 2 + 1) / 4)


def test_distance_on_a_dag():
    # x-a-y 2, y-b-z 2, x-a-(unnamed)-b-z 4, a-(unnamed)-b 2
    assert tree_distance(["x", "y", "x", "a"], ["y", "z", "z", "b"], hierarchy=DAG) == is_((2 + 2 + 4 + 2) / 4)
    # a short and a long way up count once, by the short one: r-y is 1, though y is at depth 2
    short = Hierarchy.from_edges([("r", "m"), ("m", "y"), ("r", "y"), ("r", "z")])
    assert tree_distance(["y", "m"], ["z", "y"], hierarchy=short) == is_((2 + 1) / 2)


def test_lca_f1_of_sets():
    def of(true, pred, h=TREE):
        return lca_f1([true], [pred], hierarchy=h)

    assert of({"dog", "oak"}, {"cat", "oak"}) == is_(2 * 2 / (3 + 3))  # {dog, animal, oak}, {cat, animal, oak}
    # oak is joined with dog: {dog, animal, top} and {dog, oak, plant, top}
    assert of({"dog"}, {"dog", "oak"}) == is_(2 * 2 / (3 + 4))
    # both are joined with cat: {dog, animal, oak, plant, top} and {cat, animal, top}
    assert of({"dog", "oak"}, {"cat"}) == is_(2 * 2 / (5 + 3))
    assert of({"animal", "dog"}, {"dog"}) == 1.0  # animal is above dog and says nothing
    assert of(set(), set()) == 1.0
    assert of({"dog"}, set()) == of(set(), {"dog"}) == 0.0
    # x and z meet above both roots: {x, a, above}, {z, b, above}
    assert of({"x"}, {"z"}, DAG) == is_(2 * 1 / (3 + 3))
    assert of({"x", "z"}, {"y"}, DAG) == is_(2 * 2 / (4 + 3))  # {x, a, z, b}, {y, a, b}


def test_lca_f1_adds_nothing_that_is_not_needed():
    """
        a
       / \\
      b   t      y is as far from s (over b) as from t (over a), and s is joined with y over b anyway
     / \\   \\
    y   x   w
         \\
          s
    """
    h = Hierarchy.from_edges([("a", "b"), ("a", "t"), ("b", "y"), ("b", "x"), ("x", "s"), ("t", "w")])
    # {y, b, w, t} and {s, x, b, t}; with a it would be 6 / 10
    assert lca_f1([{"y", "w"}], [{"s", "t"}], hierarchy=h) == is_(2 * 2 / (4 + 4))


def test_graph_accuracy():
    def of(true, pred, **options):
        return graph_accuracy([true], [pred], hierarchy=TREE, **options)

    assert of({"dog", "oak"}, {"cat", "oak"}) == is_(1 - 2 / (5 * 2))  # dog-cat 2
    assert of({"dog"}, {"dog", "oak"}) == is_(1 - 4 / 5)  # oak-dog 4, which dog need not be in
    assert of({"dog"}, {"cat", "oak"}) == is_(1 - (2 + 4) / (5 * 3))  # dog is in two pairs
    assert of({"dog", "oak"}, {"cat", "plant"}) == is_(1 - (2 + 1) / (5 * 4))
    assert of({"dog"}, {"dog", "oak"}, max_distance=3) == 0.0  # oak is alone
    assert of({"dog"}, set()) == 0.0
    assert of({"dog"}, {"dog"}) == of(set(), set()) == 1.0
    both = graph_accuracy([{"dog"}, {"dog"}], [{"cat"}, {"dog"}], hierarchy=TREE, sample_weight=[3, 1])
    assert both == is_((3 * 0.8 + 1) / 4)


def test_accuracy_at_depth():
    # depth 0: all right. depth 1: {animal, plant} against {animal} is wrong, {animal} right, {plant} against both not.
    # depth 2: {dog, oak} against {dog}, {cat} against {dog}, {oak} against {cat, oak}: all wrong
    assert accuracy_at_depth(Y_TRUE, Y_PRED, hierarchy=TREE) == {0: 1.0, 1: is_(1 / 3), 2: 0.0}
    # plant has nothing at depth 2; predicting too little is wrong there
    assert accuracy_at_depth(["plant", "dog"], ["oak", "animal"], hierarchy=TREE) == {0: 1.0, 1: 1.0, 2: 0.0}
    assert accuracy_at_depth(["plant"], ["oak"], hierarchy=TREE) == {0: 1.0, 1: 1.0}
    weighted = accuracy_at_depth(["dog", "oak"], ["cat", "oak"], hierarchy=TREE, sample_weight=[1, 3])
    assert weighted == {0: 1.0, 1: 1.0, 2: is_(3 / 4)}
    assert accuracy_at_depth(["dog", "top"], ["dog", "top"], hierarchy=TREE, sample_weight=[0, 1]) == {0: 1.0}


def test_auprc():
    # nodes: top animal plant dog cat oak; top is left out. Positive: animal, dog (0.9, 0.3) and plant, oak (0.8, 0.3).
    scores = np.array([[0.0, 0.9, 0.1, 0.3, 0.6, 0.2], [0.0, 0.5, 0.8, 0.1, 0.1, 0.3]])
    # 0.9 +, 0.8 +, 0.6 -, 0.5 -, two at 0.3 +: precision 1/1, 2/2, then 4/6; each + is 1/4 of recall
    expected = 1 / 4 * 1 + 1 / 4 * 1 + 2 / 4 * 4 / 6
    assert auprc(["dog", "oak"], scores, hierarchy=TREE) == is_(expected)
    # top comes last and is right: precision of all 12 is 6/12, recall grows by 2/6
    with_top = 1 / 6 + 1 / 6 + 2 / 6 * 4 / 6 + 2 / 6 * 6 / 12
    assert auprc(["dog", "oak"], scores, hierarchy=TREE, roots=True) == is_(with_top)
    # only depth 2: dog .3 + and oak .3 + behind cat .6 -
    chosen = auprc(["dog", "oak"], scores[:, 3:], hierarchy=TREE, nodes=TREE.nodes[3:])
    assert chosen == is_(2 / 3)


def test_lshtc():
    found = lshtc_measures(["dog", "cat", "oak", "oak"], ["dog", "dog", "oak", "cat"], hierarchy=TREE)
    # dog: common 1, true 1, predicted 2; cat: 0, 1, 1; oak: 1, 2, 1
    precision, recall = (1 / 2 + 0 + 1) / 3, (1 + 0 + 1 / 2) / 3
    assert found == {
        "accuracy": 0.5,
        "example_precision": 0.5,
        "example_recall": 0.5,
        "example_f1": 0.5,
        "macro_precision": is_(precision),
        "macro_recall": is_(recall),
        "macro_f1": is_(2 * precision * recall / (precision + recall)),
        "micro_precision": 0.5,
        "micro_recall": 0.5,
        "micro_f1": 0.5,
        # without top, 2 nodes each: common 2, 1, 2, 0
        "hierarchical_precision": is_((2 + 1 + 2 + 0) / 8),
        "hierarchical_recall": is_((2 + 1 + 2 + 0) / 8),
        "hierarchical_f1": is_((2 + 1 + 2 + 0) / 8),
        "lca_f1": is_((1 + 2 / 4 + 1 + 2 / 6) / 4),
        "graph_accuracy": is_((1 + (1 - 2 / 10) + 1 + (1 - 4 / 10)) / 4),
        "graph_error": is_((0 + 2 + 0 + 4) / 4),
        "tree_error": is_((0 + 2 + 0 + 4) / 4),
    }
    several = lshtc_measures(Y_TRUE, Y_PRED, hierarchy=TREE)
    assert "tree_error" not in several
    assert several["example_precision"] == is_((1 + 0 + 1 / 2) / 3)
    assert several["example_recall"] == is_((1 / 2 + 0 + 1) / 3)
    assert lshtc_measures(["dog"], ["cat"], hierarchy=TREE)["macro_f1"] == 0.0
