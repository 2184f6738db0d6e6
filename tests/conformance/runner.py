"""Holds an engine to the reference: to the hand-written cases and to generated ones.

An engine is a callable (catalog, queries, inputs, options) -> {query name: changelog}. The
reference is one; each other engine's own tests plug theirs in:

    @pytest.mark.parametrize("case", all_cases(), ids=lambda case: case.name)
    def test_case(case):
        check(my_engine, case)
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Protocol

from tests.conformance.case_files import Case
from tests.conformance.generators import Workload
from tests.conformance.literals import parse_row

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.engine.changelog import Change, changelog_text, difference, faults
from thalweg.engine.reference import Options
from thalweg.plan.catalog import Catalog, QueryDef, StreamDef
from thalweg.plan.nodes import base_streams

Inputs = Mapping[str, Sequence[Arrival]]
_INPUT = re.compile(r"(?:@(?P<partition>\d+) +)?(?P<ts>-?\d+) +(?:(?P<op>[+-]) )? *(?P<row>.*)")
_CHANGE = re.compile(r"(?P<ts>-?\d+) +(?P<op>[+-]) (?P<row>.*)")


class Engine(Protocol):
    def __call__(
        self, catalog: Catalog, queries: Sequence[QueryDef], inputs: Inputs, options: Options
    ) -> Mapping[str, list[Change]]: ...


@dataclass(frozen=True, slots=True)
class Prepared:
    """A case, compiled: queries, inputs, and what must come out."""

    catalog: Catalog
    queries: tuple[QueryDef, ...]
    inputs: dict[str, list[Arrival]]
    options: Options
    expected: dict[str, list[Change]]
    late: dict[str, list[Arrival]]
    rejects: dict[str, list[Arrival]]


@cache
def prepare(case: Case) -> Prepared:
    script = compile_script(case.text)
    streams = {s.name: s for s in script.catalog.streams()}
    used = {s.name for q in script.queries for s in base_streams(q.plan)}
    expected_sections = used | {q.name for q in script.queries}
    if missing := expected_sections - case.sections.keys():
        raise ValueError(f"{case.name}: no section for {', '.join(sorted(missing))}")
    inputs = {name: _arrivals(streams[name], case.sections[name]) for name in used}

    def listed(what: str) -> dict[str, list[Arrival]]:
        found = {
            name: _arrivals(streams[name], case.sections.get(f"{what} {name}", ())) for name in used
        }
        return {name: arrivals for name, arrivals in found.items() if arrivals}

    return Prepared(
        script.catalog,
        script.queries,
        inputs,
        _options(case),
        {q.name: _changes(q, case.sections[q.name]) for q in script.queries},
        listed("late"),
        listed("rejects"),
    )


def check(engine: Engine, case: Case) -> None:
    """Raises AssertionError with a readable report if the engine prints anything else."""
    prepared = prepare(case)
    results = engine(prepared.catalog, prepared.queries, prepared.inputs, prepared.options)
    for query in prepared.queries:
        report = compare(query, prepared.expected[query.name], results[query.name])
        assert not report, f"{case.name}\n{case.text}\n{report}"


def check_against_reference(
    engine: Engine,
    catalog: Catalog,
    queries: Sequence[QueryDef],
    inputs: Inputs,
    options: Options | None = None,
) -> None:
    """The same, with what the reference says instead of what a case file says."""
    given = options or Options()
    expected = reference_engine(catalog, queries, inputs, given)
    results = engine(catalog, queries, inputs, given)
    for query in queries:
        report = compare(query, expected[query.name], results[query.name])
        assert not report, f"{report}\n{_inputs_text(query, inputs)}"


def check_workload(engine: Engine, workload: Workload, options: Options | None = None) -> None:
    """Hold an engine to the reference on a drawn workload."""
    script = workload.script()
    check_against_reference(engine, script.catalog, script.queries, workload.inputs, options)


def reference_engine(
    catalog: Catalog, queries: Sequence[QueryDef], inputs: Inputs, options: Options
) -> dict[str, list[Change]]:
    return {q.name: reference.evaluate(q.plan, inputs, **options) for q in queries}


def compare(query: QueryDef, expected: list[Change], actual: list[Change]) -> str:
    """What is wrong with a query's changelog; nothing if nothing is."""
    # A stream may print a row at an instant as often as it likes, but never with a minus.
    found = faults(actual)
    if query.plan.is_stream:
        found += [f"a stream takes nothing back: {c}" for c in actual if c.op == "-"]
    found += difference(expected, actual)
    if not found:
        return ""
    lines = [f"query {query.name}: {query.text}", *found, "expected:", changelog_text(expected)]
    return "\n".join([*lines, "found:", changelog_text(actual)])


def _inputs_text(query: QueryDef, inputs: Inputs) -> str:
    """What arrived, in the form of a case file."""
    lines: list[str] = []
    for stream in base_streams(query.plan):
        lines.append(f"--- {stream.name}")
        for a in inputs[stream.name]:
            op = f"{a.op} " if stream.is_relation else "  "
            values = ", ".join("NULL" if v is None else repr(v) for v in a.row)
            lines.append(f"@{a.partition} {a.timestamp} {op}{values}")
    return "\n".join(lines)


def _options(case: Case) -> Options:
    options = Options()
    horizons: dict[str, int] = {}
    for line in case.options:
        match line.split():
            case ["start", instant]:
                options["start"] = int(instant)
            case ["horizon", stream, instant]:
                horizons[stream] = int(instant)
    if horizons:
        options["horizons"] = horizons
    return options


def _arrivals(stream: StreamDef, lines: Sequence[str]) -> list[Arrival]:
    types = [f.type for f in stream.fields]
    arrivals = []
    for position, line in enumerate(lines):
        found = _parsed(_INPUT, line)
        if (found["op"] is not None) != stream.is_relation:
            raise ValueError(f"{line}: + and - stand in relations, and only there")
        row = parse_row(found["row"], types)
        partition = int(found["partition"] or 0)
        arrivals.append(Arrival(partition, int(found["ts"]), position, row, found["op"] or "+"))
    return arrivals


def _changes(query: QueryDef, lines: Sequence[str]) -> list[Change]:
    types = [f.type for f in query.plan.schema]
    found = (_parsed(_CHANGE, line) for line in lines)
    return [Change(int(f["ts"]), f["op"], parse_row(f["row"], types)) for f in found]


def _parsed(pattern: re.Pattern[str], line: str) -> re.Match[str]:
    found = pattern.fullmatch(line)
    if found is None:
        raise ValueError(f"can't read the line {line!r}")
    return found
