"""Every peer beside us: the same data, the same split, the same number of settings tried, one process each.

    python benchmarks/peers/setup.py                                    # environments, once
    python benchmarks/peers/run.py --data DIR --scratch DIR             # tune, then fit and judge; can be resumed
    python benchmarks/peers/run.py --data DIR --scratch DIR --phase final --again     # times only, settings as stored
    python benchmarks/peers/run.py page                                 # docs/results/peers.md from the records

A cell is a model on a set. Its settings are tried in one process: fitted to four fifths of the training samples and
judged by accuracy on the rest, in the order of the grid, until all are tried or ``--budget`` seconds of the processor
are spent. The first of the best is then fitted to all training samples in a fresh process, which predicts the test
samples; accuracy and F1 are computed here, alike for all. Records go to ``--records`` after every cell; cells found
there are not run again unless ``--again`` is given.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from page import write_page
from prepare import prepare
from records import Records, machine
from registry import BIG, MODELS, OURS, SETS, Entry
from sklearn.metrics import f1_score

from nhsvm import Hierarchy
from nhsvm.metrics import hierarchical_f1

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEFAULT_RECORDS = ROOT / "docs" / "results" / "peers.json"


class CellFailedError(Exception):
    """A worker did not finish; the message is what the page shows."""


def python_of(entry: Entry, envs: Path) -> Path:
    """The interpreter of a peer's environment."""
    if entry.environment == OURS:
        return Path(sys.executable)
    python = envs / entry.environment / "bin" / "python"
    if not python.exists():
        failed = envs / f"{entry.environment}.failed"
        reason = failed.read_text() if failed.exists() else "no environment; run benchmarks/peers/setup.py"
        raise CellFailedError(f"not installed: {reason}")
    return python


def start(entry: Entry, task: Path, scratch: Path, options: argparse.Namespace, limit: float, *more: str) -> bool:
    """Run a worker to its end; False if it was ended for taking more than ``limit`` seconds of the processor."""
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    threads = str(options.threads)
    names = ("PEER_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
    command = [python_of(entry, options.envs), HERE / entry.worker, "--task", task, "--scratch", scratch]
    command += ["--model", entry.model, "--out", scratch / "out.json", *more]
    command += ["--limit", round(limit)]
    environment = os.environ | dict.fromkeys(names, threads)
    done = subprocess.run(list(map(str, command)), env=environment, capture_output=True, text=True, errors="replace")
    if done.returncode == -signal.SIGXCPU:
        return False
    if done.returncode:
        raise CellFailedError((done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1])
    return True


def tune(entry: Entry, task: Path, scratch: Path, options: argparse.Namespace) -> dict[str, Any]:
    ended = start(entry, task, scratch, options, 4 * options.budget, "--budget", str(options.budget))
    out = scratch / "out.json"
    tried = [json.loads(line) for line in out.read_text().splitlines()] if out.exists() else []
    if not tried:
        raise CellFailedError(f"no setting was done within {4 * options.budget:g} processor seconds")
    best = max(tried, key=lambda found: found["valid_accuracy"])
    return {"tried": tried, "chosen": best["setting"], "budget": options.budget, "ended_early": not ended}


def final(entry: Entry, task: Path, scratch: Path, options: argparse.Namespace, setting: Any) -> dict[str, Any]:
    if not start(entry, task, scratch, options, options.limit, "--setting", json.dumps(setting)):
        raise CellFailedError(f"the final fit was not done within {options.limit:g} processor seconds")
    record = json.loads((scratch / "out.json").read_text())
    return record | judged(task, np.load(scratch / "predicted.npy"))


def judged(task: Path, numbers: Any) -> dict[str, float]:
    """Scores of predicted label numbers."""
    facts, truth = (json.loads((task / name).read_text()) for name in ("facts.json", "truth.json"))
    hierarchy = Hierarchy.from_edges([tuple(edge) for edge in facts["edges"]], nodes=facts["nodes"])
    y_true, y_pred = np.array(truth), np.array(facts["classes"])[numbers]
    return {
        "accuracy": float((y_true == y_pred).mean()),
        "macro_f1": float(f1_score(y_true, y_pred, average="macro", zero_division=0)),
        "hierarchical_f1": hierarchical_f1(y_true, y_pred, hierarchy=hierarchy),
    }


def run_cell(name: str, set_name: str, options: argparse.Namespace, records: Records) -> str:
    """Do what is missing of a cell; what to print."""
    entry, task = MODELS[name], options.scratch / "tasks" / set_name
    scratch = options.scratch / "work" / f"{entry.environment}-{entry.model.replace('/', '-')}-{set_name}"
    cell = records.cell(set_name, name)
    again = options.again
    try:
        if options.phase in ("tune", "all") and (again or "tuning" not in cell):
            cell = {"tuning": tune(entry, task, scratch, options)}
            records.store(set_name, name, cell)
        if options.phase in ("final", "all") and (again or "final" not in cell):
            if "tuning" not in cell:
                return "no setting chosen yet"
            cell = {**cell, "final": final(entry, task, scratch, options, cell["tuning"]["chosen"])}
            cell.pop("failed", None)
            records.store(set_name, name, cell)
    except CellFailedError as reason:
        records.store(set_name, name, cell | {"failed": str(reason)})
        return f"failed: {reason}"
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    found = cell.get("final", {})
    return ", ".join(f"{key} {found[key]:.3f}" for key in ("accuracy", "fit_wall", "fit_cpu") if key in found)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", nargs="?", choices=("run", "page"), default="run")
    given = os.environ.get("NHSVM_DATA")
    parser.add_argument("--data", type=Path, default=Path(given) if given else None, help="folder of real data")
    parser.add_argument("--scratch", type=Path, help="folder for prepared data and what workers write")
    parser.add_argument("--envs", type=Path, default=HERE / "envs", help="folder of environments")
    parser.add_argument("--sets", nargs="+", choices=[*SETS, BIG], default=list(SETS))
    parser.add_argument("--big", action="store_true", help="the large generated set only")
    parser.add_argument("--peers", nargs="+", choices=list(MODELS), default=list(MODELS), metavar="MODEL")
    parser.add_argument("--phase", choices=("tune", "final", "all"), default="all")
    parser.add_argument("--again", action="store_true", help="also what is in the records")
    parser.add_argument("--budget", type=float, default=300.0, help="processor seconds to try settings of a cell")
    parser.add_argument("--limit", type=float, default=3600.0, help="processor seconds of a final fit")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--records", type=Path, default=DEFAULT_RECORDS)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "results" / "peers.md", help="for page")
    options = parser.parse_args()
    if options.command == "run" and options.scratch is None:
        parser.error("give --scratch DIR: a folder for prepared data (hundreds of megabytes)")
    if options.big:
        options.sets = [BIG]
    return options


def main() -> None:
    options = parsed()
    records = Records(options.records)
    if options.command == "page":
        write_page(records, options.out)
        return
    for set_name in options.sets:
        task = options.scratch / "tasks" / set_name
        description = prepare(set_name, options.data, task)
        n_test = len(json.loads((task / "truth.json").read_text()))
        records.describe(set_name, description=description, n_test=n_test, machine=machine(options.threads))
        print(description, flush=True)
        for name in options.peers:
            print(f"  {name}: {run_cell(name, set_name, options, records)}", flush=True)


if __name__ == "__main__":
    main()
