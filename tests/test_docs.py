"""What the pages for users show is what happens."""

import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.api.conftest import LiveService
from typer.testing import CliRunner

from thalweg.cli.main import app

DOCS = Path(__file__).parents[1] / "docs"


def blocks(page: str, language: str) -> list[str]:
    text = (DOCS / page).read_text()
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.S | re.M)


def steps(page: str) -> Iterator[tuple[str, str]]:
    """Every command of a page's console blocks, and what it prints."""
    for block in blocks(page, "console"):
        for step in block.split("\n$ ") if block.startswith("$ ") else []:
            command, _, output = step.removeprefix("$ ").partition("\n")
            yield command, output.strip("\n")


def agrees(shown: str, found: str) -> bool:
    """Equal, but for … in the page."""
    pattern = ".*".join(re.escape(part) for part in shown.split("…"))
    return re.fullmatch(pattern, found.strip("\n"), re.S) is not None


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LiveService]:
    monkeypatch.chdir(tmp_path)
    for command, shown in steps("cli.md"):
        if command.startswith("cat "):
            Path(command.removeprefix("cat ")).write_text(shown + "\n")
    live = LiveService(tmp_path / "data")
    yield live
    live.close()


def test_the_commands_page(service: LiveService) -> None:
    ran = 0
    for command, shown in steps("cli.md"):
        program, *arguments = shlex.split(command)
        if program == "cat":
            assert Path(arguments[0]).read_text().strip() == shown
            continue
        done = CliRunner().invoke(app, arguments, env={"THALWEG_URL": service.url})
        service.site.settle()
        said = done.stdout or done.stderr
        assert agrees(shown, said), f"{command} prints\n{said}"
        ran += 1
    assert ran >= 10


@pytest.mark.skipif(shutil.which("curl") is None, reason="the page uses curl, which is not here")
def test_the_service_page(service: LiveService) -> None:
    ran = 0
    for command, shown in steps("service.md"):
        address = service.url.removeprefix("http://")
        arguments = shlex.split(command.replace("localhost:7341", address))
        done = subprocess.run(
            [*arguments, "--noproxy", "*"], capture_output=True, text=True, timeout=120, check=True
        )
        service.site.settle()
        assert agrees(shown, done.stdout), f"{command} prints\n{done.stdout}"
        ran += 1
    assert ran >= 6
    events = f"{service.url}/queries/hot/results"
    listening = ["curl", "-sN", "--noproxy", "*", "--max-time", "2", events]
    heard = subprocess.run(listening, capture_output=True, text=True, timeout=120, check=False)
    page = (DOCS / "service.md").read_text()
    example = re.search(r"As server-sent events:\n\n((?:    .*\n|\n)+)", page)
    assert example is not None
    for event in textwrap.dedent(example[1]).strip().split("\n\n"):
        assert f"{event}\n\n" in heard.stdout


def test_the_python_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    code = "\n".join(blocks("python.md", "python")).replace('"local[2]"', '"in-process"')
    exec(compile(code, "docs/python.md", "exec"), {})
    printed = capsys.readouterr().out.splitlines()
    shown = [line.removeprefix("# ") for line in code.splitlines() if line.startswith("# ")]
    assert printed[: len(shown)] == shown
    assert len(shown) == 3
    assert "Aggregate MAX(celsius) by sensor" in "\n".join(printed)


def test_the_first_query_of_the_readme(service: LiveService) -> None:
    """Its commands, as a shell would take them, give a row."""
    readme = (DOCS.parent / "README.md").read_text()
    script = re.search(r"^    thalweg dev.*?\n(.*?)^    thalweg results hot$", readme, re.S | re.M)
    assert script is not None
    command = [sys.executable, "-m", "thalweg.cli"]
    shell = f'thalweg() {{ {shlex.join(command)} "$@"; }}\n' + script[1]
    environment = {**os.environ, "THALWEG_URL": service.url}
    subprocess.run(["bash", "-ec", shell], env=environment, timeout=300, check=True)
    service.site.settle()
    done = CliRunner().invoke(app, ["results", "hot"], env={"THALWEG_URL": service.url})
    assert done.stdout == "1  +  sensor=roof  peak=31.0\n62  -  sensor=roof  peak=31.0\n"


def test_the_page_on_peers() -> None:
    ran = 0
    for command, shown in steps("peers.md"):
        program, *arguments = shlex.split(command)
        assert program == "thalweg"
        done = CliRunner().invoke(app, arguments)
        assert done.exit_code == 0, done.output
        assert agrees(shown, done.stdout), done.stdout
        ran += 1
    assert ran
