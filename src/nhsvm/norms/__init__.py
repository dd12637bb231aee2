"""Norms of weight matrices (Section 6), each with the factorisation that attains it and a proof that none is better."""

from nhsvm.norms._certificate import Factorisation, NodeFactorisation, NodePenalty
from nhsvm.norms.frobenius import frobenius_norm
from nhsvm.norms.max import max_norm
from nhsvm.norms.node import node_penalty
from nhsvm.norms.shared import shared_norm
from nhsvm.norms.structured import structured_shared_norm
from nhsvm.norms.trace import trace_norm

__all__ = [
    "Factorisation",
    "NodeFactorisation",
    "NodePenalty",
    "frobenius_norm",
    "max_norm",
    "node_penalty",
    "shared_norm",
    "structured_shared_norm",
    "trace_norm",
]
