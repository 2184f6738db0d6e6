"""Set-up for all tests: Spark's workers, hypothesis profiles, and the option for golden files."""

import os
import sys
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings
from tests.drawn import examples

# Spark starts its workers by name: without this they may run another Python than the tests.
os.environ["PYSPARK_PYTHON"] = sys.executable
os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
# Another Spark on this machine must not be picked up instead of the locked one.
os.environ.pop("SPARK_HOME", None)
os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"

# Derandomised, so that a red run is red again; no deadline, because Spark's first job is slow.
settings.register_profile("suite", derandomize=True, deadline=None, max_examples=examples(15))
settings.load_profile("suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    help_text = "write what the code gives now into the golden files"
    parser.addoption("--regenerate-golden", action="store_true", help=help_text)


# Tests that start Spark, other processes or a broker, and so want the machine for themselves.
_HEAVY = (
    "bench",
    "cli",
    "engine/native",
    "engine/sinks",
    "engine/sources",
    "engine/test_session.py",
    "engine/shared/test_crash.py",
    "engine/shared/test_on_spark.py",
    "engine/shared/tick/test_on_residents.py",
    "first_hour/test_readme.py",
    "runtime/trust/test_guarded_network.py",
    "runtime/test_processes.py",
    "test_docs.py",
)
_HEAVY_FIXTURES = {"spark", "broker"}


@cache
def _is_heavy(file: Path) -> bool:
    return file.relative_to(Path(__file__).parent).as_posix().startswith(_HEAVY)


def pytest_itemcollected(item: pytest.Item) -> None:
    if _is_heavy(item.path) or _HEAVY_FIXTURES & set(getattr(item, "fixturenames", ())):
        item.add_marker(pytest.mark.heavy)


@pytest.fixture
def regenerate(request: pytest.FixtureRequest) -> bool:
    # Where no path under tests/ is on the command line, this file is read too late for the option.
    return bool(request.config.getoption("--regenerate-golden", default=False))
