"""Pipelines of scikit-learn, taken apart and put together again."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:  # the command line shows its help without NumPy
    from nhsvm.typing import Estimator

Steps: TypeAlias = "list[tuple[str, Estimator]]"
"""Transformers by name, in their order."""


class PipelineParts(NamedTuple):
    """A model as what comes before its last step, and that step; a model that is no pipeline is its own last step."""

    before: Estimator | None
    """A pipeline, or None if there is nothing."""
    last: Estimator
    name: str | None
    """Of the last step; None if the model is no pipeline."""

    @property
    def steps(self) -> Steps:
        """Those before the last one, by name."""
        return [] if self.before is None else list(self.before.steps)

    def parameter(self, name: str) -> str:
        """The name of a parameter of the last step, for ``set_params`` of the whole."""
        return name if self.name is None else f"{self.name}__{name}"

    def ending_in(self, last: Estimator) -> Estimator:
        """The same steps, and another last one."""
        if self.name is None:
            return last
        from sklearn.pipeline import Pipeline

        return Pipeline([*self.steps, (self.name, last)])


def pipeline_parts(model: Estimator) -> PipelineParts:
    """The parts of a model."""
    pipelines = sys.modules.get("sklearn.pipeline")  # where there is a pipeline, its module is loaded
    if pipelines is None or not isinstance(model, pipelines.Pipeline) or not model.steps:
        return PipelineParts(None, model, None)
    name, last = model.steps[-1]
    return PipelineParts(model[:-1] if len(model.steps) > 1 else None, last, name)
