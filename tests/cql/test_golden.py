"""Texts and the plans they become, as EXPLAIN prints them (golden/*.txt)."""

from pathlib import Path

import pytest
from tests.cql.casefiles import Case, check, parameters

from thalweg.cql import compile_script
from thalweg.plan.catalog import Catalog, QueryDef, StreamDef
from thalweg.plan.text import expr_text, plan_text

HERE = Path(__file__).parent


def stream_text(stream: StreamDef) -> str:
    columns = ", ".join(str(f) for f in stream.fields)
    kind = "relation" if stream.is_relation else "stream"
    kind = "table" if stream.is_table else kind
    lines = [
        f"{kind} {stream.name} ({columns})",
        f"  stamped by {stream.timestamp} {stream.timestamp_type}, in {stream.resolution_us} µs",
    ]
    if stream.lateness or stream.idle_ms is not None:
        lines.append(f"  lateness {stream.lateness}, idle after {stream.idle_ms} ms")
    if stream.retain is not None or stream.wide:
        wide = ", ".join(stream.fields[i].name for i in stream.wide)
        lines.append(f"  retains {stream.retain}, wide: {wide}")
    if stream.source is not None:
        options = "".join(f", {key} = '{value}'" for key, value in stream.options)
        lines.append(f"  from '{stream.source}'{options}")
    if stream.is_table:
        lines.append(f"  key {', '.join(stream.key) or 'none'}, refresh {stream.refresh_ms} ms")
    return "\n".join(lines)


def described(text: str, catalog: Catalog) -> str:
    """Every definition of a script with its plan, columns and warnings."""
    script = compile_script(text, catalog)
    lines = []
    for change in script.changes:
        definition = change.definition
        if change.dropped:
            lines.append(f"dropped {definition.name}")
        elif isinstance(definition, StreamDef):
            lines.append(stream_text(definition))
        else:
            kind = "query" if isinstance(definition, QueryDef) else "view"
            from_now = " from now" if getattr(definition, "from_now", False) else ""
            columns = ", ".join(str(f) for f in definition.plan.schema)
            lines += [f"{kind} {definition.name}{from_now} ({columns})"]
            lines += [plan_text(definition.plan, indent=1)]
        lines += [f"{w.line}:{w.column}: warning: {w.message}" for w in change.warnings]
    for write in script.writes:
        if write.gone is not None:
            lines.append(
                f"{write.stream.name}: without {expr_text(write.gone, write.stream.fields)}"
            )
        lines += [
            f"{write.stream.name}: {dict(zip(write.columns, r, strict=True))}" for r in write.rows
        ]
    return "\n".join(lines)


@pytest.mark.parametrize(("path", "case"), parameters(HERE / "golden"))
def test_a_text_becomes_the_plan_on_file(
    path: Path, case: Case, catalog: Catalog, regenerate: bool
) -> None:
    check(path, case, lambda text: described(text, catalog), regenerate)


@pytest.mark.parametrize("path", sorted((HERE / "sources").glob("*.cql")), ids=lambda p: p.stem)
def test_queries_printed_in_the_sources_become_the_plans_on_file(
    path: Path, regenerate: bool
) -> None:
    golden = path.with_suffix(".txt")
    found = described(path.read_text(), Catalog()) + "\n"
    if regenerate:
        golden.write_text(found)
    assert found == golden.read_text()
