"""What the source says of its figures 6 and 7, beside what is seen here."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from thalweg.experiments.report import Beside
from thalweg.experiments.sand.measuring import EDGE, EDGE_PLUS, IN_NETWORK, Table

PLACES = ("star", "uniform", "cluster")


def figure_6(table: Table, tight: str, loose: str) -> list[Beside]:
    ratio = _means(table, "ratio")
    scope = {p: ratio(p, loose, IN_NETWORK) for p in PLACES}
    relaxed = {p: ratio(p, tight, IN_NETWORK) - ratio(p, loose, IN_NETWORK) for p in PLACES}
    apart = {p: ratio(p, loose, EDGE_PLUS) - ratio(p, loose, IN_NETWORK) for p in PLACES}
    below = all(
        ratio(p, bound, name) < ratio(p, bound, EDGE)
        for p in PLACES
        for bound in (tight, loose)
        for name in (EDGE_PLUS, IN_NETWORK)
    )
    return [
        Beside(
            "6",
            "similar ratios for star and uniform",
            _told(scope, "{:.2f}") + " (in-network, loose)",
            ""
            if abs(scope["star"] - scope["uniform"]) < 0.05
            else "a star's sources are twice as far from each other as from the proxy, so bringing "
            "two together costs more of what is to be saved; how uniform differs the source does "
            "not say",
        ),
        Beside(
            "6",
            "cluster has the greatest scope: the lowest ratios",
            _told(scope, "{:.2f}"),
            "" if scope["cluster"] == min(scope.values()) else "it does not here",
        ),
        Beside(
            "6",
            "relaxing the bound has little effect on the ratio",
            "tight less loose: " + _told(relaxed, "{:+.2f}"),
            ""
            if max(relaxed.values()) < 0.05
            else "a tight bound of the tree's own direct delay leaves no detour to its farthest "
            "sources; a bound in ms that all trees of a run can meet is loose for most of them",
        ),
        Beside(
            "6",
            "Edge+ and In-Network below Edge everywhere",
            "yes" if below else "not everywhere",
        ),
        Beside(
            "6",
            "Edge+ and In-Network hardly differ for star and uniform",
            "edge+ less in-network: " + _told(apart, "{:+.3f}"),
        ),
    ]


def figure_7(table: Table, tight: str, loose: str) -> list[Beside]:
    stretch = _means(table, "stretch")
    wide = {name: {p: stretch(p, loose, name) for p in PLACES} for name in _ALL}
    narrow = {name: {p: stretch(p, tight, name) for p in PLACES} for name in _ALL}
    worst = [p for p in PLACES if wide[EDGE][p] >= max(wide[n][p] for n in _ALL)]
    lower = [p for p in PLACES if wide[IN_NETWORK][p] < wide[EDGE_PLUS][p]]
    longer = [p for p in PLACES if narrow[IN_NETWORK][p] >= narrow[EDGE_PLUS][p]]
    return [
        Beside("7", "loose: Edge has the largest stretch everywhere", _where(worst, wide)),
        Beside(
            "7",
            "tight: all three are alike",
            "; ".join(f"{name} {_told(narrow[name], '{:.2f}')}" for name in _ALL),
        ),
        Beside(
            "7",
            "loose: In-Network has a smaller stretch than Edge+",
            _where(lower, wide),
            ""
            if len(lower) == len(PLACES)
            else "where they differ by a few hundredths they are alike: hosts in between are "
            "mostly in the stub domain of a source or of the proxy (sand-selectivity), which "
            "changes a way's length little",
        ),
        Beside(
            "7",
            "tight: In-Network has a larger stretch than Edge+, as it saves more",
            _where(longer, narrow),
        ),
    ]


_ALL = (EDGE, EDGE_PLUS, IN_NETWORK)


def _means(table: Table, what: str) -> Callable[[str, str, str], float]:
    return lambda places, bound, name: table.mean((places, bound, name), what)


def _told(values: dict[str, float], form: str) -> str:
    return ", ".join(f"{name} {form.format(value)}" for name, value in values.items())


def _where(held: Sequence[str], values: dict[str, dict[str, float]]) -> str:
    told = "; ".join(f"{name} {_told(of, '{:.2f}')}" for name, of in values.items())
    if len(held) == len(PLACES):
        return f"yes ({told})"
    return f"{'for ' + ', '.join(held) if held else 'nowhere'} ({told})"
