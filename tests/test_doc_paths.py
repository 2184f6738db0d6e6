"""Every path that the pages name is there: files, folders, links, and the headings they lead to.

A path in backticks is looked for at the root of the repository, beside its page, in the package and
in the shared engine, and in the packages that the same section has named before it. A word in
capitals (`tests/sim/scripts/NAME/`) stands for any name.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "thalweg"
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/**/*.md")])
TESTS = ROOT / "tests"
BASES = (ROOT, ROOT / "src", PACKAGE, PACKAGE / "engine", PACKAGE / "engine" / "shared")

# Paths that are not in the repository: what users have or make, and what set-up makes.
ELSEWHERE = {
    "DIR/QUERY.jsonl",
    "rejects/STREAM.jsonl",
    "some_name.py",
}

_FENCE = re.compile(r"^(```|~~~).*?^\1[ ]*$", re.S | re.M)
_HEADING = re.compile(r"^#{1,6} (.+)$", re.M)
_SPAN = re.compile(r"(?<!`)`((?:[^`\n]|\n(?!\n))+)`(?!`)")  # a span may go on in the next line
_LINK = re.compile(r"\]\(([^)\s]+)\)")
_PATH = re.compile(r"[\w.*-]+(?:/[\w.*-]+)*/?", re.ASCII)
_FILE = re.compile(r"[\w*].*\.(py|md|toml|txt|lock|cql)", re.ASCII)
_WORD = re.compile(r"[a-z][a-z0-9_]*", re.ASCII)
_ANY = re.compile(r"(?<![A-Za-z])[A-Z]{3,}(?![A-Za-z])")


def prose(page: Path) -> str:
    """A page without its examples."""
    return _FENCE.sub("", page.read_text())


def sections(text: str) -> list[str]:
    starts = [0, *(match.start() for match in _HEADING.finditer(text)), len(text)]
    return [text[start:end] for start, end in pairwise(starts)]


def is_path(span: str) -> bool:
    return bool(_PATH.fullmatch(span) and ("/" in span or _FILE.fullmatch(span)))


def find(span: str, bases: list[Path]) -> Path | None:
    """What a path stands for, from the nearest base."""
    for base in bases:
        if (base / span).exists():
            return base / span
        pattern = _ANY.sub("*", span).strip("/")
        if "*" in pattern and (found := next(base.glob(pattern), None)) is not None:
            return found
    return None


def missing_paths(text: str, folder: Path) -> Iterator[str]:
    for section in sections(text):
        bases = [folder, *BASES]
        for span in _SPAN.findall(section):
            if not (is_path(span) or _WORD.fullmatch(span)):
                continue
            found = find(span, bases)
            if found is None:
                if is_path(span) and span not in ELSEWHERE:
                    yield span
            elif found.is_relative_to(PACKAGE) or found.is_relative_to(TESTS):
                place = found if found.is_dir() else found.parent
                bases[:0] = [place, place.parent]


def missing_modules(text: str) -> Iterator[str]:
    """Of names such as `thalweg.plan.functions`: each is a module, or a name in one."""
    for span in _SPAN.findall(text):
        if not re.fullmatch(r"thalweg(\.\w+)+", span):
            continue
        place, rest = PACKAGE, span.split(".")[1:]
        while rest and (place / rest[0]).is_dir():
            place /= rest.pop(0)
        if rest and (place / f"{rest[0]}.py").exists():
            place /= f"{rest.pop(0)}.py"
        source = place / "__init__.py" if place.is_dir() else place
        if rest and not re.search(rf"\b{rest[0]}\b", source.read_text()):
            yield span


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives to a page's headings."""
    titles = (re.sub(r"[^\w\- ]", "", t.lower()) for t in _HEADING.findall(prose(page)))
    return {title.strip().replace(" ", "-") for title in titles}


def dead_links(page: Path) -> Iterator[str]:
    for link in _LINK.findall(prose(page)):
        if re.match(r"\w+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_what_a_page_names_is_there(page: Path) -> None:
    text = prose(page)
    assert [*missing_paths(text, page.parent), *missing_modules(text), *dead_links(page)] == []


@pytest.mark.parametrize(
    "named",
    [
        "`overlay/distribution/coordinating.py`",
        "`distribution` rounds (`overlay/distribution`): `distribution/coordinating.py`",
        "`engine/shared/meetings.py`",
        "`overlay/dissemination`",
        "`meetings.py`",
        "`docs/no-such-page.md`",
        "`tests/no_such_folder/NAME.txt`",
        "`sand` in `overlay`, then another section\n## Next\n`zone_mail.py`",
    ],
)
def test_a_path_that_is_not_there_is_found(named: str) -> None:
    assert len(list(missing_paths(named, ROOT / "docs"))) == 1


def test_a_module_that_is_not_there_is_found() -> None:
    text = "`thalweg.plan.functions` and `thalweg.plan.lifting`, `thalweg.engine.generators`"
    assert list(missing_modules(text)) == ["thalweg.plan.lifting"]


def test_a_link_that_leads_nowhere_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# A title\n[a](#a-title), [b](#b), [c](page.md#a-title), [d](other.md)\n")
    assert list(dead_links(page)) == ["#b", "other.md"]


def test_the_index_lists_every_page() -> None:
    index = ROOT / "docs" / "README.md"
    listed = {(index.parent / link).resolve() for link in _LINK.findall(prose(index))}
    pages = {page for page in ROOT.glob("docs/**/*.md") if page.parent.name != "experiments"}
    assert pages - listed == {index}


def test_nothing_is_passed_over_in_vain() -> None:
    named = {span for page in PAGES for span in _SPAN.findall(prose(page))}
    assert named >= ELSEWHERE
