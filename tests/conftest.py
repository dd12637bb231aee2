"""What holds for all tests.

Hypothesis profiles: no deadlines (machines are shared), and the same examples in every run unless others are wanted:
``--hypothesis-profile=seeds --hypothesis-seed=N`` draws other ones; without the profile a seed changes nothing.

Threads are capped by cores, so a machine of one or two is taken for one of four, else tests with three threads would
run with fewer.

Messages do not depend on what has been compiled before.
"""

import os

from hypothesis import settings

from nhsvm.compilation import QUIET
from nhsvm.estimators import options

settings.register_profile("project", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("seeds", settings.get_profile("project"), derandomize=False, database=None)
settings.register_profile("few", settings.get_profile("project"), max_examples=5)
settings.load_profile("project")

_cores = options.cores
options.cores = lambda: max(4, _cores())

os.environ[QUIET] = "1"
