"""Pegasos as in its paper, on W_n = U_n/√α_n, with every W and every dual variable written out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt


def pegasos(
    X: npt.NDArray[np.float64],
    leaves: Sequence[int],
    paths: Sequence[Sequence[int]],
    alpha: npt.NDArray[np.float64],
    loss: npt.NDArray[np.float64],
    normalized: bool,
    steps: Sequence[Sequence[int]],
    lam: float,
    eta: Callable[[int], float],
    radius: float,
) -> tuple[list[npt.NDArray[np.float64]], npt.NDArray[np.float64], float]:
    """U after every step (a set of samples each), a_il of the last, and how close two labels came to a tie.

    X includes the constant feature.
    """
    Phi = np.array([[np.sqrt(a) if n in path else 0.0 for n, a in enumerate(alpha)] for path in paths])
    W, a, found = np.zeros((len(alpha), X.shape[1])), np.zeros((len(X), len(paths))), []
    closest = np.inf
    for t, samples in enumerate(steps, start=1):
        gradient, planes = np.zeros_like(W), []
        for i in samples:
            y = leaves[i]
            brackets = np.zeros(len(paths))
            kappa = np.array([1 / d if normalized and d > 0 else 1.0 for d in loss[y]])
            for k in range(len(paths)):
                if k != y and not (normalized and loss[y, k] == 0):
                    brackets[k] = (1.0 if normalized else loss[y, k]) + kappa[k] * ((Phi[k] - Phi[y]) @ (W @ X[i]))
            worst = int(np.argmax(brackets))
            if W.any():  # before that, ties are exact, and the first label wins
                closest = min(closest, float(brackets[worst] - np.max(np.delete(brackets, worst), initial=0.0)))
            if brackets[worst] > 0:
                planes.append((i, worst))
                gradient += kappa[worst] * np.outer(Phi[worst] - Phi[y], X[i]) / len(samples)
        step = min(eta(t), 1 / lam)
        W = (1 - step * lam) * W - step * gradient
        a *= 1 - step * lam
        for plane in planes:
            a[plane] += step / len(samples)
        size = np.sum(W**2)
        if size > radius:
            W, a = W * np.sqrt(radius / size), a * np.sqrt(radius / size)
        found.append(np.sqrt(alpha)[:, None] * W)
    return found, a, closest
