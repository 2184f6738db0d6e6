"""A network of processes with certificates and users, attacked from outside."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.api.access.serving import Known
from tests.runtime.waiting import eventually
from typer.testing import CliRunner

from thalweg.cli.main import app
from thalweg.cli.network.running import Running, Wanted, start, stop
from thalweg.engine.site import IN_PROCESS
from thalweg.runtime.data.client import DataClient, NotServed, Unreachable
from thalweg.runtime.data.messages import Close, Open, Read
from thalweg.runtime.transport.addresses import host_and_port
from thalweg.runtime.transport.frames import VERSION, Hello, Refused, greeting, read_answer
from thalweg.runtime.trust import Credentials, Limits, Role, issue, make_authority

pytestmark = pytest.mark.heavy

BIDS = "CREATE STREAM Bids (item BIGINT) TIMESTAMP BY ts BIGINT"
NAMES = ("paris", "lyon")


@dataclass
class Guarded:
    folder: Path
    known: Known
    nodes: dict[str, Running]

    def credentials(self, node: str) -> Credentials:
        return Credentials.of(self.folder / "certificates", node)

    @property
    def authority(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=self.credentials("paris").authority)

    def ask(
        self, node: str, who: str | None, method: str, path: str, **options: Any
    ) -> httpx.Response:
        url = self.nodes[node].url + path
        headers = self.known.headers(who) if who is not None else {}
        with httpx.Client(verify=self.authority, trust_env=False, timeout=120) as client:
            return client.request(method, url, headers=headers, **options)

    def cql(self, node: str, who: str, text: str) -> httpx.Response:
        return self.ask(node, who, "POST", "/queries", json={"cql": text})

    def data(self, node: str) -> str:
        found = self.ask(node, "olga", "GET", "/network").json()["nodes"]
        return str(next(n["data"] for n in found if n["name"] == node))


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    certificates = folder / "certificates"
    arguments = [a for name in NAMES for a in ("--node", f"{name}=127.0.0.1")]
    done = CliRunner().invoke(app, ["network", "certificates", str(certificates), *arguments])
    assert done.exit_code == 0, done.output
    known = Known(folder / "users.json")
    known.add("anna")
    known.add("ben", limits=Limits(queries=1, rows_per_s=5))
    known.add("olga", Role.OPERATE)
    made = Guarded(folder, known, {})
    more = ["--certificates", str(certificates), "--users", str(known.file.path)]
    try:
        for name in NAMES:
            join = [n.address for n in made.nodes.values()]
            wanted = Wanted(name, master=IN_PROCESS)
            made.nodes[name] = start(wanted, folder, join, [*more, "--tick-interval-ms", "5"])
        assert made.cql("paris", "anna", BIDS).status_code == 201
        eventually(lambda: len(made.ask("lyon", "anna", "GET", "/streams").json()) == 1)
        mine = "CREATE QUERY mine AS SELECT * FROM Bids [Now] WHERE item > 5"
        assert made.cql("lyon", "anna", mine).status_code == 201
        yield made
    finally:
        assert stop(list(made.nodes.values())) == []


def test_all_works_over_tls_with_the_users_own_token(network: Guarded) -> None:
    rows = [{"ts": 1, "item": 7}, {"ts": 2, "item": 1}, {"ts": 3, "item": 8}, {"ts": 4, "item": 0}]
    assert all(n.url.startswith("https://") for n in network.nodes.values())
    answer = network.ask("lyon", "anna", "POST", "/streams/Bids/tuples", json=rows)
    assert answer.status_code == 200, answer.text
    path = "/queries/mine/results?format=json"

    def said() -> list[int]:
        found = network.ask("paris", "anna", "GET", path).json()["rows"]
        return [r["row"]["item"] for r in found if r["op"] == "+"]

    eventually(lambda: said() == [7, 8])
    overview = network.ask("paris", "anna", "GET", "/network").json()["nodes"]
    assert [n["answers"] for n in overview] == [True, True]


def test_a_nodes_judgement_is_its_own_also_of_requests_that_are_passed_on(network: Guarded) -> None:
    assert network.ask("paris", None, "GET", "/queries").status_code == 401
    assert network.ask("paris", "ben", "DELETE", "/queries/mine").status_code == 403
    assert network.cql("paris", "ben", "DROP QUERY mine").status_code == 403
    here = {"thalweg-here": "1", **network.known.headers("ben")}
    url = network.nodes["paris"].url
    with httpx.Client(verify=network.authority, trust_env=False) as client:
        # What a node keeps for another is no user's affair, whichever way it is asked for.
        (kept,) = client.get(f"{url}/network/publications", headers=here).json()
        body = {"cql": f'DROP QUERY "{kept}"'}
        assert client.post(f"{url}/queries", headers=here, json=body).status_code == 422
    rows = [{"ts": 5, "item": n} for n in range(5)]
    push = ("POST", "/streams/Bids/tuples")
    assert network.ask("lyon", "ben", *push, json=rows).status_code == 200
    refused = network.ask("lyon", "ben", *push, json=rows)
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "1")
    one, two = (f"CREATE QUERY b{n} AS SELECT * FROM Bids [Now]" for n in (1, 2))
    assert network.cql("lyon", "ben", one).status_code == 201
    assert network.cql("lyon", "ben", two).status_code == 403
    assert network.cql("paris", "ben", "DROP QUERY b1").status_code == 201


def test_a_request_is_passed_on_to_the_node_that_is_meant_and_nowhere_else(
    network: Guarded,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as elsewhere:
        path = f"//127.0.0.1:{elsewhere.getsockname()[1]}/queries"
        headers = {"thalweg-at": "paris", **network.known.headers("anna")}
        with httpx.Client(verify=network.authority, trust_env=False, timeout=120) as client:
            answer = client.get(network.nodes["lyon"].url + path, headers=headers)
            assert answer.status_code == 404
        elsewhere.settimeout(0.2)
        with pytest.raises(TimeoutError):
            elsewhere.accept()
    found = network.ask("lyon", "anna", "GET", "/streams/Bids?x=1")
    assert (found.status_code, found.json()["name"]) == (200, "Bids")


def test_the_command_shows_its_token_and_looks_for_the_authority(network: Guarded) -> None:
    authority = str(network.credentials("paris").authority)
    env = {"THALWEG_URL": network.nodes["lyon"].url, "THALWEG_TOKEN": network.known.tokens["anna"]}
    run = CliRunner().invoke
    done = run(app, ["ps", "--json"], env={**env, "THALWEG_CA": authority})
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout.splitlines()[0])["name"] == "mine"
    without = {**env, "THALWEG_CA": authority, "THALWEG_TOKEN": ""}
    assert run(app, ["ps"], env=without).exit_code == 2
    assert (
        run(app, ["ps"], env={**env, "THALWEG_WAIT_S": "0"}).exit_code == 3
    )  # an unknown authority
    plain = {**env, "THALWEG_URL": "http://node.example:7341"}
    assert run(app, ["ps"], env=plain).exit_code == 2


def foreign(network: Guarded) -> Credentials:
    folder = network.folder / "foreign"
    if not folder.exists():
        make_authority(folder, "thalweg")
        issue(folder, "lyon", ["127.0.0.1"])
    return Credentials.of(folder, "lyon")


def test_a_certificate_of_another_authority_opens_nothing(network: Guarded) -> None:
    theirs = foreign(network)
    context = network.authority
    context.load_cert_chain(theirs.certificate, theirs.key)
    headers = network.known.headers("olga")
    with httpx.Client(verify=context, trust_env=False) as client, pytest.raises(httpx.HTTPError):
        client.get(network.nodes["paris"].url + "/queries", headers=headers)
    own = network.credentials("lyon").for_flight_client("paris")
    shown = {**theirs.for_flight_client("paris"), "tls_root_certs": own["tls_root_certs"]}
    reader = DataClient(network.data("paris"), **shown)
    with pytest.raises(Unreachable):
        reader.ask(Open("Bids", "lyon", 99, 0))
    address = network.nodes["paris"].address
    with pytest.raises((Refused, ssl.SSLError, OSError)):
        asyncio.run(_greet(address, context, Hello("thalweg", "127.0.0.1:1", address, VERSION)))


def test_a_node_cant_speak_for_another(network: Guarded) -> None:
    lyon, paris = network.credentials("lyon"), network.data("paris")
    client = DataClient(paris, **lyon.for_flight_client("paris"))
    with pytest.raises(NotServed, match="certificate is that of lyon"):
        client.ask(Open("Bids", "rome", 1, 0))
    with pytest.raises(NotServed, match="certificate is that of lyon"):
        client.ask(Close("pub/Bids>rome.1"))
    with pytest.raises(NotServed, match="certificate is that of lyon"):
        list(client.read(Read("pub/Bids>rome.1", 0)))
    client.close()
    with pytest.raises(Unreachable):  # and nobody takes paris for lyon
        DataClient(paris, **lyon.for_flight_client("lyon")).ask(Open("Bids", "lyon", 99, 0))
    address = network.nodes["paris"].address
    hello = Hello("thalweg", "10.0.0.9:7600", address, VERSION)
    with pytest.raises(Refused, match=r"the certificate of 10\.0\.0\.9"):
        asyncio.run(_greet(address, lyon.tls().client, hello))


def test_a_recorded_request_without_a_certificate_is_worth_nothing(network: Guarded) -> None:
    paris = network.data("paris")
    authority = network.credentials("lyon").authority.read_bytes()
    kept = network.ask("paris", "olga", "GET", "/network/publications").json()
    publication = kept[-1]
    for options in ({"tls_root_certs": authority}, {}):
        client = DataClient(paris, **options)
        with pytest.raises(Unreachable):
            list(client.read(Read(publication, 0)))
        with pytest.raises(Unreachable):
            client.ask(Close(publication))
    still = network.ask("paris", "olga", "GET", "/network/publications").json()
    assert publication in still


def test_plain_text_is_not_understood(network: Guarded) -> None:
    node = network.nodes["paris"]
    with pytest.raises(httpx.TransportError):
        httpx.get(node.url.replace("https", "http") + "/queries", trust_env=False)
    for address in (node.address, network.data("paris")):
        with socket.create_connection(host_and_port(address), timeout=10) as plain:
            plain.sendall(greeting(Hello("thalweg", "127.0.0.1:1", node.address, VERSION)))
            plain.settimeout(10)
            try:
                told = plain.recv(4096)
            except ConnectionResetError:
                told = b""
        assert b"Welcome" not in told
        assert b"Sorry" not in told  # not even that it is a node


async def _greet(address: str, context: ssl.SSLContext, hello: Hello) -> None:
    host, port = host_and_port(address)
    reader, writer = await asyncio.open_connection(host, port, ssl=context)
    try:
        writer.write(greeting(hello))
        await asyncio.wait_for(read_answer(reader), 10)
    finally:
        writer.transport.abort()


def test_fragments_are_opened_computed_and_read_over_tls(network: Guarded) -> None:
    sold = BIDS.replace("Bids", "Sold")
    assert network.cql("paris", "anna", sold).status_code == 201
    eventually(lambda: len(network.ask("lyon", "anna", "GET", "/streams").json()) == 2)
    text = (
        "CREATE QUERY sales AS SELECT ISTREAM B.item FROM Bids [Range 100] B, Sold [Now] S "
        "WHERE B.item = S.item"
    )
    headers = {**network.known.headers("anna"), "thalweg-strategy": "edge"}
    with httpx.Client(verify=network.authority, trust_env=False, timeout=60) as client:
        url = network.nodes["lyon"].url
        done = client.post(f"{url}/queries", headers=headers, json={"cql": text})
    assert done.status_code == 201, done.text
    (given,) = network.ask("lyon", "anna", "GET", "/queries/sales/placed?format=json").json()[
        "inputs"
    ]
    assert given["from"] == "paris"
    assert given["fragment"] is not None
    for stream, items in (("Bids", (7, 8, 9)), ("Sold", (5, 9, 7))):
        rows = [{"ts": 1000 + i, "item": item} for i, item in enumerate((*items, 0))]
        pushed = network.ask("lyon", "anna", "POST", f"/streams/{stream}/tuples", json=rows)
        assert pushed.status_code == 200, pushed.text

    def said() -> list[int]:
        path = "/queries/sales/results?format=json"
        return [r["row"]["item"] for r in network.ask("paris", "anna", "GET", path).json()["rows"]]

    eventually(lambda: said() == [7])  # 9 was sold before it was bid for
    # Who has no certificate of a reader gets nothing of it.
    with pytest.raises((NotServed, Unreachable)):
        list(DataClient(network.data("paris")).read(Read(given["publication"], 0)))
    assert network.cql("paris", "anna", "DROP QUERY sales").status_code == 201
