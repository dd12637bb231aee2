"""``python tests/fuzz/run.py N``: so many cases of models, readers and blocks; failures, with their numbers."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from fuzz import models
from fuzz.harness import run_all

SHARES = {"models": 0.5, "readers": 0.3, "blocks": 0.2}


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("n", type=int)
    parser.add_argument(
        "--of", choices=SHARES, help="half of them models, the other half readers and blocks by default"
    )
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", metavar="KIND:NUMBER", help="one case only, such as models:345, with its traceback")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--traceback", action="store_true")
    given = parser.parse_args()
    kinds = {given.of: 1.0} if given.of else SHARES
    if given.case:
        kind, _, number = given.case.partition(":")
        kinds, given.n, given.first, given.traceback = {kind: 1.0}, 1, int(number), True
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        if "models" in kinds:
            models.make_models(Path(folder))
            os.environ["NHSVM_FUZZ_MODELS"] = folder
        for kind, share in kinds.items():
            start = time.monotonic()
            found = run_all(f"fuzz.{kind}", range(given.first, given.first + round(given.n * share)), given.processes)
            show(kind, found.failures, given.traceback)
            print(f"{kind}: {found}; {time.monotonic() - start:.0f} s", flush=True)
            failed += len(found.failures)
    return bool(failed)


def show(kind: str, failures: dict[int, str], traceback: bool) -> None:
    """Failures by where they happened."""
    kinds: dict[str, list[int]] = {}
    for number, text in sorted(failures.items()):
        places = [line.strip() for line in text.splitlines() if "File " in line and "src/nhsvm" in line]
        kinds.setdefault(" | ".join([*places[-1:], *text.splitlines()[-1:]])[:300], []).append(number)
    for what, numbers in sorted(kinds.items(), key=lambda item: -len(item[1])):
        print(f"--- {kind}: {len(numbers)} cases, such as {numbers[:8]}: {what}")
        if traceback:
            print(failures[numbers[0]], "\n")


if __name__ == "__main__":
    sys.exit(main())
