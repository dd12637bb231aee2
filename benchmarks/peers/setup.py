"""One virtual environment for each peer, with the versions pinned in ``requirements/``.

    python benchmarks/peers/setup.py                     # all, into benchmarks/peers/envs
    python benchmarks/peers/setup.py --only pecos hiclass --envs DIR

A file in ``requirements/`` lists everything that its peer needs, dependencies too, so pip is told not to look for more:
libpecos and libmultilabel ask for torch, which their linear models do not use. fastText is the prebuilt
``fasttext-wheel``: fasttext 0.9.3, which pip builds from source, ended every training with "Encountered NaN" where we
built it (g++ 12), and we do not know why. An environment that cannot be made is removed, and the last lines of pip's
answer are kept in ``NAME.failed`` beside it; ``run.py`` shows them in the place of results.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
REQUIREMENTS = HERE / "requirements"
NAMES = sorted(path.stem for path in REQUIREMENTS.glob("*.txt"))


def make(name: str, envs: Path) -> str | None:
    """Make one environment; the reason if it cannot be made."""
    folder, failed = envs / name, envs / f"{name}.failed"
    failed.unlink(missing_ok=True)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    command = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--no-deps"]
    done = subprocess.run(
        [*command, "--requirement", str(REQUIREMENTS / f"{name}.txt")], capture_output=True, text=True
    )
    if done.returncode == 0:
        return None
    shutil.rmtree(folder)
    reason = "\n".join(done.stderr.strip().splitlines()[-5:])
    failed.write_text(reason)
    return reason


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", type=Path, default=HERE / "envs", help="folder for the environments")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES, help="which ones")
    parser.add_argument("--again", action="store_true", help="also those that are there")
    options = parser.parse_args()
    options.envs.mkdir(parents=True, exist_ok=True)
    failures = 0
    for name in options.only:
        if (options.envs / name / "bin" / "python").exists() and not options.again:
            print(f"{name}: there already")
            continue
        reason = make(name, options.envs)
        failures += reason is not None
        print(f"{name}: {'made' if reason is None else 'failed: ' + reason}", flush=True)
    sys.exit(failures > 0)


if __name__ == "__main__":
    main()
