"""How often a row is due for any of several tolerance classes: exact, from rows with labels.

A row is due for the classes that its label names, which the home decides on the unfiltered stream.
The rows that a subtree needs are those due for any class in it: a union. Its rate is not that of
the strictest class, as in the source (COSMOS 4.2.1), since classes don't nest: a loose one may be
due when a strict one, which passed a row just before, is not.

With k classes of an object there are 2^k unions; all of them follow from how often each label came,
by one sum over subsets.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from thalweg.placement.arrays import Floats

MOST_CLASSES = 16  # of one object, in a table


def union_rates(labels: npt.NDArray[np.integer], classes: int, seconds: float) -> Floats:
    """For each set of classes, as bits: rows a second that are due for any of them."""
    if not 0 <= classes <= MOST_CLASSES:
        raise ValueError(f"{classes} classes of one object; a table has 2^classes entries")
    if seconds <= 0:
        raise ValueError("rates need some time to be measured in")
    counts = np.bincount(labels, minlength=1 << classes).astype(float)
    if len(counts) > 1 << classes:
        raise ValueError(f"a label names a class beyond {classes - 1}")
    found: Floats = of_counts(counts[None], seconds)[0]
    return found


def of_counts(counts: Floats, seconds: float) -> Floats:
    """The same from how often each label came, for many objects: [objects, 2^classes]."""
    within, sets = counts.copy(), counts.shape[1]
    # Sum over subsets: afterwards within[s] counts the labels that name classes of s only.
    bit = 1
    while bit < sets:
        halves = within.reshape(len(within), -1, 2, bit)
        halves[:, :, 1] += halves[:, :, 0]
        bit *= 2
    outside = np.arange(sets) ^ (sets - 1)
    # `within` of all classes is the sum; taking it from there makes the empty union exactly 0.
    found: Floats = np.maximum(0.0, within[:, -1:] - within[:, outside]) / seconds
    return found
