"""What was learned, and what it answers: :class:`Model`, which needs neither scikit-learn nor the solvers.

A model file holds one, as a safetensors file with JSON in its header, which is memory-mapped on load; never a pickle.
:func:`load` gives it inside its estimator, as ``model_``, and :func:`load_model` by itself.

>>> import os, tempfile
>>> import numpy as np
>>> from nhsvm.model import read_model, write_model
>>> with tempfile.TemporaryDirectory() as folder:
...     path = os.path.join(folder, "model.nhsvm")
...     write_model(path, {"note": "small"}, {"coef": np.eye(2)})
...     read_model(path)
({'note': 'small'}, {'coef': array([[1., 0.],
       [0., 1.]])})
"""

from nhsvm.model.file import read_model, write_model
from nhsvm.model.model import Model, Training
from nhsvm.model.saving import ESTIMATORS, load, load_model, load_with_note, save
from nhsvm.model.sets import Curves, SetForm
from nhsvm.model.values import hierarchy_from_parts, hierarchy_to_parts

__all__ = [
    "ESTIMATORS",
    "Curves",
    "Model",
    "SetForm",
    "Training",
    "hierarchy_from_parts",
    "hierarchy_to_parts",
    "load",
    "load_model",
    "load_with_note",
    "read_model",
    "save",
    "write_model",
]
