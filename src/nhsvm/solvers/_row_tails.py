"""What the ends of full rows make of a few labels.

The weights of a frequent word are many, and most are of single labels: a full row of a tree with 2,000 inner nodes and
5,000 leaves has two sevenths of its columns without the leaves. Of a document such words have little, in text with
idf weights, and of what tells its labels apart they have less. So which labels to look at is told by the inner nodes of
full rows and all nodes of short ones; here these few labels get what was left out, and the steps that follow are exact.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel


@kernel
def tails_kernel(
    rows, indptr, indices, data, start, size, full, head, leaves, ptr, idx, leaf, n_planes, scale, value, slack
):
    """Add to ``value[t, k]`` what columns from ``head`` on of full rows make of ``leaf[t, k]`` beside the true leaf.

    Of a path only the last column can be one of these. ``slack`` is then the largest value, or 0.
    """
    width = leaf.shape[1] + 1
    column, beyond, dots = np.empty(width, np.int32), np.empty(width, np.bool_), np.empty(width)
    for t in range(rows.shape[0]):
        m = n_planes[t]
        for k in range(m + 1):  # the true leaf comes last
            path = leaves[t] if k == m else leaf[t, k]
            column[k] = idx[ptr[path + 1] - 1] if ptr[path] < ptr[path + 1] else 0
            beyond[k] = column[k] >= head
            dots[k] = 0.0
        for j in range(indptr[rows[t]], indptr[rows[t] + 1]):
            f = indices[j]
            if size[f] < 0:
                row, v = full[start[f]], np.float64(data[j])
                for k in range(m + 1):
                    dots[k] += v * row[column[k]]
        own = dots[m] if beyond[m] else 0.0
        top = 0.0
        for k in range(m):
            value[t, k] += scale[t, k] * ((dots[k] if beyond[k] else 0.0) - own)
            top = max(top, value[t, k])
        slack[t] = top
