"""What nodes use, as a table."""

import json

import httpx
import pytest
from typer.testing import CliRunner

from thalweg.cli.client import Service
from thalweg.cli.main import app

LOADS = [
    {
        "node": "n1",
        "cores": 0.25,
        "fragments": [],
        "is_busy": False,
        "in_bps": 12.0,
        "out_bps": 2.5e6,
        "memory_bytes": 210e6,
        "memory_limit": None,
    },
    {
        "node": "n2",
        "cores": 1.5,
        "fragments": [
            {
                "publication": "pub/#0123456789>n1.2",
                "fragment": "0123456789",
                "cores": 0.5,
                "state_bytes": 4e6,
                "bytes_per_s": 1000.0,
                "reach_s": 40.0,
            }
        ],
        "is_busy": False,
        "in_bps": 3e9,
        "out_bps": 0.0,
        "memory_bytes": 3.7e9,
        "memory_limit": 4e9,
    },
]


@pytest.fixture(autouse=True)
def loads(monkeypatch: pytest.MonkeyPatch) -> None:
    def request(self: Service, method: str, path: str, **_: object) -> httpx.Response:
        assert (method, path) == ("GET", "/network/loads")
        return httpx.Response(200, json=LOADS)

    monkeypatch.setattr(Service, "request", request)


def test_the_busiest_node_comes_first_with_its_fragments() -> None:
    done = CliRunner().invoke(app, ["network", "top"])
    assert done.exit_code == 0, done.output
    _, *rows = (" ".join(line.split()) for line in done.stdout.splitlines())
    assert rows == [
        "n2 1.500 3 Gbit/s 0 bit/s 3,700.0 MB of 4,000.0 MB",
        "0123456789 0.500 8 kbit/s 4.0 MB",
        "n1 0.250 12 bit/s 2.5 Mbit/s 210.0 MB",
    ]


def test_as_json_it_is_a_line_for_each_node() -> None:
    done = CliRunner().invoke(app, ["network", "top", "--json"])
    assert [json.loads(line)["node"] for line in done.stdout.splitlines()] == ["n2", "n1"]
