"""A service for the commands to talk to, and a way to run them."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.api.conftest import LiveService
from typer.testing import CliRunner, Result

from thalweg.cli.main import app

Run = Callable[..., Result]


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands do not wait for a service that will never come."""
    monkeypatch.setenv("THALWEG_WAIT_S", "0")


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LiveService]:
    live = LiveService(tmp_path / "data")
    yield live
    live.close()


@pytest.fixture
def run(service: LiveService) -> Run:
    def run_(*arguments: str, **options: object) -> Result:
        return CliRunner().invoke(app, arguments, env={"THALWEG_URL": service.url}, **options)  # type: ignore[arg-type]

    return run_
