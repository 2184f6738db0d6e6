"""Messages have one voice: what is wrong and what to do, in plain words, without a full stop unless
there are several sentences."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "thalweg"
PLACES = ("cql", "plan/functions.py", "plan/aggregates.py", "engine", "api", "cli")
RAISED = re.compile(
    r"Mistake|WrongUse|SiteError|Forgotten|BadRequest|CommandFailed|SinkError|SourceError|IngestError"
    r"|CannotReplace|StoreError|PathRefused|NotKept|TypeMismatch|NameTaken|problem|warn|complain|note"
)
# Words that blame, plead, or say nothing, and forms that only few understand.
BANNED = re.compile(
    r"\b(invalid|illegal|please|sorry|cannot|unable to|failed to|must not be|bad input|oops"
    r"|unexpected error|something went wrong|(?<!there )is no (?!longer)\w+)\b",
    re.IGNORECASE,
)
LONGEST = 260


def said(node: ast.expr) -> str | None:
    """A text with … in place of what is put in."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(v.value if isinstance(v, ast.Constant) else "…" for v in node.values)  # type: ignore[misc]
    return None


def messages() -> Iterator[tuple[str, str]]:
    """(place, text) of all that users are told."""
    for place in PLACES:
        path = SOURCE / place
        for file in sorted(path.rglob("*.py")) if path.is_dir() else [path]:
            for node in ast.walk(ast.parse(file.read_text())):
                found: list[ast.expr] = []
                if isinstance(node, ast.Call):
                    name = ast.unparse(node.func).rpartition(".")[2]
                    found = node.args if RAISED.fullmatch(name) else []
                elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    found = [node.value] if node.targets[0].id in ("message", "hint") else []
                for text in filter(None, map(said, found)):
                    yield f"{file.relative_to(SOURCE)}:{node.lineno}", text


@pytest.fixture(scope="module")
def told() -> list[tuple[str, str]]:
    return list(messages())


def test_there_are_messages(told: list[tuple[str, str]]) -> None:
    assert len(told) > 300


@pytest.mark.parametrize("rule", ["words", "ends", "begins", "length"])
def test_messages_have_one_voice(rule: str, told: list[tuple[str, str]]) -> None:
    wrong = []
    for place, text in told:
        sentences = re.split(r"[.] (?=[A-Z`…])", text)
        broken = {
            "words": BANNED.search(text) is not None,
            "ends": text.endswith(".") and len(sentences) == 1 and " " in text,
            "begins": text[:1].isupper() and text.split()[0].strip(",:'’s") not in UPPER,
            "length": len(text) > LONGEST,
        }
        if broken[rule]:
            wrong.append(f"{place}: {text}")
    assert wrong == []


# Words of the language and names, which stand as they are.
UPPER = {
    *(
        "CREATE",
        "TOLERANCE",
        "DROP",
        "DATE",
        "TIMESTAMP",
        "INTERVAL",
        "GROUP",
        "ORDER",
        "HAVING",
        "LIMIT",
        "WITH",
    ),
    *("IF", "IN", "INSERT", "DELETE", "EXPLAIN", "EXTRACT", "ROUND", "JOIN", "LATENESS", "RETAIN"),
    *("RESOLUTION", "REFRESH", "PRIMARY", "OR", "ROUND's", "Partition", "THALWEG_WAIT_S", "MIN"),
    *("Thalweg", "RSTREAM", "ISTREAM"),
}
