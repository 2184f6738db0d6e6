"""A picture of a topology: transit nodes large, stubs in the colour of their domain."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from thalweg.sim.networks.topology import Topology

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_ENDINGS = (".svg", ".png")
_MARKS = "*^sPXD"


def draw(topology: Topology, axes: Axes, marked: Mapping[str, Sequence[int]] | None = None) -> None:
    """Onto given axes; `marked` nodes (proxies, sources, ...) get a shape and a legend by name."""
    from matplotlib.collections import LineCollection

    at, transit = topology.position, topology.is_transit
    backbone = transit[topology.ends].all(axis=1)
    for lines, width, colour in ((~backbone, 0.3, "0.75"), (backbone, 0.9, "0.35")):
        segments = list(at[topology.ends[lines]])
        axes.add_collection(LineCollection(segments, linewidths=width, colors=colour, zorder=1))
    axes.scatter(*at[~transit].T, s=5, c=topology.domain[~transit] % 20, cmap="tab20", zorder=2)
    axes.scatter(*at[transit].T, s=22, c="black", zorder=3)
    for i, (name, nodes) in enumerate((marked or {}).items()):
        spots = at[np.asarray(nodes, dtype=int)]
        axes.scatter(
            *spots.T, s=90, marker=_MARKS[i % len(_MARKS)], ec="black", label=name, zorder=4
        )
    if marked:
        axes.legend(loc="upper right")
    axes.set_title(f"{topology.name}: {topology.nodes:,} nodes, {topology.links:,} links")
    axes.set_aspect("equal")
    axes.set_axis_off()


def save_picture(
    topology: Topology, file: Path, marked: Mapping[str, Sequence[int]] | None = None
) -> None:
    """As SVG or PNG, by the file's ending."""
    if file.suffix not in _ENDINGS:
        raise ValueError(f"{file}: a picture ends in {' or '.join(_ENDINGS)}")
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 9), layout="constrained")
    FigureCanvasAgg(figure)
    draw(topology, figure.subplots(), marked)
    # Without a date, the same topology gives the same bytes.
    figure.savefig(file, metadata={"Date": None} if file.suffix == ".svg" else None)
