import subprocess
from pathlib import Path
from xml.etree import ElementTree

import pytest

from scripts import fetch_kafka

NAMES = "{http://maven.apache.org/POM/4.0.0}"


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("THALWEG_JARS", str(tmp_path / "jars"))
    monkeypatch.setattr(fetch_kafka.shutil, "which", lambda _: "/usr/bin/mvn")
    return tmp_path / "jars"


class Maven:
    """Stands in for `mvn`: knows some versions, and copies a jar for each dependency."""

    def __init__(self, *missing: str) -> None:
        self.missing = missing
        self.runs = 0

    def __call__(self, command, **_):
        self.runs += 1
        pom = ElementTree.parse(command[command.index("-f") + 1])
        wanted = [
            tuple(d.find(NAMES + part).text for part in ("artifactId", "version"))
            for d in pom.iter(NAMES + "dependency")
        ]
        if any(f"{name}:{version}" in self.missing for name, version in wanted):
            return subprocess.CompletedProcess(command, 1)
        out = Path(command[-1].removeprefix("-DoutputDirectory="))
        out.mkdir()
        for name, version in wanted:
            (out / f"{name}-{version}.jar").touch()
        return subprocess.CompletedProcess(command, 0)


def test_sparks_own_version_is_taken_where_it_can_be_had(jars: Path, monkeypatch):
    maven = Maven()
    monkeypatch.setattr(fetch_kafka.subprocess, "run", maven)
    assert fetch_kafka.main() == 0
    assert (jars / "kafka-connector" / "spark-sql-kafka-0-10_2.13-4.3.0.jar").exists()
    assert list((jars / "kafka-broker").glob("kafka_2.13-*.jar"))
    fetch_kafka.main()
    assert maven.runs == 2  # what is there is not fetched again


def test_an_older_version_is_taken_where_a_part_is_missing(jars: Path, monkeypatch):
    missing = [f"spark-token-provider-kafka-0-10_2.13:{v}" for v in ("4.3.0", "4.2.0")]
    monkeypatch.setattr(fetch_kafka.subprocess, "run", Maven(*missing))
    fetch_kafka.main()
    names = sorted(p.name for p in (jars / "kafka-connector").iterdir())
    assert "spark-sql-kafka-0-10_2.13-4.2.0.jar" in names
    assert "spark-token-provider-kafka-0-10_2.13-4.0.0.jar" in names


def test_without_maven_nothing_is_fetched_and_nothing_fails(jars: Path, monkeypatch, capsys):
    monkeypatch.setattr(fetch_kafka.shutil, "which", lambda _: None)
    assert fetch_kafka.main() == 0
    assert not jars.exists()
    assert "No Maven" in capsys.readouterr().err
