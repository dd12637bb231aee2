"""``--quick``, for every benchmark that a page of the guide names: the tests run those commands with it."""

from __future__ import annotations

import argparse
from typing import Any


def parsed(parser: argparse.ArgumentParser, **small: Any) -> argparse.Namespace:
    """Options, and ``--quick`` among them: it puts ``small`` in place of what else is given or is the default."""
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it works")
    options = parser.parse_args()
    if options.quick:
        vars(options).update(small)
    return options
