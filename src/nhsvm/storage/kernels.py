"""Scores of samples under stored weights: the kernels that training and models share.

They are apart from the classes that call them, so that loading a model does not load numba.
"""

from __future__ import annotations

import numpy as np

from nhsvm._jit import kernel, prefetch, widened


@kernel
def table_kernel(rows, samples, values, bias, out):
    """``out[t]`` = the rows of ``values`` of the features of sample ``rows[t]``, times their values, summed.

    The last row is that of the constant feature.
    """
    indptr, indices, data = samples
    n_columns = values.shape[1]
    constant = values[values.shape[0] - 1]
    for t in range(rows.shape[0]):
        s = out[t]
        for m in range(n_columns):
            s[m] = bias * widened(constant[m])
        j = indptr[rows[t]]
        end = indptr[rows[t] + 1]
        while j + 3 < end:  # four rows at a time: a quarter of the loads and stores of s
            v0, v1 = out.dtype.type(data[j]), out.dtype.type(data[j + 1])  # products in the precision of the sums
            v2, v3 = out.dtype.type(data[j + 2]), out.dtype.type(data[j + 3])
            r0, r1, r2, r3 = values[indices[j]], values[indices[j + 1]], values[indices[j + 2]], values[indices[j + 3]]
            for m in range(n_columns):
                s[m] += v0 * widened(r0[m]) + v1 * widened(r1[m]) + v2 * widened(r2[m]) + v3 * widened(r3[m])
            j += 4
        while j < end:
            v0 = out.dtype.type(data[j])
            r0 = values[indices[j]]
            for m in range(n_columns):
                s[m] += v0 * widened(r0[m])
            j += 1


@kernel
def rows_kernel(rows, samples, weights, bias, head, out):
    """``out[t]`` = the rows of the features of sample ``rows[t]``, times their values, summed; and the constant.

    Of full rows the first ``head`` columns are read.
    """
    indptr, indices, data = samples
    start, size, column, value, full, constant = weights
    n_columns = out.shape[1]
    which, factor = np.empty(4, np.int64), np.empty(4, out.dtype)
    for t in range(rows.shape[0]):
        s = out[t]
        for m in range(n_columns):
            s[m] = bias * widened(constant[m])
        first, last = indptr[rows[t]], indptr[rows[t] + 1]
        n = 0
        for j in range(first, last):  # full rows, four at a time: a quarter of the loads and stores of s
            f = indices[j]
            if size[f] < 0:
                which[n] = start[f]
                factor[n] = data[j]
                n += 1
                if n == 4:
                    r0, r1, r2, r3 = full[which[0]], full[which[1]], full[which[2]], full[which[3]]
                    v0, v1, v2, v3 = factor[0], factor[1], factor[2], factor[3]
                    for m in range(head):
                        s[m] += v0 * widened(r0[m]) + v1 * widened(r1[m]) + v2 * widened(r2[m]) + v3 * widened(r3[m])
                    n = 0
        for k in range(n):
            r0, v0 = full[which[k]], factor[k]
            for m in range(head):
                s[m] += v0 * widened(r0[m])
        for j in range(first, last):
            if j + 2 < last and size[indices[j + 2]] > 0:  # rows are far apart: ask for one two features ahead
                ahead = start[indices[j + 2]]
                for k in range(0, min(size[indices[j + 2]], 128), 32):
                    prefetch(column, ahead + k)
                    prefetch(value, ahead + k)
            v = out.dtype.type(data[j])
            n = size[indices[j]]
            if n <= 0:
                continue
            first_entry = start[indices[j]]
            columns, values = column[first_entry : first_entry + n], value[first_entry : first_entry + n]
            k = 0
            while k + 3 < n:  # the columns of a row differ, which the compiler cannot know
                c0, c1, c2, c3 = columns[k], columns[k + 1], columns[k + 2], columns[k + 3]
                x0, x1 = s[c0] + v * widened(values[k]), s[c1] + v * widened(values[k + 1])
                x2, x3 = s[c2] + v * widened(values[k + 2]), s[c3] + v * widened(values[k + 3])
                s[c0], s[c1], s[c2], s[c3] = x0, x1, x2, x3
                k += 4
            while k < n:
                s[columns[k]] += v * widened(values[k])
                k += 1


@kernel
def directions_kernel(scores, directions, out):
    """``out += scores @ directions``; a row does not depend on those beside it, as it does in a product of BLAS."""
    for t in range(out.shape[0]):
        row = out[t]
        for c in range(directions.shape[0]):
            s, direction = scores[t, c], directions[c]
            for k in range(row.shape[0]):
                row[k] += s * direction[k]
