"""The hand-written cases: text files that read as documentation of every operator and window.

A file opens with the streams that its cases share. A case has a title, maybe options, the query,
what arrives, and what must come out:

    === a tuple leaves at s + T + 1
    SELECT a FROM S [Range 2]
    --- S
    3   1
    --- q
    3 + 1
    6 - 1

A bare query is called `q`; scripts with CREATE VIEW and CREATE QUERY work too. Input lines are in
order of arrival: `timestamp values` for a stream, `timestamp op values` for a relation, with `@n`
before them for source partition n. `--- late S` and `--- rejects R` list what did not count; where
they are left out, everything did. `start` and `horizon` lines (before the query) submit it while
streams flow. Lines that start with # are comments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

DIRECTORY = Path(__file__).parent / "cases"
_OPTION = re.compile(r"(?:start|horizon \w+) -?\d+")


@dataclass(frozen=True, slots=True, eq=False)
class Case:
    """One case as written; `runner.prepare` compiles it, once a process."""

    topic: str
    title: str
    streams: str
    script: str
    options: tuple[str, ...]
    sections: dict[str, tuple[str, ...]]

    @property
    def name(self) -> str:
        return f"{self.topic}: {self.title}"

    @property
    def text(self) -> str:
        """The whole CQL, with a name for a bare query."""
        *before, last = [part.strip() for part in self.script.split(";") if part.strip()]
        if not last.upper().startswith("CREATE"):
            last = f"CREATE QUERY q AS {last}"
        return ";\n".join([self.streams.strip().rstrip(";"), *before, last]) + ";\n"


def parse_file(topic: str, text: str) -> Iterator[Case]:
    lines = [line.rstrip() for line in text.splitlines() if not line.startswith("#")]
    streams, *cases = re.split(r"^=== ", "\n".join(lines), flags=re.MULTILINE)
    for case in cases:
        title, body = case.split("\n", 1)
        head, *parts = re.split(r"^--- ?", body, flags=re.MULTILINE)
        words = [line for line in head.splitlines() if line]
        options = tuple(line for line in words if _OPTION.fullmatch(line))
        script = "\n".join(line for line in words if line not in options)
        sections: dict[str, tuple[str, ...]] = {}
        for part in parts:
            name, _, content = part.partition("\n")
            if name in sections:
                raise ValueError(f"{topic}: {title}: two sections {name}")
            sections[name] = tuple(line for line in content.splitlines() if line)
        yield Case(topic, title, streams, script, options, sections)


@cache
def all_cases() -> tuple[Case, ...]:
    return tuple(
        case
        for path in sorted(DIRECTORY.glob("*.txt"))
        for case in parse_file(path.stem, path.read_text(encoding="utf-8"))
    )
