"""Bars in groups, as the source draws its figures 6, 7 and 12."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from thalweg.experiments.sqpr.figures import Draw

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def bars(
    groups: Sequence[str],
    series: Mapping[str, Sequence[Sequence[float]]],
    *,
    up: str,
    title: str,
) -> Draw:
    """Of each series and group the values of all topologies: their mean, and their range."""

    def draw(axes: Axes) -> None:
        width = 0.8 / len(series)
        for i, (label, values) in enumerate(series.items()):
            x = np.arange(len(groups)) + (i - (len(series) - 1) / 2) * width
            means = [float(np.mean(v)) for v in values]
            low = [m - min(v) for m, v in zip(means, values, strict=True)]
            high = [max(v) - m for m, v in zip(means, values, strict=True)]
            axes.bar(x, means, width, yerr=[low, high], label=label, error_kw={"lw": 0.8})
        axes.set_xticks(range(len(groups)), groups, fontsize=8)
        axes.set(ylabel=up, title=title)
        axes.legend(fontsize=8)
        axes.grid(axis="y", alpha=0.3)

    return draw
