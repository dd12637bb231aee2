"""Estimators are presets: every option is declared once, for all of them and for the command line."""

import inspect
import re

import pytest
from typer.main import get_command

import nhsvm
import nhsvm.errors
from nhsvm.cli import app
from nhsvm.options import OPTIONS

ESTIMATORS = ["FlatSVM", "HSVM", "NHSVM", "SSVM", "HRSVM"]


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_signature_is_that_of_the_declarations(name):
    kind = getattr(nhsvm, name)
    parameters = list(inspect.signature(kind).parameters)
    assert parameters[:2] == ["hierarchy", "C"]
    assert parameters == ["hierarchy", *(option for option in OPTIONS if option in parameters)]
    assert sorted(kind().get_params()) == sorted(parameters)
    for option in set(OPTIONS) - set(parameters):
        with pytest.raises(TypeError, match=rf"{name}.__init__\(\) got an unexpected keyword argument '{option}'"):
            kind(**{option: OPTIONS[option].default})


@pytest.mark.parametrize("name", ESTIMATORS)
def test_every_option_is_documented(name):
    kind = getattr(nhsvm, name)
    lines = kind.__doc__.splitlines()
    for option in inspect.signature(kind).parameters:
        assert sum(line.startswith(f"{option} : ") for line in lines) == 1
    assert not re.findall(
        r"\{(?:auto_loss|auto_loss_meaning|node_weights|history|name)\}", kind.__doc__
    )  # no placeholder is left
    assert max(map(len, lines)) <= 120


def test_the_command_line_has_every_option_with_a_flag():
    taken = {parameter.name for parameter in get_command(app).commands["train"].params}
    for name, option in OPTIONS.items():
        if option.flag is not None:
            assert (option.flag.name or name) in taken


def test_a_problem_is_solved_with_the_cost_of_the_estimator():
    X, y = [[0.0], [0.4], [0.6], [1.0]], ["a", "b", "a", "b"]
    model = nhsvm.NHSVM(C=1.0)
    problem = model.make_problem(X, y)
    assert model.set_params(C=10.0).fit_problem(problem).objective_ == nhsvm.NHSVM(C=10.0).fit(X, y).objective_
    assert model.objective_ != nhsvm.NHSVM(C=1.0).fit(X, y).objective_


def test_an_option_is_one_declaration(monkeypatch):
    """One more option in the dictionary of declarations is one more everywhere."""
    from nhsvm import options

    def check(name, value):
        if value != "blue":
            raise nhsvm.errors.OptionError(f"{name} must be blue, not {value!r}")

    colour = options.Option("blue", "str", "Of the model.", check)
    monkeypatch.setattr(options, "OPTIONS", {**OPTIONS, "colour": colour})
    monkeypatch.setattr("nhsvm.estimators.options.OPTIONS", options.OPTIONS)

    class Painted(nhsvm.NHSVM):
        """Painted."""

        _preset = options.Preset("normalized")

    assert Painted(colour="red").get_params()["colour"] == "red"
    assert "colour : str\n    Of the model." in Painted.__doc__
    with pytest.raises(nhsvm.errors.OptionError, match="colour must be blue, not 'red'"):
        Painted(colour="red").fit([[0.0], [1.0]], ["a", "b"])
    assert Painted(C=10).fit([[0.0], [1.0]], ["a", "b"]).predict([[1.0]]).tolist() == ["b"]
