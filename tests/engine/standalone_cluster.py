"""A real standalone cluster on loopback: a master and two workers of one core, which Spark takes
for two machines. Started by tests, stopped by process id."""

from __future__ import annotations

import os
import socket
import subprocess
import time
from pathlib import Path

import pyspark

HOSTS = ("127.0.0.1", "127.0.0.2")


class StandaloneCluster:
    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        port = _free_port()
        self.master = f"spark://127.0.0.1:{port}"
        self._start("127.0.0.1", "master", "Master", "--port", str(port))
        _wait_for("127.0.0.1", port)
        for host in HOSTS:
            work = folder / f"work-{host}"
            size = ("--cores", "1", "--memory", "1g", "--work-dir", str(work))
            self._start(host, "worker", "Worker", *size, self.master)

    def _start(self, host: str, package: str, name: str, *arguments: str) -> None:
        home = Path(pyspark.__file__).parent
        # What Spark's own scripts would set.
        settings = {"SPARK_HOME": str(home), "SPARK_SCALA_VERSION": "2.13", "SPARK_LOCAL_IP": host}
        with (self._folder / f"{name}-{len(self._processes)}.txt").open("wb") as said:
            self._processes.append(
                subprocess.Popen(
                    [
                        "java",
                        "-Xmx256m",
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        f"{home}/jars/*",
                        f"org.apache.spark.deploy.{package}.{name}",
                        "--host",
                        host,
                        "--webui-port",
                        "0",
                        *arguments,
                    ],
                    stdout=said,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, **settings},
                )
            )

    @property
    def processes(self) -> list[int]:
        return [p.pid for p in self._processes]

    def stop(self) -> None:
        """Workers end their executors when they are asked to stop."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(host: str, port: int, seconds: float = 60) -> None:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            socket.create_connection((host, port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise TimeoutError(f"nobody listens at {host}:{port}")
