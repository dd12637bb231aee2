"""The models of the comparison, and what each of them is."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """A row of every table: which worker, in which environment, and what the worker calls it."""

    environment: str
    model: str
    about: str
    uses: str  # what it knows of the hierarchy

    @property
    def worker(self) -> str:
        return f"worker_{self.environment}.py"


SETS = ("newsgroups20", "clinc150", "lshtc_dryrun", "mitre_attack", "imclef07a", "docstrings", "generated")
BIG = "generated_big"
OURS = "nhsvm"
C = "C ∈ {1, 0.3, 3, 0.1, 10, 0.03}"

MODELS: dict[str, Entry] = {
    "NHSVM, plain": Entry(OURS, "NHSVM/plain", "nothing set and nothing tried, C neither", "given, DAG too"),
    "NHSVM": Entry(
        OURS, "NHSVM/0.001", f"max-min weights, normalised loss, a proved gap of 0.1 %; {C}", "given, DAG too"
    ),
    "NHSVM, tol 0.1": Entry(OURS, "NHSVM/0.1", f"the same to a proved gap of 10 %, not 0.1 %; {C}", "given, DAG too"),
    "SSVM": Entry(OURS, "SSVM/0.001", f"learned weights, zero-one loss; {C}", "given, DAG too"),
    "HSVM": Entry(OURS, "HSVM/0.001", f"uniform weights, Hamming loss; {C}", "given, DAG too"),
    "FlatSVM": Entry(OURS, "FlatSVM/0.001", f"Crammer–Singer; {C}", "nothing"),
    "LinearSVC": Entry("sklearn", "ovr", f"one-vs-rest, squared hinge; {C}", "nothing"),
    "LinearSVC, CS": Entry("sklearn", "crammer_singer", f"Crammer–Singer; {C}", "nothing"),
    "SGDClassifier": Entry("sklearn", "sgd", "hinge; alpha ∈ {1e-4, 3e-5, 3e-4, 1e-5, 1e-3, 3e-6}", "nothing"),
    "hiclass": Entry("hiclass", "parent", f"LinearSVC per parent node; {C}", "given tree"),
    "PECOS, given tree": Entry("pecos", "given", f"XR-Linear; Cp = Cn = {C}", "given tree"),
    "PECOS, own tree": Entry("pecos", "own", f"XR-Linear; Cp = Cn = {C}", "own tree"),
    "omikuji": Entry("omikuji", "parabel", f"three trees; {C}", "own trees"),
    "napkinXC HSM": Entry("napkinxc", "given", "C ∈ {10, 3, 30, 1, 100, 0.3}", "given tree"),
    "napkinXC PLT": Entry("napkinxc", "own", "C ∈ {10, 3, 30, 1, 100, 0.3}", "own tree"),
    "LibMultiLabel": Entry("libmultilabel", "tree", f"tree of at most 100 children; {C}", "own tree"),
    "fastText": Entry(
        "fasttext",
        "softmax",
        "(epoch, lr, wordNgrams) ∈ {(10, .5, 1), (30, .5, 1), (30, 1, 1), (30, .5, 2), (100, .5, 1), (100, 1, 1)}",
        "nothing",
    ),
}
