"""The solver: HiGHS on one thread, limited by nodes, so that it answers the same every time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import highspy
import numpy as np

from thalweg.placement.milp.linear import INFINITY, Model

FEASIBILITY = 1e-9


@dataclass(frozen=True, slots=True)
class Answer:
    """The variables' values; None where there is no solution, or none was found in the limit."""

    values: list[float] | None
    proven: bool  # the best there is (within the gap), or no solution exists
    clock: bool = False  # the safety net was needed: the answer may differ from run to run
    nodes: int = 0


def solve(
    model: Model,
    *,
    nodes: int,
    gap: float,
    seconds: float,
    start: Sequence[float] | None = None,
) -> Answer:
    """`start` is a solution to go on from; one that is none is left aside."""
    highs = highspy.Highs()  # type: ignore[no-untyped-call]
    for option, value in (
        ("output_flag", False),
        ("threads", 1),
        ("random_seed", 0),
        ("mip_rel_gap", gap),
        ("mip_max_nodes", nodes),
        ("mip_feasibility_tolerance", FEASIBILITY),
        ("primal_feasibility_tolerance", FEASIBILITY),
        ("time_limit", seconds),
    ):
        highs.setOptionValue(option, value)
    highs.passModel(_lp(model))
    if start is not None:
        solution = highspy.HighsSolution()
        solution.col_value = list(start)
        highs.setSolution(solution)
    highs.run()
    status = highs.getModelStatus()
    info = highs.getInfo()
    found = info.primal_solution_status == highspy.SolutionStatus.kSolutionStatusFeasible
    return Answer(
        list(highs.getSolution().col_value) if found else None,
        status in (highspy.HighsModelStatus.kOptimal, highspy.HighsModelStatus.kInfeasible),
        status == highspy.HighsModelStatus.kTimeLimit,
        int(info.mip_node_count),
    )


def _lp(model: Model) -> highspy.HighsLp:
    count = len(model.costs)
    lp = highspy.HighsLp()
    lp.num_col_ = count
    lp.num_row_ = len(model.rows)
    lp.col_cost_ = np.array(model.costs)
    lp.col_lower_ = np.zeros(count)
    lp.col_upper_ = np.array([float(model.most.get(v, 1)) for v in range(count)])
    lp.integrality_ = [highspy.HighsVarType.kInteger] * count
    if model.busiest is not None:
        kinds = [highspy.HighsVarType.kInteger] * count
        kinds[model.busiest] = highspy.HighsVarType.kContinuous
        lp.integrality_ = kinds
    infinite = highspy.kHighsInf
    lp.row_lower_ = np.array([-infinite if low == -INFINITY else low for low, _, _ in model.rows])
    lp.row_upper_ = np.array([infinite if high == INFINITY else high for _, _, high in model.rows])
    starts = np.zeros(len(model.rows) + 1, np.int32)
    np.cumsum([len(terms) for _, terms, _ in model.rows], out=starts[1:])
    lp.a_matrix_.format_ = highspy.MatrixFormat.kRowwise
    lp.a_matrix_.start_ = starts
    lp.a_matrix_.index_ = np.array([v for _, terms, _ in model.rows for v, _ in terms], np.int32)
    lp.a_matrix_.value_ = np.array([f for _, terms, _ in model.rows for _, f in terms])
    return lp
