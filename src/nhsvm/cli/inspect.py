"""``nhsvm inspect``: a hierarchy file or a model file in numbers and as a drawing, blocks in numbers."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from nhsvm.cli._options import option
from nhsvm.cli._output import JsonFlag, broken, print_json
from nhsvm.errors import OptionError


def inspect(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="Model file, blocks, or hierarchy: LSHTC, TSV, CSV, JSON.")
    ],
    weights: Annotated[str | None, typer.Option(help="Scheme of weights of a hierarchy; maxmin if not said.")] = None,
    features: Annotated[int, typer.Option(min=0, help="Strongest features to show for every node of a model.")] = 5,
    node: Annotated[
        list[str] | None, typer.Option(metavar="NODE", help="Show this node only; may be repeated.")
    ] = None,
    max_nodes: Annotated[int, typer.Option(min=1, help="Nodes to show at the most.")] = 40,
    max_bytes: Annotated[
        str | None,
        option(metavar="SIZE", help="Memory for a model beside its file.", default="in proportion to the file"),
    ] = None,
    json: JsonFlag = False,
) -> None:
    """Describe a hierarchy file, blocks, or a model file: what it has learned, how well, and how large it is.

    Examples: nhsvm inspect cat_hier.txt --weights power; nhsvm inspect papers.nhsvm --node physics --features 10
    """
    if is_model(file):
        from nhsvm.cli import _inspect_model as of_model

        if weights is not None:
            raise OptionError("--weights is for hierarchies; a model has its own")
        result, show = of_model.describe(file, features, node or [], max_nodes, max_bytes), of_model.show
    elif file.is_dir():
        from nhsvm.cli import _inspect_blocks as of_blocks

        if weights is not None or node:
            wrong, what = ("node", "models") if node else ("weights", "hierarchies")
            raise OptionError(f"--{wrong} is for {what}; {file} is a folder, so it can only be blocks")
        result, show = of_blocks.describe(file), of_blocks.show
    else:
        from nhsvm.cli import _inspect_hierarchy as of_hierarchy

        if node:
            raise OptionError(f"--node is for models, and {file} is none")
        result, show = of_hierarchy.describe(file, weights or "maxmin", max_nodes), of_hierarchy.show
    if json:
        print_json({key: value for key, value in result.items() if key != "drawing"})
    else:
        typer.echo(broken(show(result)))


def is_model(file: Path) -> bool:
    """Whether a file begins like a model, which no text does: its length in eight bytes, then JSON."""
    if file.suffix == ".nhsvm":
        return True
    if not file.is_file():  # said by whoever opens it
        return False
    with file.open("rb") as stream:
        start = stream.read(9)
    return len(start) == 9 and start[7] == 0 and start[8:] == b"{"


def lines(rows: dict[str, Any]) -> str:
    """Names and values, aligned; what is None is left out."""
    shown = {name: value for name, value in rows.items() if value is not None}
    wide = max(map(len, shown))
    return "\n".join(f"{name:<{wide}}  {value}" for name, value in shown.items())
