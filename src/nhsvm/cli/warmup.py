"""``nhsvm warmup``: compile the loops of common paths ahead."""

from __future__ import annotations

import os
from pathlib import Path
from time import perf_counter
from typing import Annotated

import typer

from nhsvm.cli.options import JsonFlag, QuietFlag
from nhsvm.cli.output import print_json
from nhsvm.cli.terminal import Busy
from nhsvm.sizes import readable_bytes


def warmup(
    *,
    jobs: Annotated[
        int | None,
        typer.Option("--jobs", "-j", min=1, show_default="one a core", help="Processes that compile side by side."),
    ] = None,
    quiet: QuietFlag = False,
    json: JsonFlag = False,
) -> None:
    """Compile ahead what the first training and the first predictions after installation would wait for.

    What common paths need is kept on disk: one label or several a sample, on trees and DAGs, texts and numbers, HRSVM.
    A second run finds it all. Other options and other processors compile what they need when they need it.

    Example: nhsvm warmup --jobs 2
    """
    from nhsvm.estimators.options import cores
    from nhsvm.estimators.warmup import ROUTES, follow_all

    start, kernels = perf_counter(), 0
    files: dict[Path, int] = {}
    with Busy("compiling", quiet=quiet) as busy:
        busy("compiling", 0.0)
        for done, (route, compiled) in enumerate(follow_all(ROUTES, jobs or cores()), 1):
            kernels, files = kernels + compiled.kernels, files | compiled.files
            busy(f"{kernels} loops, {route.name}", done / len(ROUTES))
    seconds, size = perf_counter() - start, sum(files.values())
    folders = sorted({str(path.parent) for path in files})
    if json:
        print_json({"compiled": kernels, "kept": len(files), "bytes": size, "folders": folders, "seconds": seconds})
        return
    made = f"{kernels} loops, {seconds:.1f} s" if kernels else f"nothing: all {len(files)} loops were there"
    typer.echo(f"compiled   {made}")
    if files:
        typer.echo(f"kept       {readable_bytes(size)} below {os.path.commonpath(folders)}")
