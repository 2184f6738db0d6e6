"""Fetches Spark's Kafka connector, and a broker for the tests, by their Maven names.

They go to the folder that `thalweg.engine.jars` looks in. Ends with 0 where all is there, or where
nothing can be had (no Maven, no network): Kafka is optional, and who needs it is told then.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from thalweg.engine.jars import jar_folder

SCALA = "2.13"
SPARK = "org.apache.spark"
TIMEOUT_S = 600

# The connector of Spark's own version first. An older one works too, and is taken where a
# repository does not have the new one; its parts are then found one by one.
CONNECTORS = (
    {"connector": "4.3.0", "tokens": "4.3.0", "clients": "3.9.2", "pool": "2.13.1"},
    {"connector": "4.2.0", "tokens": "4.2.0", "clients": "3.9.2", "pool": "2.13.1"},
    {"connector": "4.2.0", "tokens": "4.0.0", "clients": "3.9.2", "pool": "2.13.1"},
)
BROKER = "3.9.2"

_POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>thalweg</groupId>
  <artifactId>jars</artifactId>
  <version>1</version>
  <dependencies>{dependencies}</dependencies>
</project>
"""
_DEPENDENCY = """
    <dependency>
      <groupId>{group}</groupId>
      <artifactId>{artifact}</artifactId>
      <version>{version}</version>{exclusions}
    </dependency>"""
# Spark has the rest already. Its POMs also name repositories of their own, which need not answer.
_ALONE = """
      <exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion></exclusions>"""


def dependency(group: str, artifact: str, version: str, *, alone: bool) -> str:
    exclusions = _ALONE if alone else ""
    return _DEPENDENCY.format(
        group=group, artifact=artifact, version=version, exclusions=exclusions
    )


def connector(versions: dict[str, str]) -> str:
    return "".join(
        dependency(group, artifact, version, alone=True)
        for group, artifact, version in (
            (SPARK, f"spark-sql-kafka-0-10_{SCALA}", versions["connector"]),
            (SPARK, f"spark-token-provider-kafka-0-10_{SCALA}", versions["tokens"]),
            ("org.apache.kafka", "kafka-clients", versions["clients"]),
            ("org.apache.commons", "commons-pool2", versions["pool"]),
        )
    )


def broker() -> str:
    return dependency("org.apache.kafka", f"kafka_{SCALA}", BROKER, alone=False) + dependency(
        "org.slf4j", "slf4j-nop", "1.7.36", alone=False
    )


def fetch(dependencies: str, folder: Path) -> bool:
    """Copy the jars into a new folder; whether that worked. Half a set never counts."""
    with tempfile.TemporaryDirectory() as scratch:
        pom = Path(scratch) / "pom.xml"
        pom.write_text(_POM.format(dependencies=dependencies))
        jars = Path(scratch) / "jars"
        command = ["mvn", "-q", "-B", "-f", pom, "dependency:copy-dependencies"]
        command += ["-DincludeScope=runtime", f"-DoutputDirectory={jars}"]
        try:
            run = subprocess.run(command, capture_output=True, timeout=TIMEOUT_S, check=False)
        except (OSError, subprocess.TimeoutExpired):
            return False
        if run.returncode != 0:
            return False
        folder.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(jars, folder.with_suffix(".partial"), dirs_exist_ok=True)
        folder.with_suffix(".partial").rename(folder)
        return True


def main() -> int:
    wanted = {
        "kafka-connector": [connector(versions) for versions in CONNECTORS],
        "kafka-broker": [broker()],
    }
    for name, candidates in wanted.items():
        folder = jar_folder() / name
        if folder.is_dir():
            continue
        if shutil.which("mvn") is None:
            print(f"No Maven: {name} is not fetched, and Kafka can't be used.", file=sys.stderr)
            return 0
        print(f"Fetching {name} into {folder.parent} ...", file=sys.stderr)
        if not any(fetch(dependencies, folder) for dependencies in candidates):
            print(f"{name} can't be had from here: Kafka can't be used.", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
