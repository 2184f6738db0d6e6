"""What `thalweg plan` tells: hosts with their load, refusals with their reasons, plans as trees."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import msgspec

from thalweg.cli.exits import FAILED, CommandFailed
from thalweg.cli.output import emit, emit_table
from thalweg.cli.plan_moves import moves
from thalweg.placement.arrays import NONE
from thalweg.placement.cost import cost_of, load_of
from thalweg.placement.documents import write_deployment
from thalweg.placement.explain import Plans, explain
from thalweg.placement.network_use import NetworkUse, query_use, use_text
from thalweg.placement.problem import Problem
from thalweg.placement.sqpr.impossible import Impossible, Lack, impossible
from thalweg.placement.strategy import Options, Outcome
from thalweg.placement.units import amount, bps, percent
from thalweg.placement.verify import verify

_SHOWN = 20  # refusals that are listed; the JSON has them all


@dataclass
class PlanReport:
    strategy: str
    asked: Problem
    outcome: Outcome
    explained: list[int]

    @property
    def problem(self) -> Problem:
        """What the deployment is for: a yardstick may have made hosts of its own."""
        return self.outcome.problem or self.asked

    @cached_property
    def impossible(self) -> dict[int, Impossible]:
        """Refused queries that would not fit on idle hosts either."""
        refused = [r.query for r in self.outcome.refusals]
        found = ((q, impossible(self.asked, q, Options())) for q in refused)
        return {q: answer for q, answer in found if answer is not None}

    @cached_property
    def moves(self) -> list[dict[str, Any]]:
        """Against what runs already; a yardstick with hosts of its own moves nothing."""
        own_hosts = self.outcome.problem is not None
        return [] if own_hosts else moves(self.asked, self.outcome.deployment)

    def check(self) -> None:
        """No deployment leaves here unverified, whoever made it."""
        broken = verify(self.problem, self.outcome.deployment)
        if broken:
            told = "\n".join(f"  {violation}" for violation in broken[:5])
            raise CommandFailed(
                f"{self.strategy} gave a deployment that can't run:\n{told}", FAILED
            )

    def fail_if_nothing_is_possible(self) -> None:
        """An answer without a single query is an answer only if one could have been admitted."""
        queries = len(self.asked.queries)
        if queries and len(self.impossible) == queries:
            raise CommandFailed("the problem is impossible: no query fits, not even by itself")

    # --- for people -------------------------------------------------------------------------------

    def show(self) -> None:
        for note in self.outcome.notes:
            emit(note)
        if self.outcome.bound is not None:
            return  # it says how many, and deploys nothing
        emit(self._headline())
        emit("")
        columns = (
            ("HOST", "left"),
            *((name, "right") for name in ("CPU", "", "OUT", "", "IN", "", "RUNS", "RELAYS")),
            ("SERVES", "right"),
        )
        emit_table(columns, self._host_rows(), empty="there are no hosts")
        if self.outcome.refusals:
            emit("")
            emit_table(
                (("REFUSED", "left"), ("RESOURCE", "left"), ("HOST", "left"), ("WHY", "left")),
                self._refusal_rows(),
                empty="",
            )
            hidden = len(self.outcome.refusals) - _SHOWN
            if hidden > 0:
                emit(f"… and {hidden} more (--json lists all)")
        self._show_moves()
        for query in self.explained:
            emit("")
            emit("\n".join(self._explained(query)))

    def _show_moves(self) -> None:
        if not self.moves:
            return
        emit("")
        rows = [(m["operator"], m["from"], m["to"], m["state_bytes"]) for m in self.moves[:_SHOWN]]
        columns = (("MOVES", "left"), ("FROM", "left"), ("TO", "left"), ("STATE, BYTES", "right"))
        emit_table(columns, rows, empty="")
        if len(self.moves) > _SHOWN:
            emit(f"… and {len(self.moves) - _SHOWN} more (--json lists all)")

    def _headline(self) -> str:
        cost = cost_of(self.problem, self.outcome.deployment)
        total = float(self.problem.hosts.cpu.sum())
        return (
            f"{self.strategy} admits {cost.admitted} of {len(self.asked.queries)} queries:"
            f" CPU {amount(cost.cpu)} of {amount(total)}, traffic {bps(cost.network_bps)},"
            f" busiest host {100 * cost.busiest:.0f}%"
        )

    def _host_rows(self) -> Iterator[tuple[Any, ...]]:
        for host in self._hosts():
            yield (
                host["name"],
                f"{amount(host['cpu'])}/{amount(host['cpu_capacity'])}",
                percent(host["cpu"], host["cpu_capacity"]),
                bps(host["out_bps"]),
                percent(host["out_bps"], host["out_capacity_bps"]),
                bps(host["in_bps"]),
                percent(host["in_bps"], host["in_capacity_bps"]),
                host["runs"],
                host["relays"],
                host["serves"],
            )

    def _refusal_rows(self) -> Iterator[tuple[Any, ...]]:
        for refusal in self.outcome.refusals[:_SHOWN]:
            where = None if refusal.host is None else self.problem.hosts.names[refusal.host]
            why = refusal.detail
            if refusal.query in self.impossible:
                why = f"impossible: {self._lacking(self.impossible[refusal.query])}"
            yield self.asked.queries.names[refusal.query], refusal.resource, where, why

    def _explained(self, query: int) -> Iterator[str]:
        if self.outcome.deployment.serves[query] != NONE:
            yield explain(self.problem, self.outcome.deployment, query)
            use = self._use(query)
            if use is not None:
                yield use_text(use, float(self.problem.queries.latency_bound_ms[query]))
            return
        name = self.asked.queries.names[query]
        why = [r.detail for r in self.outcome.refusals if r.query == query]
        yield f"{name}: not admitted" + "".join(f"; {detail}" for detail in why)

    def _use(self, query: int) -> NetworkUse | None:
        plan = Plans(self.problem, self.outcome.deployment).of(query)
        return None if plan is None else query_use(self.problem, plan)

    def _lacking(self, found: Impossible) -> str:
        if not found.lacks:
            return f"on idle hosts too, {found.detail}"
        return "on idle hosts too, it would need " + " and ".join(
            self._lack(lack) for lack in found.lacks
        )

    def _lack(self, lack: Lack) -> str:
        names = self.asked.hosts.names
        if lack.resource == "cpu":
            needs, has = f"{amount(lack.needs)} CPU", amount(lack.has)
        else:
            needs, has = f"{bps(lack.needs)} {lack.resource}", bps(lack.has)
        where = names[lack.host] + ("" if lack.target is None else f" to {names[lack.target]}")
        return f"{needs} at {where}, which has {has}"

    # --- for programs -----------------------------------------------------------------------------

    def data(self) -> dict[str, Any]:
        names, hosts = self.asked.queries.names, self.problem.hosts.names
        deployed = write_deployment(self.problem, self.outcome.deployment)
        return {
            "strategy": self.strategy,
            "admitted": self.outcome.deployment.admitted,
            "submitted": len(names),
            "bound": self.outcome.bound,
            "notes": list(self.outcome.notes),
            "hosts": [_finite(host) for host in self._hosts()],
            "moves": self.moves,
            "refused": [
                {
                    "query": names[r.query],
                    "resource": r.resource,
                    "host": None if r.host is None else hosts[r.host],
                    "detail": r.detail,
                    "impossible": r.query in self.impossible,
                    "lacks": self._lacks(r.query),
                }
                for r in self.outcome.refusals
            ],
            "explain": {names[q]: "\n".join(self._explained(q)) for q in self.explained},
            "network": {
                names[q]: {**asdict(use), "saving": use.saving, "stretch": use.stretch}
                for q in self.explained
                if (use := self._use(q)) is not None
            },
            "deployment": msgspec.json.decode(deployed),
        }

    def _lacks(self, query: int) -> list[dict[str, Any]]:
        found = self.impossible.get(query)
        names = self.asked.hosts.names
        return [
            {
                "resource": lack.resource,
                "host": names[lack.host],
                "to": None if lack.target is None else names[lack.target],
                "has": lack.has,
                "needs": lack.needs,
            }
            for lack in (found.lacks if found else ())
        ]

    def _hosts(self) -> Iterator[dict[str, Any]]:
        problem, deployment = self.problem, self.outcome.deployment
        load = load_of(problem, deployment)
        output = problem.operators.output
        made = {(h, int(output[o])) for h, o in deployment.runs.tolist()}
        homes = set(enumerate(problem.streams.home.tolist()))
        onward = {(h, s) for h, _, s in deployment.sends.tolist()}
        relayed = [h for h, s in onward if (h, s) not in made and (s, h) not in homes]
        runs = deployment.runs[:, 0].tolist()
        serves = deployment.serves.tolist()
        for h, name in enumerate(problem.hosts.names):
            yield {
                "name": name,
                "cpu": float(load.cpu[h]),
                "cpu_capacity": float(problem.hosts.cpu[h]),
                "out_bps": float(load.out_bps[h]),
                "out_capacity_bps": float(problem.hosts.out_bps[h]),
                "in_bps": float(load.in_bps[h]),
                "in_capacity_bps": float(problem.hosts.in_bps[h]),
                "runs": runs.count(h),
                "relays": relayed.count(h),
                "serves": serves.count(h),
            }


def _finite(host: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity: an unlimited capacity is null there, as in the problem."""
    return {k: None if v == float("inf") else v for k, v in host.items()}
