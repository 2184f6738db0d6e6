"""How outcomes of simulated runs are shown, for people and for programs."""

from __future__ import annotations

from collections import Counter
from operator import itemgetter
from typing import Any

from thalweg.cli.output import emit, emit_table
from thalweg.sim.kernel import SECOND_US
from thalweg.sim.run import Outcome
from thalweg.sim.soak import Tally

ENOUGH = 30  # seeds in which a fault should have met a message


def outcome_lines(outcome: Outcome) -> list[str]:
    sent, faults = sorted(outcome.sent.items()), sorted(outcome.faults.items())
    simulated_s = outcome.simulated_us / SECOND_US
    found = [
        f"scenario {outcome.scenario}, seed {outcome.options.seed}",
        "options",
        *(f"  {line}" for line in outcome.options.lines()),
        "messages",
        *(f"  {count:>8,} {name} {kind}" for (name, kind), count in sent),
        "faults",
        *(f"  {count:>8,} {kind}" for kind, count in faults),
        *(f"  at {step}: {fault}" for step, fault in outcome.met),
        f"{outcome.steps:,} events in {simulated_s:g} simulated seconds, trace {outcome.digest}",
    ]
    if outcome.problem is not None:
        return [*found, f"verdict: FAILED {outcome.problem}"]
    settled_s = (outcome.settled_after_us or 0) / SECOND_US
    return [*found, f"verdict: ok, settled {settled_s:g} s after the healing"]


def outcome_as_json(outcome: Outcome) -> dict[str, Any]:
    return {
        "scenario": outcome.scenario,
        "seed": outcome.options.seed,
        "options": outcome.options.lines(),
        "messages": _flat(outcome.sent),
        "faults": dict(sorted(outcome.faults.items())),
        "met": [list(cell) for cell in outcome.met],
        "events": outcome.steps,
        "simulated_us": outcome.simulated_us,
        "settled_after_us": outcome.settled_after_us,
        "trace": outcome.digest,
        "problem": outcome.problem,
    }


def show_tallies(tallies: list[Tally]) -> None:
    headings = ("SEEDS", "FAILED", "EVENTS", "SIMULATED HOURS", "SLOWEST TO SETTLE")
    columns = (("SCENARIO", "left"), *((heading, "right") for heading in headings))
    rows = [
        (
            t.scenario,
            f"{t.seeds:,}",
            f"{len(t.failed):,}",
            f"{t.steps:,}",
            f"{t.simulated_hours:,.1f}",
            f"{t.slowest_to_settle_us / SECOND_US:g} s",
        )
        for t in tallies
    ]
    emit_table(columns, rows, empty="nothing was run")
    faults: Counter[str] = sum((t.faults for t in tallies), start=Counter())
    counts = [(kind, f"{count:,}") for kind, count in sorted(faults.items())]
    emit_table((("FAULT", "left"), ("TIMES", "right")), counts, empty="nothing went wrong")
    for tally in tallies:
        _show_met(tally)
    _show_encounters(tallies)
    for tally in tallies:
        for seed, problem in tally.failed.items():
            emit(f"{tally.scenario} seed {seed}: {problem}")


def _show_met(tally: Tally) -> None:
    """In how many seeds which fault struck in which step of the scenario's protocol."""
    if not tally.met:
        return
    steps = list(dict.fromkeys(step for step, _ in tally.met))
    faults = list(dict.fromkeys(fault for _, fault in tally.met))
    columns = (
        (f"{tally.scenario.upper()}: SEEDS", "left"),
        *((f.upper(), "right") for f in faults),
    )
    rows = [(step, *(f"{tally.met[step, fault]:,}" for fault in faults)) for step in steps]
    emit_table(columns, rows, empty="")


def _show_encounters(tallies: list[Tally]) -> None:
    """Whether each fault has met each message of the protocols, and which have met least often."""
    columns = (
        ("SCENARIO", "left"),
        ("MESSAGES × FAULTS", "right"),
        (f"IN {ENOUGH} SEEDS OR MORE", "right"),
        ("LEAST OFTEN", "left"),
    )
    rows = []
    for tally in tallies:
        cells = tally.encounters
        if cells:
            (message, fault), seeds = min(cells.items(), key=itemgetter(1))
            enough = sum(count >= ENOUGH for count in cells.values())
            least = f"{message}, {fault}: {seeds:,}"
            rows.append((tally.scenario, f"{len(cells):,}", f"{enough:,}", least))
    emit_table(columns, rows, empty="no message met a fault")


def tally_as_json(tally: Tally) -> dict[str, Any]:
    return {
        "scenario": tally.scenario,
        "seeds": tally.seeds,
        "events": tally.steps,
        "simulated_hours": tally.simulated_hours,
        "slowest_to_settle_us": tally.slowest_to_settle_us,
        "faults": dict(sorted(tally.faults.items())),
        "messages": _flat(tally.sent),
        "met": _flat(tally.met),
        "encounters": [[*cell, seeds] for cell, seeds in tally.encounters.items()],
        "failed": {str(seed): problem for seed, problem in tally.failed.items()},
    }


def _flat(sent: Counter[tuple[str, str]]) -> dict[str, int]:
    return {f"{name} {kind}": count for (name, kind), count in sorted(sent.items())}
