"""The command line as a user meets it."""

import subprocess
import sys

from typer.testing import CliRunner

from nhsvm import __version__
from nhsvm.cli import app


def run(*args):
    return CliRunner().invoke(app, list(args))


def test_version():
    assert run("--version").output == f"nhsvm {__version__}\n"


def test_the_installed_command_runs():
    done = subprocess.run([sys.executable, "-m", "nhsvm", "--help"], capture_output=True, text=True, check=True)
    assert "inspect" in done.stdout
