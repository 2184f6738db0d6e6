"""What `thalweg plan` does, once its options are known."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from pathlib import Path

from thalweg.cli.exits import BAD_INPUT, CommandFailed, reporting
from thalweg.cli.output import emit_json, emit_table
from thalweg.cli.plan_queries import with_cql, with_wishes
from thalweg.cli.plan_report import PlanReport
from thalweg.placement.cost import Weights
from thalweg.placement.documents import read_problem
from thalweg.placement.drawing.dot import deployment_dot, plan_dot
from thalweg.placement.drawing.map import map_svg
from thalweg.placement.drawing.svg import deployment_svg, plan_svg
from thalweg.placement.explain import Plans
from thalweg.placement.problem import Problem, ProblemError
from thalweg.placement.strategies import STRATEGIES, find_strategy
from thalweg.placement.strategy import Options, Strategy

WEIGHTS = ("admitted", "network", "cpu", "balance")


@dataclass(frozen=True, slots=True)
class Request:
    problem: str | None
    strategy: str
    weights: str
    work_limit: int | None
    reuse: str | None
    restraint: bool
    batch: int
    cql: Path | None
    proxies: list[str]
    bound_ms: float | None
    explain: list[str]
    svg: Path | None
    map_file: Path | None
    dot: Path | None
    as_json: bool


def run(request: Request) -> None:
    with reporting():
        if request.problem is None:
            _list(as_json=request.as_json)
            return
        asked = _read(request.problem)
        if request.cql is not None:
            asked = with_cql(asked, request.cql, whole=request.strategy.startswith("cosmos"))
        if request.proxies or request.bound_ms is not None:
            asked = with_wishes(asked, request.proxies, request.bound_ms)
        strategy = _strategy(request.strategy)
        explained = _queries(asked, request.explain)
        options = _options(request)
        try:
            outcome = strategy.plan(asked, options)
        except ValueError as error:  # what runs is nothing that this strategy can go on from
            raise CommandFailed(f"{request.problem}: {error}", BAD_INPUT) from None
        report = PlanReport(strategy.name, asked, outcome, explained)
        report.check()
        _draw(report, request.svg, request.dot)
        if request.map_file is not None:
            _write(request.map_file, map_svg(report.problem, report.outcome.deployment))
        if request.as_json:
            emit_json(report.data())
        else:
            report.show()
        report.fail_if_nothing_is_possible()


def _list(*, as_json: bool) -> None:
    if as_json:
        emit_json([{"name": s.name, "summary": s.summary} for s in STRATEGIES])
    else:
        rows = [(s.name, s.summary) for s in STRATEGIES]
        emit_table((("NAME", "left"), ("SUMMARY", "left")), rows, empty="there are none")


def _read(name: str) -> Problem:
    try:
        text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
    except OSError as error:
        raise CommandFailed(f"{name}: {error.strerror}", BAD_INPUT) from None
    try:
        return read_problem(text)
    except ProblemError as error:
        raise CommandFailed(f"{name}: {error}", BAD_INPUT) from None


def _strategy(name: str) -> Strategy:
    try:
        return find_strategy(name)
    except KeyError as error:
        raise CommandFailed(str(error.args[0]), BAD_INPUT) from None


def _options(request: Request) -> Options:
    try:
        options = Options(
            weights=_weights(request.weights),
            batch=request.batch,
            reuse=request.reuse,
            restraint=request.restraint,
        )
    except ValueError as error:
        raise CommandFailed(f"--reuse {request.reuse}: {error}", BAD_INPUT) from None
    if request.work_limit is None:
        return options
    return replace(options, work_limit=request.work_limit)


def _weights(text: str) -> Weights:
    values = {}
    for part in filter(None, (p.strip() for p in text.split(","))):
        name, _, value = part.partition("=")
        if name not in WEIGHTS:
            names = ", ".join(WEIGHTS)
            raise CommandFailed(f"--weights {part}: there are {names}", BAD_INPUT)
        try:
            values[name] = float(value)
        except ValueError:
            raise CommandFailed(f"--weights {part}: give a number", BAD_INPUT) from None
    try:
        return Weights(**values)
    except ValueError as error:
        raise CommandFailed(f"--weights {text}: {error}", BAD_INPUT) from None


def _queries(problem: Problem, names: list[str]) -> list[int]:
    if "all" in names and "all" not in problem.queries.names:
        return list(range(len(problem.queries)))
    for name in names:
        if name not in problem.queries.names:
            raise CommandFailed(f"--explain {name}: there is no such query", BAD_INPUT)
    return [problem.queries.names.index(name) for name in names]


def _draw(report: PlanReport, svg: Path | None, dot: Path | None) -> None:
    problem, deployment = report.problem, report.outcome.deployment
    plans = Plans(problem, deployment)
    drawn = [(q, plan) for q in report.explained if (plan := plans.of(q)) is not None]
    for file, whole, one in ((svg, deployment_svg, plan_svg), (dot, deployment_dot, plan_dot)):
        if file is None:
            continue
        if report.explained and not drawn:
            raise CommandFailed(f"{file}: no explained query was admitted", BAD_INPUT)
        text = one(problem, *drawn[0]) if drawn else whole(problem, deployment)
        _write(file, text)


def _write(file: Path, text: str) -> None:
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise CommandFailed(f"{file}: {error.strerror}", BAD_INPUT) from None
