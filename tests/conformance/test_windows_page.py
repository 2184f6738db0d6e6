"""docs/windows.md: its pictures are what the reference evaluator draws, its examples compile."""

import re
from pathlib import Path

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.plan.windows import FOREVER

PAGE = Path(__file__).parents[2] / "docs" / "windows.md"
PICTURE = re.compile(r"```cql picture\n(.*?)\n-- (.*?)\n```\n\n```text\n(.*?)```", re.DOTALL)
STREAM = "CREATE STREAM S (x VARCHAR) TIMESTAMP BY ts BIGINT;"
READING = """CREATE STREAM Reading (sensor VARCHAR, value DOUBLE, at TIMESTAMP)
  TIMESTAMP BY at RESOLUTION 1 SECOND;"""
END = 30


def picture(query: str, tuples: str) -> str:
    """A line for each row of the result, a character for each instant."""
    (compiled,) = compile_script(f"{STREAM}\n{query}").queries
    stamps = {x: int(at) for x, at in re.findall(r"(\w+) at (\d+)", tuples)}
    arrivals = [Arrival(0, at, i, (x,)) for i, (x, at) in enumerate(stamps.items())]
    spans: dict[tuple, list[list[int]]] = {(x,): [] for x in stamps}
    for change in reference.evaluate(compiled.plan, {"S": arrivals}):
        if change.op == "+":
            spans.setdefault(change.row, []).append([change.ts, FOREVER])
        else:
            spans[change.row][-1][1] = change.ts
    if any(len(row) > 1 for row in spans):
        spans = {row: inside for row, inside in spans.items() if len(row) > 1}
    scale = "".join(f"{t:<10}" for t in range(0, END + 1, 10)).rstrip()
    lines = [f"         {scale}"]
    for row, inside in sorted(spans.items()):
        shown = ""
        for t in range(END + 1):
            is_in = any(start <= t < end for start, end in inside)
            shown += "·o#@"[2 * is_in + (t == stamps[row[0]])]
        lines.append(f"{' '.join(map(str, row)):<9}{shown}")
    return "\n".join(lines) + "\n"


def test_pictures_are_what_the_reference_draws(regenerate: bool):
    page = PAGE.read_text()
    if regenerate:
        for query, tuples, drawn in PICTURE.findall(page):
            head = f"{query}\n-- {tuples}\n```\n\n```text\n"
            page = page.replace(f"{head}{drawn}", f"{head}{picture(query, tuples)}")
        PAGE.write_text(page)
    found = PICTURE.findall(page)
    assert len(found) == page.count("```cql picture") > 5
    for query, tuples, drawn in found:
        assert drawn == picture(query, tuples), query


def test_examples_compile():
    examples = re.findall(r"^```cql\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert examples
    for example in examples:
        script = compile_script(f"{READING}\n{example}", name="docs/windows.md")
        assert script.warnings == ()
