"""Model files: one file, safetensors with JSON in its header, memory-mapped on load; never pickle.

>>> import os, tempfile
>>> import numpy as np
>>> from nhsvm.persistence import read_model, write_model
>>> with tempfile.TemporaryDirectory() as folder:
...     path = os.path.join(folder, "model.nhsvm")
...     write_model(path, {"note": "small"}, {"coef": np.eye(2)})
...     read_model(path)
({'note': 'small'}, {'coef': array([[1., 0.],
       [0., 1.]])})
"""

from nhsvm.persistence.files import read_model, write_model
from nhsvm.persistence.hierarchies import hierarchy_from_parts, hierarchy_to_parts
from nhsvm.persistence.models import ESTIMATORS, load, load_with_note, save

__all__ = [
    "ESTIMATORS",
    "hierarchy_from_parts",
    "hierarchy_to_parts",
    "load",
    "load_with_note",
    "read_model",
    "save",
    "write_model",
]
