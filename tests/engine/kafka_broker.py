"""A real Kafka broker on loopback, in KRaft mode: started by tests, stopped by its process id."""

from __future__ import annotations

import base64
import shutil
import socket
import subprocess
import time
import uuid
from pathlib import Path

from thalweg.engine.jars import broker_jars, jar_folder

_SETTINGS = """process.roles=broker,controller
node.id=1
controller.quorum.voters=1@127.0.0.1:{controller}
listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}
advertised.listeners=PLAINTEXT://127.0.0.1:{port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT
log.dirs={logs}
offsets.topic.replication.factor=1
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
group.initial.rebalance.delay.ms=0
"""


class Broker:
    def __init__(self, folder: Path) -> None:
        self.port, controller = _free_port(), _free_port()
        logs = folder / "logs"
        logs.mkdir(parents=True)
        # What `kafka-storage format` would write: a cluster, and the folder's place in it.
        (logs / "meta.properties").write_text(
            f"version=1\ncluster.id={_id()}\nnode.id=1\ndirectory.id={_id()}\n"
        )
        settings = folder / "server.properties"
        settings.write_text(_SETTINGS.format(port=self.port, controller=controller, logs=logs))
        self._said, self._settings = folder / "said.txt", settings
        self._start()

    def _start(self) -> None:
        classes = jar_folder() / "kafka-broker" / "*"
        with self._said.open("ab") as said:
            self._process = subprocess.Popen(
                [
                    "java",
                    "-Xmx256m",
                    "-XX:TieredStopAtLevel=1",
                    "-cp",
                    classes,
                    "kafka.Kafka",
                    self._settings,
                ],
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    @property
    def server(self) -> str:
        return f"127.0.0.1:{self.port}"

    def wait(self, seconds: float = 60) -> None:
        until = time.monotonic() + seconds
        while self._process.poll() is None and time.monotonic() < until:
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.1)
        self.stop()
        raise RuntimeError(f"the broker did not start: {self._said.read_text()[-2000:]}")

    def restart(self) -> None:
        """As after a crash: with all that it had made durable."""
        self.stop()
        self._start()
        self.wait()

    def stop(self) -> None:
        self._process.kill()
        self._process.wait(30)


def missing() -> str | None:
    """Why there can be no broker here."""
    if not broker_jars():
        return "no Kafka broker: its jars have not been fetched (make kafka, with Maven)"
    return None if shutil.which("java") else "no Kafka broker: there is no java"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _id() -> str:
    return base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
