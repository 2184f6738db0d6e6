"""The catalog that golden cases are written over."""

from pathlib import Path

import pytest

from thalweg.cql import compile_script
from thalweg.plan.catalog import Catalog

SCHEMA = Path(__file__).parents[1] / "cql" / "schema.cql"


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return compile_script(SCHEMA.read_text(), name=str(SCHEMA)).catalog
