"""What a process loads and compiles."""

import json
import os
import subprocess
import sys

LIGHT = """
import json, sys
import nhsvm
from nhsvm import HSVM, NHSVM, FlatSVM
NHSVM(nhsvm.Hierarchy.from_edges([("animal", "dog"), ("animal", "cat")]))
print(json.dumps("numba" in sys.modules))
"""

FIT = """
import json, sys
import numpy as np
import scipy.sparse as sp
from nhsvm import NHSVM, Hierarchy

h = Hierarchy.from_edges([("animal", "dog"), ("animal", "cat"), ("plant", "oak")])
X = sp.csr_array(np.kron(np.eye(3), np.ones((40, 2))) + np.random.default_rng(0).random((120, 6)))
y = np.repeat(["dog", "cat", "oak"], 40)
model = NHSVM(h).fit(X, y)
assert (model.predict(X) == y).all()

from numba.core.dispatcher import Dispatcher
found = {}
for name, module in sorted(sys.modules.items()):
    if name.startswith("nhsvm"):
        for key, value in vars(module).items():
            if isinstance(value, Dispatcher):
                found[f"{name}.{key}"] = [sum(value.stats.cache_hits.values()), sum(value.stats.cache_misses.values())]
print(json.dumps([found, model.coef_.tobytes().hex(), model.objective_]))
"""


def run(code, **env):
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **env}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_importing_an_estimator_leaves_numba_out():
    assert run(LIGHT) is False


def test_a_second_process_compiles_nothing(tmp_path):
    (first, *result), (second, *again) = (run(FIT, NUMBA_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert sum(misses for _, misses in first.values()) > 5
    assert sum(hits for hits, _ in second.values()) > 5
    assert {name: misses for name, (_, misses) in second.items() if misses} == {}
    assert again == result  # to the last bit
