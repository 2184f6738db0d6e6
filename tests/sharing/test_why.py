"""What is said of two queries (golden/why)."""

from pathlib import Path

import pytest
from tests.cql.casefiles import Case, check, parameters

from thalweg.cql import compile_script
from thalweg.plan.catalog import Catalog
from thalweg.sharing.normal import normalise
from thalweg.sharing.why import why

GOLDEN = Path(__file__).parent / "golden" / "why"


def told(text: str, catalog: Catalog) -> str:
    one, other = compile_script(text, catalog).queries
    return "\n".join(why(normalise(one.plan), normalise(other.plan), (one.name, other.name)))


@pytest.mark.parametrize(("path", "case"), parameters(GOLDEN))
def test_what_is_said_of_two_queries_is_on_file(
    path: Path, case: Case, catalog: Catalog, regenerate: bool
) -> None:
    check(path, case, lambda text: told(text, catalog), regenerate)
