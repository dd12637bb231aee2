"""Label sets on DAGs: a search with bounds, which :class:`DagMultilabel` begins, and what it is made of.

A graph is folded once (``plan``). Rewards of samples are folded onto the core that is left (``core``), decided as far
as rewards alone do (``reduce``), and searched in rounds of bounds (``bound``) and label sets (``primal``), then by
branch and bound (``search``). Where few leaves are candidates (``candidates``), only what is above these is searched
(``candidate_search``).
"""

from nhsvm.oracles.dag.oracle import DagMultilabel

__all__ = ["DagMultilabel"]
