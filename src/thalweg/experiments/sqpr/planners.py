"""The planners of SQPR's pages: each with and without the forecast, so that nobody alone has it."""

from __future__ import annotations

from dataclasses import replace

from thalweg.experiments.sqpr.filling import Fill, filling
from thalweg.placement.strategy import Options

SQPR, PLAIN = "sqpr", "sqpr, no forecast"
HEURISTIC, KNOWING = "heuristic", "heuristic, forecast"
REFERENCE = "aggregate host"


def sqpr_planners(options: Options, *, note_load: bool = False) -> dict[str, Fill]:
    """SQPR as it is, and by the objective alone, as in the source."""
    plain = replace(options, reuse="none")
    return {
        SQPR: filling("sqpr", options, note_load=note_load),
        PLAIN: filling("sqpr", plain, note_load=note_load),
    }


def heuristic_planners() -> dict[str, Fill]:
    """The source's planner, and the same with SQPR's forecast."""
    return {
        HEURISTIC: filling("heuristic"),
        KNOWING: filling("heuristic", Options(reuse="forecast")),
    }
