"""Options of the estimators: each is declared once, in :class:`Options`, for all estimators and the command line.

A declaration has the type, the default, what the documentation and the command line say, and the check. An estimator
takes all options but those that its preset settles: see :class:`Preset`.
"""

# No "from __future__ import annotations": declarations are read from the annotations of Options.
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, Signature, cleandoc
from math import inf
from numbers import Integral, Real
from string import Template
from textwrap import fill, indent
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypedDict, TypeGuard

from nhsvm.errors import OptionError
from nhsvm.oracles import ORACLES
from nhsvm.registry import Check, Flag, Option
from nhsvm.sizes import is_number

if TYPE_CHECKING:  # the command line shows its help without scipy and scikit-learn
    from nhsvm.losses import Loss
    from nhsvm.typing import Callback, Seed
    from nhsvm.typing import Options as OptionValues
    from nhsvm.weights import Scheme

MARGINS = ("loss", "normalized")
AUTO = "auto"
"""The value of options that are worked out from the data."""


class Defaults(NamedTuple):
    """What "auto" is made of; measured in ``docs/decisions/080-defaults.md``."""

    cost: float = 3.0
    """C times the mean of ‖x‖²."""
    intercept: float = 0.3
    """Value of the constant feature, over the root mean square of ‖x‖."""
    offset: float = -1.3
    """Offset of a leaf, in units of what it costs in a label set."""
    tol: float = 0.3
    """Estimated gap from which on accuracy hardly changes."""
    small_tol: float = 1e-3
    """The same, proved, of small problems."""
    small: int = 2**15
    """Samples times nodes of the largest of these, whose proof takes no time that anybody would notice."""


DEFAULTS = Defaults()


# -- checks of one value: (name of the option, value) ------------------------------------------------------------------


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, Integral) and not isinstance(value, bool)


def _positive(name: str, value: object) -> None:
    if not is_number(value) or not 0 < value < inf:
        raise OptionError(f"{name} must be a positive number, not {value!r}")


def or_auto(check: Check, what: str) -> Check:
    """The check of an option that may be "auto"; ``what`` it has to be otherwise."""

    def checked(name: str, value: object) -> None:
        if isinstance(value, str) and value == AUTO:
            return
        try:
            check(name, value)
        except OptionError:
            raise OptionError(f"{name} must be {what} or 'auto', not {value!r}") from None

    return checked


def _finite(name: str, value: object) -> None:
    if not is_number(value) or not abs(value) < inf:
        raise OptionError(f"{name} must be a finite number, not {value!r}")


def _yes_or_no(name: str, value: object) -> None:
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):  # NumPy's, which is not loaded
        raise OptionError(f"{name} must be True or False, not {value!r}")


def _at_least(least: int, more: str = "", *, or_bool: bool = False) -> Check:
    def check(name: str, value: object) -> None:
        if not (_is_whole(value) or (or_bool and isinstance(value, bool))) or value < least:
            raise OptionError(f"{name} must be a whole number of at least {least}{more}, not {value!r}")

    return check


def _one_of(*known: str) -> Check:
    def check(name: str, value: object) -> None:
        if not isinstance(value, str) or value not in known:
            raise OptionError(f"{name} must be one of {known}, not {value!r}")

    return check


def set_oracles() -> tuple[str, ...]:
    """What ``oracle=`` can be for label sets."""
    return ("auto", *(spec.name for spec in ORACLES.specs.values() if spec.trains and not spec.single))


def _known_oracle(name: str, value: object) -> None:
    _one_of(*set_oracles(), *(spec.name for spec in ORACLES.specs.values() if spec.single))(name, value)


def _known_solver(name: str, value: object) -> None:
    from nhsvm.engine import SOLVERS

    if isinstance(value, str) and value in SOLVERS:
        return
    from nhsvm.engine import Solver

    if not isinstance(value, Solver):
        raise SOLVERS.refusal(value)


def _known_class_weight(name: str, value: object) -> None:
    known = value is None or isinstance(value, dict)
    if not known and not (isinstance(value, str) and value == "balanced"):
        raise OptionError(f"{name} must be None, 'balanced' or a dict, not {value!r}")


def _known_measure(name: str, value: object) -> None:
    from nhsvm.metrics.measures import MEASURES

    if value is not None and not callable(value) and not (isinstance(value, str) and value in MEASURES):
        raise OptionError(f"{name} must be None, one of {list(MEASURES)} or a function, not {value!r}")


def check_splits(name: str, value: object) -> None:
    """Raise an OptionError unless the value is a number of folds, a splitter or an iterable of splits."""
    if isinstance(value, (Real, str)) or not (hasattr(value, "split") or isinstance(value, Iterable)):
        _at_least(1, " fold, a splitter, or an iterable of splits")(name, value)


def check_threads(name: str, value: object) -> None:
    """Raise an OptionError unless the value is None or a number of threads."""
    if value is not None and (not _is_whole(value) or value == 0):
        raise OptionError(f"{name} must be None, a positive number of threads, or -1 for all, not {value!r}")


def _bytes(name: str, value: object) -> None:
    from nhsvm.estimators.memory import parsed

    if value is not None:
        parsed(value, name)


def _share(name: str, value: object) -> None:
    if not is_number(value) or not 0 < value < 1:
        raise OptionError(f"{name} must be a number between 0 and 1, not {value!r}")


def _known_score(name: str, value: object) -> None:
    from nhsvm.estimators.early_stopping import ACCURACY, MEASURES

    if isinstance(value, str):
        _one_of(ACCURACY, *MEASURES)(name, value)
    else:
        _yes_or_no(name, value)


def _function(name: str, value: object) -> None:
    if value is not None and not callable(value):
        raise OptionError(f"{name} must be a function of one record, not {value!r}")


# -- declarations ------------------------------------------------------------------------------------------------------


class Options(TypedDict, total=False):
    """What estimators take by name, beside the hierarchy and C."""

    weights: Annotated[
        "str | Scheme",
        Option(
            "maxmin",
            "str or scheme",
            'α: "maxmin" (Eq. 7), "power" (Eq. 6), "uniform", "flat", or an instance such as '
            "``nhsvm.weights.Power(rho=2, directional=True)``.",
        ),
    ]
    margin: Annotated[
        str,
        Option(
            "loss",
            '{"loss", "normalized"}',
            "Ask of every pair of labels a margin of its loss (Eq. 10), or divide their difference by its norm and ask "
            "for a margin of 1 (Eq. 13).",
            _one_of(*MARGINS),
            Flag("Of NHSVM: loss, normalized.", MARGINS, shown="loss", metavar="NAME"),
        ),
    ]
    loss: Annotated[
        "str | type[Loss] | Loss",
        Option(
            "auto",
            '{"auto", "zero_one", "hamming", "normalized", "leaf_hamming"}, class or Loss',
            'The structural error Δ; "auto" is "$auto_loss"$auto_loss_meaning; of label sets always "leaf_hamming", '
            'and "hamming" is the other one they can have.',
        ),
    ]
    solver: Annotated[
        object,
        Option(
            "dual",
            '{"dual", "sgd"} or instance',
            '``"dual"`` is exact and proves it; ``"sgd"`` is the paper\'s stochastic method, with ``partial_fit``. An '
            'instance, such as ``nhsvm.engine.Sgd(step="sqrt")``, has its own tol, max_iter, threads, seed and '
            "callback (and ``nhsvm.engine.Dual`` its own certify).",
            _known_solver,
        ),
    ]
    oracle: Annotated[
        str,
        Option(
            "auto",
            "{" + ", ".join(['"auto"', *(f'"{spec.name}"' for spec in ORACLES.specs.values() if spec.trains)]) + "}",
            'How the most violating label, or label set, is found in training. "auto" tries all labels; for label sets '
            'it takes the dynamic programme on trees and the search with bounds elsewhere. "lp" is the paper\'s way, '
            "in HiGHS: on a DAG, training (and ``objective_``) is that of a linear relaxation, and predictions take "
            "the integer program where they have to.",
            _known_oracle,
        ),
    ]
    fit_intercept: Annotated[
        bool,
        Option(
            True,
            "bool",
            "Add a constant feature, which is regularised like the others.",
            _yes_or_no,
            Flag("A constant feature.", bool, ("--intercept/--no-intercept",), name="intercept"),
        ),
    ]
    intercept_scaling: Annotated[
        "float | str",
        Option(
            AUTO,
            'float or "auto"',
            "Its value. The larger, the less the intercept is regularised, and the more all samples share in every "
            'step. "auto" is $intercept of the root mean square of ‖x‖, rounded to three digits.',
            or_auto(_positive, "a positive number"),
            Flag("Value of the constant feature.", float, shown="by the size of samples"),
        ),
    ]
    class_weight: Annotated[
        object,
        Option(
            None,
            'dict, "balanced" or None',
            'Factors of C by class; "balanced" makes every class count the same. For one label a sample.',
            _known_class_weight,
            Flag("Factors of C: none, balanced.", ("none", "balanced"), shown="none", metavar="NAME"),
        ),
    ]
    probability: Annotated[
        bool,
        Option(
            False,
            "bool",
            "Learn probabilities for ``predict_proba``, ``node_proba`` and ``predict_partial`` from held-out folds, "
            "which takes ``cv`` more fits: a temperature for one label a sample, a curve for every node for label "
            "sets. Without it, these methods do not exist.",
            _yes_or_no,
            Flag("Learn probabilities from held-out folds. Refits once per fold.", bool, ("--probability",)),
        ),
    ]
    cv: Annotated[
        object,
        Option(
            5,
            "int, splitter or iterable of (train, test)",
            "The folds. A number deals the samples of every class in turn; the only sample of a class is never held "
            "out. 1 is one fit, with a fifth of the samples held out. The class of a label set is the rarest of its "
            "labels; samples that are alone in theirs are one class.",
            check_splits,
            Flag("Number of folds.", int, name="folds", shown="5"),
        ),
    ]
    allow_empty: Annotated[
        bool,
        Option(
            False,
            "bool",
            "Accept samples without a label, and predict empty sets where these are best. For label sets.",
            _yes_or_no,
            Flag("A set of labels may be empty.", bool, ("--allow-empty",), panel="Label sets"),
        ),
    ]
    leaf_offset: Annotated[
        "float | str",
        Option(
            AUTO,
            'float or "auto"',
            "Added to the score of every leaf, in training and prediction. For label sets. With −1 a label that is "
            'wrong for a sample starts out exactly at its margin, and weights stay sparse. "auto" is $offset times '
            "what a wrong leaf costs, times 1 − 2p if a sample has the share p of all leaves, at most 0: scores begin "
            "where labels are that are wrong for most samples.",
            or_auto(_finite, "a finite number"),
            Flag(
                "Added to the score of every label.",
                float,
                shown="by the loss, and how many labels samples have",
                panel="Label sets",
            ),
        ),
    ]
    offsets: Annotated[
        object,
        Option(
            None,
            "str, callable or None",
            'For label sets: a measure, such as "example_jaccard", "f1_micro" or "hierarchical_f1", to tune '
            "``offsets_`` for, on held-out folds, which takes ``cv`` more fits; or a function of (hierarchy, y_true, "
            "y_pred).",
            _known_measure,
            Flag("Tune how many labels are given for this, such as f1_micro.", panel="Label sets", metavar="MEASURE"),
        ),
    ]
    tol: Annotated[
        "float | str",
        Option(
            AUTO,
            'float or "auto"',
            "Stop when (primal − dual) / primal is proved to be at most this. From 1e-4 up, weights are single "
            'precision. "auto" is 1e-3 for small problems, of up to $small samples times nodes with weight; for others '
            "it is $tol, from which on accuracy hardly changes, and estimated only: see ``certify``.",
            or_auto(_positive, "a positive number"),
            Flag("Stop at this gap, which is proved.", float, shown="by the size of the data", panel="Solver"),
        ),
    ]
    max_iter: Annotated[
        int,
        Option(
            1000,
            "int",
            "Passes over the data, at most.",
            _at_least(1),
            Flag("Passes over the data, at most.", int, shown="1000", panel="Solver"),
        ),
    ]
    certify: Annotated[
        "bool | str",
        Option(
            AUTO,
            'bool or "auto"',
            "Prove ``gap_``, also where the fit ends before ``tol`` is reached, by ``max_iter`` or the callback; every "
            "proof takes about as long as a pass, and on DAGs longer. Without it, the fit ends where the gap that it "
            'estimates on the way is at most ``tol``, and ``gap_`` is that estimate. "auto" proves if ``tol`` is a '
            "number, or the problem is small.",
            or_auto(_yes_or_no, "True, False"),
            Flag(
                "Prove the gap.",
                bool,
                ("--certify/--no-certify",),
                shown="if --tol is given, or for small data",
                panel="Solver",
            ),
        ),
    ]
    early_stopping: Annotated[
        "bool | str",
        Option(
            False,
            "bool or str",
            "Hold out a part of the samples, and stop when their score has not improved for ``n_iter_no_change`` "
            "passes; the weights of the best pass are kept. True is accuracy, and for label sets "
            '"example_jaccard"; a name is that of a measure, such as "hierarchical_f1". The score of every pass is in '
            "``history_`` as validation_score.",
            _known_score,
            Flag("Stop when this measure no longer improves on samples held out.", panel="Solver", metavar="MEASURE"),
        ),
    ]
    validation_fraction: Annotated[
        float,
        Option(
            0.1,
            "float",
            "Share of the samples that ``early_stopping`` holds out. The only sample of a class is not held out.",
            _share,
            Flag("Share of the samples to hold out for --early-stopping.", float, shown="0.1", panel="Solver"),
        ),
    ]
    n_iter_no_change: Annotated[
        int,
        Option(
            2,
            "int",
            "Passes without a better score after which ``early_stopping`` ends the fit.",
            _at_least(1),
            Flag("Passes without improvement for --early-stopping.", int, shown="2", panel="Solver"),
        ),
    ]
    n_jobs: Annotated[
        int | None,
        Option(
            None,
            "int or None",
            "Threads; -1 for all cores. The result is the same, bit for bit, for any number.",
            check_threads,
            Flag("Threads; -1 for all cores.", int, ("--jobs", "-j"), name="jobs", shown="1", panel="Solver"),
        ),
    ]
    random_state: Annotated[
        "Seed",
        Option(
            None,
            "int, RandomState or None",
            "Order of the samples. None is a fixed seed.",
            flag=Flag("Order of the samples.", int, name="seed", shown="a fixed one", panel="Solver"),
        ),
    ]
    memory_limit: Annotated[
        "float | str | None",
        Option(
            None,
            "int, str or None",
            'Bytes that weights may take, or text such as "6 GB"; None is 60 % of what is free. With sparse samples, '
            "weights that do not fit as a table are kept as rows as long as they need to be, and ``coef_`` is then "
            "sparse.",
            _bytes,
            Flag("For weights, such as 6GB.", shown="60 % of what is free", panel="Solver", metavar="SIZE"),
        ),
    ]
    verbose: Annotated[int, Option(0, "int", "1 prints a line a pass.", _at_least(0, or_bool=True))]
    warm_start: Annotated[
        bool,
        Option(
            False,
            "bool",
            "Go on from the dual variables of the last fit on the same samples: for a path of C. Not with "
            'solver="sgd".',
            _yes_or_no,
        ),
    ]
    callback: Annotated[
        "Callback | None",
        Option(
            None,
            "callable, optional",
            "Called with the record (a dict) of every pass, as kept in ``history_``; a true result ends the fit.",
            _function,
        ),
    ]


_C = Option(
    AUTO,
    'float or "auto"',
    'Cost of errors; the paper\'s λ is 1/(2C). "auto" is $cost divided by the mean of ‖x‖², rounded to three digits: '
    "``C_`` tells it.",
    or_auto(_positive, "a positive number"),
    Flag("Cost of errors.", float, ("--C", "-C"), shown="by the size of samples"),
)
OPTIONS: Mapping[str, Option] = {"C": _C} | {
    name: kind.__metadata__[0] for name, kind in Options.__annotations__.items()
}
"""Every option by its name, in the order in which estimators take them."""


# -- presets -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Preset:
    """What an estimator settles, and how its options differ from those of others.

    Attributes
    ----------
    auto_loss : str
        What ``loss="auto"`` is for one label a sample.
    settled : mapping
        Options that it does not take, and their values.
    defaults : mapping
        Other defaults.
    doc : mapping
        What the documentation says of an option in place of what it says elsewhere, perhaps with its type:
        (type, text).
    texts : mapping
        For the placeholders of the documentation: see ``_TEXTS``.
    learns_weights : bool
        Whether the solver has to learn α.
    independent : bool
        Whether every leaf has a hinge of its own, as in HR-SVM, which the solver has to take.
    """

    auto_loss: str
    settled: "OptionValues" = field(default_factory=dict)
    defaults: "OptionValues" = field(default_factory=dict)
    doc: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)
    learns_weights: bool = False
    independent: bool = False

    def declared(self) -> Mapping[str, Option]:
        """The options that the estimator takes."""
        return {name: option for name, option in OPTIONS.items() if name not in self.settled}

    def options(self) -> "OptionValues":
        """Defaults of the options that the estimator takes."""
        return {name: self.defaults.get(name, option.default) for name, option in self.declared().items()}

    def signature(self) -> Signature:
        """Of the constructor: the hierarchy and the first option (C) by place, all others by name."""
        own = [Parameter("self", Parameter.POSITIONAL_ONLY), Parameter("hierarchy", _BY_PLACE, default=None)]
        taken = [
            Parameter(name, Parameter.KEYWORD_ONLY if k else _BY_PLACE, default=default)
            for k, (name, default) in enumerate(self.options().items())
        ]
        return Signature([*own, *taken])

    def documented(self, name: str, text: str) -> str:
        """The documentation of the estimator of that name, after what it says of itself."""
        texts = {**_TEXTS, **self.texts, "auto_loss": self.auto_loss, "name": name}
        entries = {"hierarchy": ("Hierarchy or None", texts["hierarchy"])}
        entries |= {taken: self.doc.get(taken, (option.kind, option.doc)) for taken, option in self.declared().items()}
        parameters = []
        for option, (kind, doc) in entries.items():
            lines = fill(Template(doc).substitute(texts), 112, break_long_words=False, break_on_hyphens=False)
            parameters.append(f"{option} : {kind}\n{indent(lines, '    ')}")
        more = Template(self.attributes()).substitute(texts).strip()
        return "\n".join([cleandoc(text), "\nParameters\n----------", *parameters, f"\n{more}"])

    def attributes(self) -> str:
        """What the documentation says after the parameters, with placeholders."""
        return _ATTRIBUTES + _EXAMPLE


_BY_PLACE = Parameter.POSITIONAL_OR_KEYWORD
_TEXTS = {
    "hierarchy": "None is the flat hierarchy over the labels seen.",
    "node_weights": "α, aligned with ``hierarchy_.nodes``.",
    "auto_loss_meaning": "",
    "cost": f"{DEFAULTS.cost:g}",
    "intercept": f"{DEFAULTS.intercept:g}",
    "offset": f"{DEFAULTS.offset:g}",
    "tol": f"{DEFAULTS.tol:g}",
    "small": f"{DEFAULTS.small:,}",
    "history": "",
}
_ATTRIBUTES = """
Attributes
----------
classes_ : array of n_classes
    The labels seen, sorted; the columns of an indicator as they stand.
C_, intercept_scaling_, leaf_offset_ : float
    The options of these names, as they were used where "auto" leaves them to the data.
hierarchy_ : Hierarchy
    Restricted to these labels.
node_weights_ : array of n_nodes
    $node_weights
coef_, intercept_ : arrays of (n_nodes, n_features) and (n_nodes,)
    U: the score of a class is the sum of U_n·x + b_n over its node and everything above it.
objective_, dual_objective_, gap_ : float
    Primal value, a lower bound of the optimum, and (primal − dual) / primal.
certified_ : bool
    Whether these are proved; otherwise they are estimates made on the way.
n_iter_, history_ : int, list of dicts
    Passes, and the record of each: iteration, seconds, primal, dual, gap, training_error, planes (dual variables
    above 0), and certified, which says whether its values are exact or estimates made on the way$history.
interrupted_ : bool
    Whether the user ended the last fit early, with Ctrl-C; False for a model from a file.
temperature_ : float
    T of P(l|x) = softmax(score / T); only with ``probability=True``.
offsets_ : array of n_nodes
    Added to the scores of nodes when label sets are predicted; only with ``offsets``.
"""
_EXAMPLE = """
Examples
--------
>>> from nhsvm import Hierarchy, $name
>>> h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
>>> X = [[1.0, 0.0, 0.0], [0.9, 0.1, 0.0], [0.5, 1.0, 0.0], [0.4, 1.0, 0.1], [0.0, 0.0, 1.0], [0.1, 0.0, 1.0]]
>>> y = ["dog", "dog", "cat", "cat", "oak", "oak"]
>>> model = $name(h, C=10).fit(X, y)
>>> model.predict([[1.0, 0.1, 0.0], [0.0, 0.1, 0.9]])
array(['dog', 'oak'], dtype='<U3')
>>> model.gap_ <= 1e-3
True
"""
