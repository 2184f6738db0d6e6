"""Case files: a title line `# …`, a text, a line `----`, and what is expected of the text.

    # a title
    SELECT …
    ----
    what it gives

`pytest tests/cql --regenerate-golden` writes what the code gives now into the files; read the diff
before it is committed.
"""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

DIVIDER = "----"


@dataclass(frozen=True)
class Case:
    title: str
    text: str
    expected: str


def load(path: Path) -> list[Case]:
    cases = []
    for chunk in ("\n" + path.read_text()).split("\n# ")[1:]:
        head, _, expected = chunk.partition(f"\n{DIVIDER}\n")
        title, _, text = head.partition("\n")
        cases.append(Case(title.strip(), text.strip("\n"), expected.strip("\n")))
    return cases


def save(path: Path, cases: list[Case]) -> None:
    chunks = [f"# {c.title}\n{c.text}\n{DIVIDER}\n{c.expected}\n" for c in cases]
    path.write_text("\n".join(chunks))


def parameters(folder: Path) -> list[object]:
    """All cases of a folder's files, for parametrize."""
    return [
        pytest.param(path, case, id=f"{path.stem}: {case.title}")
        for path in sorted(folder.glob("*.txt"))
        for case in load(path)
    ]


def check(path: Path, case: Case, actual: Callable[[str], str], regenerate: bool) -> None:
    found = actual(case.text)
    if regenerate:
        cases = [
            Case(c.title, c.text, found) if (c.title, c.text) == (case.title, case.text) else c
            for c in load(path)
        ]
        save(path, cases)
    else:
        assert found == case.expected
