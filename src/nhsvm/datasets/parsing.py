"""Kernels that parse rows of numbers from bytes.

A number comes out as Python's ``float`` has it, to the last bit. Whole numbers below 2⁵³ are exact as they are. For
others, w·10^q with w of at most 19 digits, the bits of the nearest double are found in whole-number arithmetic, by a
product of w with 128 bits of 5^q (D. Lemire, Number parsing at a gigabyte per second, Software: Practice and Experience
51, 2021): kernels are compiled with leave to reorder floating-point arithmetic, and here there is none to reorder.
What that does not decide (more digits, subnormal numbers, ``nan``, junk) is left to Python, as a place in the text.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nhsvm._jit import inlined, kernel

# what a kernel ended with
DONE, LABEL, INDEX, NEGATIVE, COLON, LARGE, UNSORTED, TWICE, FEW, MANY, QUOTE, SPARSE = range(12)
NUMERIC = -1  # the kind of a column; from 0 on, nominal
LARGEST_INDEX = 2**31 - 2

_SMALLEST_POWER, _LARGEST_POWER = -342, 308
_U0, _U1, _U9, _U10, _U32, _U52, _U63 = (np.uint64(k) for k in (0, 1, 9, 10, 32, 52, 63))
_U64, _NINE_ONES, _LOW_HALF = np.uint64(64), np.uint64(0x1FF), np.uint64(0xFFFFFFFF)
_ONES, _HIDDEN, _CARRIED = np.uint64(2**64 - 1), np.uint64(1 << 52), np.uint64(1 << 53)
_EXACT, _ROOM = np.uint64(1 << 53), np.uint64(10**18)
_BLANK, _TAB, _RETURN, _NEWLINE, _COMMA, _COLON, _HASH = 32, 9, 13, 10, 44, 58, 35
_MINUS, _PLUS, _POINT, _ZERO, _NINE, _PERCENT, _QUESTION, _BRACE = 45, 43, 46, 48, 57, 37, 63, 123


@lru_cache(1)
def powers_of_five() -> npt.NDArray[np.uint64]:
    """The first 128 bits of 5^q for all q of doubles, as (high, low); rounded up for −27 ≤ q < 0, else down."""
    table = np.empty((_LARGEST_POWER - _SMALLEST_POWER + 1, 2), dtype=np.uint64)
    for k, q in enumerate(range(_SMALLEST_POWER, _LARGEST_POWER + 1)):
        if q >= 0:
            bits = 5**q
            shift = 128 - bits.bit_length()
            bits = bits << shift if shift >= 0 else bits >> -shift
        else:
            divisor = 5**-q
            bits = (1 << (divisor.bit_length() + 127)) // divisor + (q >= -27)
        table[k] = bits >> 64, bits & (2**64 - 1)
    return table


@inlined
def _product(a, b):
    """The 128 bits of a·b, as (high, low)."""
    a0, a1, b0, b1 = a & _LOW_HALF, a >> _U32, b & _LOW_HALF, b >> _U32
    low, cross, other = a0 * b0, a1 * b0, a0 * b1
    middle = (low >> _U32) + (cross & _LOW_HALF) + (other & _LOW_HALF)
    return a1 * b1 + (cross >> _U32) + (other >> _U32) + (middle >> _U32), (middle << _U32) | (low & _LOW_HALF)


@inlined
def _bits(w, q, powers):
    """Bits of the double nearest to w·10^q, w > 0; (0, False) if this method does not decide."""
    if q < _SMALLEST_POWER or q > _LARGEST_POWER:
        return _U0, False
    zeros = 0
    for step in (32, 16, 8, 4, 2, 1):
        if w >> np.uint64(64 - step) == _U0:
            w <<= np.uint64(step)
            zeros += step
    high, low = _product(w, powers[q - _SMALLEST_POWER, 0])
    if high & _NINE_ONES == _NINE_ONES:  # the lower half of 5^q may still carry into the bits that count
        second, _ = _product(w, powers[q - _SMALLEST_POWER, 1])
        low += second
        if low < second:
            high += _U1
    if low == _ONES and (q < -27 or q > 55):
        return _U0, False
    top = high >> _U63
    shift = top + _U9
    mantissa = high >> shift
    exponent = ((217706 * q) >> 16) + 1086 + np.int64(top) - zeros
    if exponent <= 0:
        return _U0, False
    if low <= _U1 and -4 <= q <= 23 and mantissa & np.uint64(3) == _U1 and mantissa << shift == high:
        mantissa ^= _U1  # exactly half way: to even
    mantissa = (mantissa + (mantissa & _U1)) >> _U1
    if mantissa >= _CARRIED:
        mantissa = _HIDDEN
        exponent += 1
    if exponent >= 2047:
        return _U0, False
    return (mantissa & ~_HIDDEN) | (np.uint64(exponent) << _U52), True


@inlined
def number(text, i, powers, values, bits, k):
    """Parse a number at ``i`` into ``values[k]`` (``bits`` is the same memory); (where it ends, whether it is done)."""
    negative = text[i] == _MINUS
    if negative or text[i] == _PLUS:
        i += 1
    w, q, digits, begin = _U0, 0, 0, i
    while _ZERO <= text[i] <= _NINE:
        if w >= _ROOM:
            return i, False
        w = w * _U10 + np.uint64(text[i] - _ZERO)
        i += 1
    digits = i - begin
    if text[i] == _POINT:
        i += 1
        begin = i
        while _ZERO <= text[i] <= _NINE:
            if w >= _ROOM:
                return i, False
            w = w * _U10 + np.uint64(text[i] - _ZERO)
            i += 1
        digits += i - begin
        q = begin - i
    if digits == 0:
        return i, False
    if text[i] | 32 == 101:  # e
        i += 1
        down = text[i] == _MINUS
        if down or text[i] == _PLUS:
            i += 1
        begin, e = i, 0
        while _ZERO <= text[i] <= _NINE:
            e = min(e * 10 + np.int64(text[i]) - _ZERO, 100_000)
            i += 1
        if i == begin:
            return i, False
        q += -e if down else e
    if w == _U0:
        bits[k] = _U0
    elif q == 0 and w <= _EXACT:
        values[k] = np.float64(w)
    else:
        found, decided = _bits(w, q, powers)
        if not decided:
            return i, False
        bits[k] = found
    if negative:
        bits[k] |= _U1 << _U63
    return i, True


@inlined
def _ends(c):
    return c in (_BLANK, _NEWLINE, _TAB, _RETURN)


class SparseArrays(NamedTuple):
    """What the kernel fills; kept from block to block, since memory that is never touched costs nothing.

    Attributes
    ----------
    indptr, indices, values, label_ptr, labels : arrays
        Of a label that is a name, or no plain whole number, ``labels`` has where it begins and where it ends.
    bits : ``values``, seen as whole numbers
    hard : (position in values, begin, end) of numbers that are left to Python
    hard_labels : positions in labels of those that are left to Python
    row_line : newlines before each row, counted from where the kernel began
    """

    indptr: npt.NDArray[np.int64]
    indices: npt.NDArray[np.int32]
    values: npt.NDArray[np.float64]
    bits: npt.NDArray[np.uint64]
    label_ptr: npt.NDArray[np.int64]
    labels: npt.NDArray[np.int64]
    hard: npt.NDArray[np.int64]
    hard_labels: npt.NDArray[np.int64]
    row_line: npt.NDArray[np.int64]

    @classmethod
    def of(cls, n: int) -> SparseArrays:
        r"""Room for a text of so many bytes: a feature is at least " 1:1", a label "1,", a row "1\n"."""
        indptr, label_ptr, hard_labels, row_line = (np.empty(n // 2 + 2, dtype=np.int64) for _ in range(4))
        labels, hard = np.empty(n + 4, dtype=np.int64), np.empty(n + 4, dtype=np.int64)
        indices, values = np.empty(n // 3 + 2, dtype=np.int32), np.empty(n // 3 + 2)
        bits = values.view(np.uint64)
        return cls(indptr, indices, values, bits, label_ptr, labels, hard, hard_labels, row_line)

    @property
    def n_bytes(self) -> int:
        """The longest text that they have room for."""
        return len(self.labels) - 4


@kernel
def sparse_rows_kernel(text, i, names, sort, powers, rows):
    """Rows ``label[,label…] index:value …`` from position ``i`` on, up to the first that is wrong.

    Parameters
    ----------
    text : bytes that end in a newline
    names : bool
        Labels are names: their places are stored, not their values.
    sort : bool
        Indices need not ascend.
    powers : see ``powers_of_five``
    rows : SparseArrays
        To be filled.

    Returns
    -------
    n_rows, n_hard, n_hard_labels, next position, newlines before it, unsorted, status, position of what is wrong
    """
    indptr, indices, values, bits, label_ptr, labels, hard, hard_labels, row_line = rows
    n_text = text.shape[0]
    n_rows, n_hard, n_hard_labels, n_lines, unsorted = 0, 0, 0, 0, False
    indptr[0] = 0
    label_ptr[0] = 0
    while i < n_text:
        begin, status = i, DONE
        n, m, n_h, n_hl = indptr[n_rows], label_ptr[n_rows], n_hard, n_hard_labels
        while text[i] == _BLANK or text[i] == _TAB or text[i] == _RETURN:
            i += 1
        if text[i] == _NEWLINE or text[i] == _HASH:
            while text[i] != _NEWLINE:
                i += 1
            i += 1
            n_lines += 1
            continue
        # labels
        expected = False  # a comma came before
        while True:
            a, value = i, 0
            minus = text[i] == _MINUS
            if minus or text[i] == _PLUS:
                i += 1
            b = i
            while _ZERO <= text[i] <= _NINE and i - b < 18:
                value = value * 10 + np.int64(text[i]) - _ZERO
                i += 1
            if text[i] == _COLON and i > b and b == a and not expected:
                i = a  # a feature: there are no (more) labels
                break
            plain = i > b and (_ends(text[i]) or text[i] == _COMMA)
            if not plain:
                while not _ends(text[i]) and text[i] != _COMMA:
                    i += 1
            if i == a:
                status = LABEL
                break
            if names or not plain:
                if not names:
                    hard_labels[n_hl] = m
                    n_hl += 1
                labels[2 * m] = a
                labels[2 * m + 1] = i
            else:
                labels[2 * m] = -value if minus else value
            m += 1
            expected = text[i] == _COMMA
            if not expected:
                break
            i += 1
            while text[i] == _BLANK or text[i] == _TAB:
                i += 1
        # features
        last, row_unsorted = np.int64(-1), False
        while status == DONE:
            while text[i] == _BLANK or text[i] == _TAB or text[i] == _RETURN:
                i += 1
            if text[i] == _NEWLINE or text[i] == _HASH:
                break
            a, index = i, np.int64(0)
            while _ZERO <= text[i] <= _NINE:
                index = min(index * 10 + np.int64(text[i]) - _ZERO, np.int64(1 << 40))
                i += 1
            if i == a and text[i] == 113 and text[i + 1] == 105 and text[i + 2] == 100 and text[i + 3] == _COLON:
                while not _ends(text[i]):  # qid:3, a number of a query
                    i += 1
                continue
            if i == a or text[i] != _COLON:
                status = NEGATIVE if text[a] == _MINUS else INDEX if i == a else COLON
                i = a
                break
            if index > LARGEST_INDEX or (index <= last and (index == last or not sort)):
                status = LARGE if index > LARGEST_INDEX else TWICE if index == last else UNSORTED
                i = a
                break
            row_unsorted |= index < last
            last = index
            indices[n] = index
            a = i + 1
            i, done = number(text, a, powers, values, bits, n)
            if not done or not (_ends(text[i]) or text[i] == _HASH):
                while not _ends(text[i]):
                    i += 1
                hard[3 * n_h], hard[3 * n_h + 1], hard[3 * n_h + 2] = n, a, i
                n_h += 1
            n += 1
        if status != DONE:
            return n_rows, n_hard, n_hard_labels, begin, n_lines, unsorted, status, i
        while text[i] != _NEWLINE:
            i += 1
        i += 1
        row_line[n_rows] = n_lines
        n_lines += 1
        n_rows += 1
        indptr[n_rows], label_ptr[n_rows] = n, m
        n_hard, n_hard_labels = n_h, n_hl
        unsorted |= row_unsorted
    return n_rows, n_hard, n_hard_labels, i, n_lines, unsorted, DONE, i


@inlined
def _category(text, a, b, ptr, starts, categories, column):
    """Which category of a column the bytes a..b are, or −1."""
    for c in range(ptr[column], ptr[column + 1]):
        if starts[c + 1] - starts[c] == b - a:
            k = 0
            while k < b - a and categories[starts[c] + k] == text[a + k]:
                k += 1
            if k == b - a:
                return c - ptr[column]
    return -1


@kernel
def dense_rows_kernel(text, i, kinds, ptr, starts, categories, powers, values, bits, places, hard, row_line):
    """Rows of cells between commas, the last of which is a class, from ``i`` on, up to the first that is wrong.

    Parameters
    ----------
    text : bytes that end in a newline
    kinds : for every other column, NUMERIC or a number ≥ 0: which nominal attribute it is
    ptr, starts, categories : arrays
        Attribute a has the categories ptr[a] to ptr[a + 1]; category c is the bytes starts[c] to starts[c + 1].
    values : array to be filled, a row after the other; of a nominal column with the number of the category
    bits : ``values``, seen as whole numbers
    places : where the class of every row begins and ends
    powers : see ``powers_of_five``
    hard, row_line : see ``SparseArrays``

    Returns
    -------
    n_rows, n_hard, next position, newlines before it, status, position of what is wrong
    """
    n_text, n_columns = text.shape[0], kinds.shape[0]
    n_rows, n_hard, n_lines = 0, 0, 0
    missing = np.uint64(0x7FF8) << np.uint64(48)
    while i < n_text:
        begin, status, n_h = i, DONE, n_hard
        while text[i] == _BLANK or text[i] == _TAB or text[i] == _RETURN:
            i += 1
        if text[i] == _NEWLINE or text[i] == _PERCENT:
            while text[i] != _NEWLINE:
                i += 1
            i += 1
            n_lines += 1
            continue
        if text[i] == _BRACE:
            return n_rows, n_hard, begin, n_lines, SPARSE, i
        for j in range(n_columns):
            while text[i] == _BLANK or text[i] == _TAB or text[i] == _RETURN:
                i += 1
            a, k, done = i, n_rows * n_columns + j, False
            if text[i] == 34 or text[i] == 39:  # a quote
                i += 1
                while text[i] != text[a] and text[i] != _NEWLINE:
                    i += 1
                if text[i] == _NEWLINE:
                    status = QUOTE
                    i = a
                    break
                i += 1
            elif text[i] == _QUESTION:
                i += 1
                bits[k], done = missing, True
            elif kinds[j] == NUMERIC:
                i, done = number(text, i, powers, values, bits, k)
            b = i
            while text[i] != _COMMA and text[i] != _NEWLINE:
                i += 1
                if not _ends(text[i - 1]):
                    b, done = i, False
            if text[i] == _NEWLINE:
                status = FEW
                break
            if not done and kinds[j] != NUMERIC:
                found = _category(text, a, b, ptr, starts, categories, kinds[j])
                values[k], done = found, found >= 0
            if not done:
                hard[3 * n_h], hard[3 * n_h + 1], hard[3 * n_h + 2] = k, a, b
                n_h += 1
            i += 1
        if status == DONE:
            while text[i] == _BLANK or text[i] == _TAB:
                i += 1
            a = b = i
            while text[i] != _NEWLINE:
                i += 1
                if not _ends(text[i - 1]):
                    b = i
                if text[i - 1] == _COMMA:
                    status = MANY
        if status != DONE:
            return n_rows, n_hard, begin, n_lines, status, i
        places[2 * n_rows], places[2 * n_rows + 1] = a, b
        row_line[n_rows] = n_lines
        i += 1
        n_lines += 1
        n_rows += 1
        n_hard = n_h
    return n_rows, n_hard, i, n_lines, DONE, i
