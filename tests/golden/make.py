"""``python tests/golden/make.py``: make the golden file, and model files of the formats of now, anew.

Only after a change that is meant to change results; the commit says which, and why.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from golden.cases import GOLDEN, SMALL, cases, make_data, make_files, record, signature


def main() -> None:
    data = {dag: make_data(SMALL, dag) for dag in (False, True)}
    fits = {name: record(case, data[case.dag]) for name, case in cases().items()}
    GOLDEN.write_text(json.dumps({"made_on": signature(), "fits": fits}, indent=1) + "\n")
    if "--files" in sys.argv:
        make_files()


if __name__ == "__main__":
    main()
