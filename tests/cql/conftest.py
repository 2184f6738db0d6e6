"""The option that rewrites golden files, and the catalog that their cases are written over."""

from pathlib import Path

import pytest

from thalweg.cql import compile_script
from thalweg.plan.catalog import Catalog

SCHEMA = Path(__file__).parent / "schema.cql"


def pytest_addoption(parser: pytest.Parser) -> None:
    help_text = "write what the code gives now into the golden files"
    parser.addoption("--regenerate-golden", action="store_true", help=help_text)


@pytest.fixture
def regenerate(request: pytest.FixtureRequest) -> bool:
    # Without tests/cql on the command line this file is read too late to add the option.
    return bool(request.config.getoption("--regenerate-golden", default=False))


@pytest.fixture(scope="session")
def catalog() -> Catalog:
    return compile_script(SCHEMA.read_text(), name=str(SCHEMA)).catalog
