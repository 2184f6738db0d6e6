"""Mistakes and the exact messages they get (errors/*.txt)."""

from pathlib import Path

import pytest
from tests.cql.casefiles import Case, check, parameters

from thalweg.cql import CqlError, compile_script
from thalweg.plan.catalog import Catalog

HERE = Path(__file__).parent


@pytest.mark.parametrize(("path", "case"), parameters(HERE / "errors"))
def test_a_mistake_gets_the_message_on_file(
    path: Path, case: Case, catalog: Catalog, regenerate: bool
) -> None:
    def message(text: str) -> str:
        with pytest.raises(CqlError) as caught:
            compile_script(text, catalog, name="q.cql")
        return str(caught.value)

    check(path, case, message, regenerate)
