"""docs/sharing.md: its queries are shared as it says, and its texts are the real ones."""

import re
from pathlib import Path

import pytest
from tests.sharing.test_text import group_described
from tests.sharing.test_why import told

from thalweg.cql import compile_script
from thalweg.plan.catalog import Catalog
from thalweg.sharing.core import NormalQuery, NotNormal
from thalweg.sharing.normal import normalise

PAGE = (Path(__file__).parents[2] / "docs" / "sharing.md").read_text()
FENCES = re.findall(r"^```([a-z ]*)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(scope="module")
def page_catalog() -> Catalog:
    return compile_script("\n".join(body for info, body in FENCES if info == "cql")).catalog


def followed(kind: str) -> list[tuple[str, str]]:
    """Each block of a kind, and the text block after it."""
    return [
        (body, FENCES[place + 1][1].rstrip("\n"))
        for place, (info, body) in enumerate(FENCES)
        if info == f"cql {kind}"
    ]


def test_representatives_and_profiles_are_the_real_ones(page_catalog: Catalog) -> None:
    shown = followed("group")
    assert len(shown) == 2
    for text, expected in shown:
        assert group_described(text, page_catalog) == expected


def test_reasons_are_the_real_ones(page_catalog: Catalog) -> None:
    ((text, expected),) = followed("why")
    assert told(text, page_catalog) == expected


def test_what_is_called_the_same_is_the_same(page_catalog: Catalog) -> None:
    (text,) = (body for info, body in FENCES if info == "cql same")
    one, other = (normalise(q.plan) for q in compile_script(text, page_catalog).queries)
    assert isinstance(one, NormalQuery)
    assert isinstance(other, NormalQuery)
    assert (one.core, one.above) == (other.core, other.above)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT volume FROM Trade [Rows 5]",
        "RSTREAM (SELECT volume FROM Trade [Now])",
        "SELECT volume FROM Trade [Now] UNION SELECT volume FROM Trade [Range 5]",
        "SELECT a.volume FROM Trade [Now] a LEFT JOIN Trade [Now] b ON a.volume = b.volume",
        "SELECT volume FROM Trade [Now] WHERE volume IN (SELECT volume FROM Trade [Range 5])",
        "SELECT volume FROM (ISTREAM (SELECT volume FROM Trade [Now])) [Range 5]",
    ],
)
def test_what_shares_windows_only_has_no_normal_form(text: str, page_catalog: Catalog) -> None:
    (query,) = compile_script(f"{text};", page_catalog).queries
    assert isinstance(normalise(query.plan), NotNormal)
