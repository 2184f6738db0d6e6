"""Normal forms, representatives and profiles as EXPLAIN prints them (golden/*)."""

from pathlib import Path

import pytest
from tests.cql.casefiles import Case, check, parameters

from thalweg.cql import compile_script
from thalweg.plan.catalog import Catalog
from thalweg.sharing.core import NormalQuery, NotNormal
from thalweg.sharing.normal import normalise
from thalweg.sharing.profile import profile
from thalweg.sharing.representative import representative
from thalweg.sharing.text import above_text, core_text, profile_text, representative_text

GOLDEN = Path(__file__).parent / "golden"


def described(text: str, catalog: Catalog) -> str:
    (query,) = compile_script(f"{text};", catalog).queries
    found = normalise(query.plan)
    if isinstance(found, NotNormal):
        return f"no normal form: {found.reason}"
    return "\n".join(part for part in (core_text(found.core), above_text(found)) if part)


def group_described(text: str, catalog: Catalog) -> str:
    script = compile_script(text, catalog)
    queries = {q.name: normalise(q.plan) for q in script.queries}
    members = {name: q for name, q in queries.items() if isinstance(q, NormalQuery)}
    assert members.keys() == queries.keys()
    rep = representative(q.core for q in members.values())
    lines = ["representative", *_indented(representative_text(rep))]
    for name, query in members.items():
        lines += [f"profile of {name}", *_indented(profile_text(profile(query.core, rep), rep))]
        lines += _indented(above_text(query))
    return "\n".join(lines)


def _indented(text: str) -> list[str]:
    return [f"  {line}" for line in text.splitlines()]


@pytest.mark.parametrize(("path", "case"), parameters(GOLDEN / "normal"))
def test_a_query_has_the_normal_form_on_file(
    path: Path, case: Case, catalog: Catalog, regenerate: bool
) -> None:
    check(path, case, lambda text: described(text, catalog), regenerate)


@pytest.mark.parametrize(("path", "case"), parameters(GOLDEN / "groups"))
def test_queries_have_the_representative_and_profiles_on_file(
    path: Path, case: Case, catalog: Catalog, regenerate: bool
) -> None:
    check(path, case, lambda text: group_described(text, catalog), regenerate)
