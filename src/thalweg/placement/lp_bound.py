"""The LP relaxation: no deployment admits more queries than this.

A feasible deployment, seen from far enough away, says of each operator whether any host runs it
(z), of each wanted stream whether it is handed out (d) and of each base stream whether it is ever
sent (t). Keeping one maker per stream, it satisfies

    d_w ≤ Σ z of w's makers             what is handed out is made
    z_o ≤ Σ z of s's makers             for every made input s of o
    Σ z of s's makers ≤ 1
    Σ γ z ≤ Σ ζ,  z_o = 0 if γ_o > ζ of every host that may run o
    t_a + t_b ≥ z_o                     for base inputs a, b with different homes
    Σ ϱ t + Σ ϱ d ≤ Σ β out,  Σ ϱ t ≤ Σ β in

so the maximum of Σ d over fractions is an upper bound. Relaxing (III.8) as it is printed gives
none: with fractions and a big M, streams feed themselves, and making costs nothing. Telling hosts
apart adds nothing either, as a fraction of an operator may run on every host.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
from scipy.optimize import linprog
from scipy.sparse import csr_matrix

from thalweg.placement.arrays import NONE, Floats
from thalweg.placement.deployment import nothing
from thalweg.placement.problem import Problem
from thalweg.placement.strategy import Options, Outcome, Strategy

_TOLERANCE = 1e-6


class _Relaxation:
    """Variables z of operators, d of wanted streams and t of all streams; rows Σ a·x ≤ limit."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem
        self.wanted, self.askers = np.unique(problem.queries.wanted, return_counts=True)
        self.first_d = len(problem.operators)
        self.first_t = self.first_d + len(self.wanted)
        self.variables = self.first_t + len(problem.streams)
        self.entries: list[tuple[int, int, float]] = []
        self.limits: list[float] = []
        self._makers()
        self._inputs()
        self._capacities()

    def _makers(self) -> None:
        home = self.problem.streams.home
        for makers in self.problem.makers:
            if len(makers) > 1:
                self._row({int(o): 1.0 for o in makers}, 1.0)
        for number, stream in enumerate(self.wanted):
            if home[stream] == NONE:
                self._row({self.first_d + number: 1.0, **self._made(int(stream))}, 0.0)

    def _inputs(self) -> None:
        home = self.problem.streams.home
        for operator, inputs in enumerate(self.problem.operators.inputs):
            for stream in inputs[home[inputs] == NONE]:
                self._row({operator: 1.0, **self._made(int(stream))}, 0.0)
            for one, other in combinations(inputs[home[inputs] != NONE].tolist(), 2):
                if home[one] != home[other]:
                    sent = {self.first_t + one: -1.0, self.first_t + other: -1.0}
                    self._row({operator: 1.0, **sent}, 0.0)

    def _capacities(self) -> None:
        hosts, rate = self.problem.hosts, self.problem.streams.rate_bps.tolist()
        cpu = {o: float(c) for o, c in enumerate(self.problem.operators.cpu)}
        handed_out = {self.first_d + i: rate[s] for i, s in enumerate(self.wanted)}
        sent = {self.first_t + s: bps for s, bps in enumerate(rate)}
        self._row(cpu, float(hosts.cpu.sum()))
        self._row({**handed_out, **sent}, float(hosts.out_bps.sum()))
        self._row(sent, float(hosts.in_bps.sum()))

    def _made(self, stream: int) -> dict[int, float]:
        return {int(o): -1.0 for o in self.problem.makers[stream]}

    def _row(self, terms: dict[int, float], limit: float) -> None:
        """Capacities may be millions: scaled to 1, they don't upset the solver's tolerances."""
        if np.isfinite(limit):
            row, scale = len(self.limits), max(limit, 1.0)
            self.entries += [(row, variable, weight / scale) for variable, weight in terms.items()]
            self.limits.append(limit / scale)

    def solve(self) -> float:
        gain = np.zeros(self.variables)
        gain[self.first_d : self.first_t] = self.askers
        highest = np.ones(self.variables)
        highest[: self.first_d] = _fits_somewhere(self.problem)
        rows, columns, weights = zip(*self.entries, strict=True) if self.entries else ((), (), ())
        found = linprog(
            -gain,
            A_ub=csr_matrix((weights, (rows, columns)), (len(self.limits), self.variables)),
            b_ub=self.limits,
            bounds=np.stack([np.zeros(self.variables), highest], axis=1),
            method="highs",
        )
        if found.status != 0:
            raise RuntimeError(f"the relaxation was not solved: {found.message}")
        return float(-found.fun)


def admitted_at_most(problem: Problem) -> float:
    """The relaxation's optimum, in queries."""
    if not len(problem.queries) or not len(problem.hosts):
        return 0.0
    return _Relaxation(problem).solve()


def _fits_somewhere(problem: Problem) -> Floats:
    hosts, operators = problem.hosts, problem.operators
    largest = hosts.cpu.max(initial=0.0)
    room = np.where(operators.pinned == NONE, largest, hosts.cpu[operators.pinned])
    return (operators.cpu <= room).astype(float)


def _plan(problem: Problem, options: Options) -> Outcome:
    bound = float(np.floor(admitted_at_most(problem) + _TOLERANCE))
    note = f"a bound: no deployment admits more than {bound:.0f} queries"
    return Outcome(nothing(len(problem.queries)), (), (note,), bound)


LP_BOUND = Strategy("lp-bound", "the LP relaxation: how many queries nobody can exceed", _plan)
