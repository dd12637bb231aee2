"""Hypothesis profiles: no deadlines (machines are shared), and the same examples in every run unless others are wanted.

``--hypothesis-profile=seeds --hypothesis-seed=N`` draws other examples; without the profile a seed changes nothing.
"""

from hypothesis import settings

settings.register_profile("project", deadline=None, derandomize=True, max_examples=60)
settings.register_profile("seeds", settings.get_profile("project"), derandomize=False, database=None)
settings.load_profile("project")
