"""Nodes decide together where queries run: SAND's zones, COSMOS's coordinators."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from tests.overlay.sand.networks import addresses, place_and_run, sand_at, world_of
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.arrivals import Arrival
from thalweg.overlay.coordinators.tree import TreeSettings
from thalweg.overlay.distribution.messages import SetCapability
from thalweg.overlay.distribution.settings import Settings as DistributionSettings
from thalweg.overlay.sand.query import TreeQuery
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.zones import zone_key
from thalweg.overlay.stack import Stack
from thalweg.plan.windows import FOREVER
from thalweg.runtime.network.directory import NodeInfo
from thalweg.runtime.network.measuring import Task
from thalweg.runtime.network.protocols import following, zones
from thalweg.runtime.network.protocols.deciding import Deciding
from thalweg.runtime.network.protocols.outcomes import decode_asked
from thalweg.runtime.network.protocols.stack import DECIDED, PlacingSettings

pytestmark = pytest.mark.timeout(300)

MS = 1_000
NAMES = ("a", "b", "c", "d")
STREAMS = {
    "a": "CREATE STREAM Bids (item BIGINT, price BIGINT) TIMESTAMP BY ts BIGINT",
    "b": "CREATE STREAM Sold (item BIGINT, shop VARCHAR) TIMESTAMP BY ts BIGINT",
}
JOINED = (
    "SELECT S.shop, B.price FROM Bids [Range 20] B, Sold [Range 5] S "
    "WHERE B.item = S.item AND B.price > 2"
)
QUERIES = {
    "joined": JOINED,
    "streamed": JOINED.replace("SELECT", "SELECT ISTREAM"),
    "counted": JOINED.replace("S.shop, B.price", "S.shop, COUNT(*) AS n") + " GROUP BY S.shop",
    "last": "SELECT item, SUM(price) AS p FROM Bids [Partition By item Rows 3] GROUP BY item",
}


def quick(round_us: int = 3_600_000 * MS) -> PlacingSettings:
    """Leases are long enough for a machine that is busy with other things."""
    return PlacingSettings(
        SandSettings(renew_every_us=200 * MS, lease_us=3_000 * MS, measure_within_us=500 * MS),
        TreeSettings(k=2, heartbeat_us=100 * MS, lease_heartbeats=30),
        DistributionSettings(
            beat_us=100 * MS,
            lease_us=1_000 * MS,
            silent_us=20_000 * MS,
            orphaned_us=30_000 * MS,
            round_us=round_us,
            answer_within_us=500 * MS,
        ),
    )


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    yield from started(tmp_path, quick())


@pytest.fixture
def adapting(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    yield from started(tmp_path, quick(round_us=500 * MS))


def started(folder: Path, placing: PlacingSettings) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {name: LiveNode(name, folder, shared, placing=placing) for name in NAMES}
    for name, text in STREAMS.items():
        made[name].cql(text)
    eventually(lambda: len(coordinators(made["d"])) == 4 and roots(made["d"]) != [])
    yield made
    for node in made.values():
        node.close()


def coordinators(node: LiveNode) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.http.get("/network/coordinators").json()
    return found


def roots(node: LiveNode) -> list[str]:
    """Once all agree on one tree."""
    told = coordinators(node)
    found = {row["node"] for row in told if row["parent"] is None}
    return sorted(found) if len({row["root"] for row in told}) == len(found) == 1 else []


def rows(begin: int, end: int) -> dict[str, list[dict[str, Any]]]:
    return {
        "Bids": [{"ts": t, "item": t % 4, "price": t % 7} for t in range(begin, end)],
        "Sold": [
            {"ts": t, "item": t % 3, "shop": "xyz"[t % 3]} for t in range(begin, end) if t % 2
        ],
    }


def push(nodes: dict[str, LiveNode], begin: int, end: int) -> None:
    new = rows(begin, end)
    nodes["a"].push("Bids", *new["Bids"])
    nodes["b"].push("Sold", *new["Sold"])


def expected(text: str, upto: int) -> list[tuple[Any, ...]]:
    (query,) = compile_script(f"{'; '.join(STREAMS.values())}; CREATE QUERY q AS {text}").queries
    inputs = {
        name: [
            Arrival(0, row["ts"], place, tuple(v for k, v in row.items() if k != "ts"))
            for place, row in enumerate(found)
        ]
        for name, found in rows(1, upto).items()
    }
    found = reference.evaluate(query.plan, inputs)
    return sorted((c.ts, c.op, c.row) for c in found if c.ts < upto - 2)


def said(node: LiveNode, query: str, upto: int) -> list[tuple[Any, ...]]:
    found = [(int(r["ts"]), r["op"], tuple(r["row"].values())) for r in node.rows(query)]
    return sorted(row for row in found if row[0] < upto - 2)


def final(node: LiveNode, query: str) -> int:
    mark = node.http.get(f"/queries/{query}").json()["frontier"]
    return -1 if mark is None else int(mark)


def task_of(node: LiveNode, query: str) -> Task:
    found = node.node.tasks.of(query)
    assert found is not None
    return found


def asked_of(node: LiveNode, query: str) -> TreeQuery:
    decided = task_of(node, query).decided
    assert decided is not None
    return decode_asked(decided.asked)


def has_nothing(node: LiveNode) -> bool:
    sand = node.driver.read(lambda s: (s["sand"].hosting.running, s["sand"].coordinating.duties))
    return not any(map(dict, sand)) and not node.node.site.catalog.queries()


def test_rows_are_the_references_whoever_decides(nodes: dict[str, LiveNode]) -> None:
    d = nodes["d"]
    for strategy in DECIDED:
        texts = [f'CREATE QUERY "{n}-{strategy}" AS {text}' for n, text in QUERIES.items()]
        d.cql("; ".join(texts), strategy)
    push(nodes, 1, 60)
    for name, text in QUERIES.items():
        for strategy in DECIDED:
            query = f"{name}-{strategy}"
            eventually(lambda q=query: final(d, q) >= 58, 60)  # type: ignore[misc]
            assert said(d, query, 60) == expected(text, 60), query
        assert len(expected(text, 60)) > 20
    checked = d.http.get("/network/check").json()
    assert len(checked) == len(QUERIES) * len(DECIDED)
    assert [row for row in checked if row["problems"]] == []
    told = d.http.get("/queries/joined-edge/placed").text
    assert "coordinators of its zones together (SAND 4)" in told
    assert "by coordinators (COSMOS 3.3.6)" in d.http.get("/queries/joined-cosmos/placed").text


def test_zones_come_to_what_they_come_to_in_the_simulator(nodes: dict[str, LiveNode]) -> None:
    """By rates alone: distances between processes of one machine are noise."""
    d = nodes["d"]
    d.cql(f"CREATE QUERY joined AS {JOINED}", "edge")
    asked, found = asked_of(d, "joined"), task_of(d, "joined").decided
    assert found is not None
    number = dict(zip(NAMES, addresses(len(NAMES)), strict=True))
    same = msgspec.structs.replace(
        asked,
        nodes=tuple(
            msgspec.structs.replace(n, pinned=number.get(n.pinned)) if n.pinned else n
            for n in asked.nodes
        ),
    )
    world = world_of(1_000 * (1 - np.eye(len(NAMES), dtype=int)))
    place_and_run(world, same)
    told = sand_at(world, number["d"]).proxying.stands[asked.name]
    assert tuple(number[name] for name in found.at) == told.at
    assert {node for node, _ in task_of(d, "joined").runs} - {"d"}


def test_a_plan_that_is_only_shown_leaves_nothing_behind(nodes: dict[str, LiveNode]) -> None:
    d = nodes["d"]
    for strategy in DECIDED:
        headers = {"thalweg-strategy": strategy, "thalweg-bound-ms": "60000"}
        text = {"cql": f"CREATE QUERY shown AS {JOINED}"}
        told = d.http.post("/network/plan", json=text, headers=headers).json()
        assert [q["query"] for q in told["queries"]] == ["shown"]
    assert d.node.deciding is not None
    assert d.node.deciding.zones.asked() == d.node.deciding.coordinators.asked() == []
    for node in nodes.values():
        eventually(lambda n=node: has_nothing(n))  # type: ignore[misc]


def test_a_bound_that_cannot_be_kept_is_refused_and_nothing_stands(
    nodes: dict[str, LiveNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zones, "NOT_IN_TIME_S", 1.0)
    d = nodes["d"]
    text = f"CREATE QUERY hasty AS {JOINED}"
    for strategy in ("edge+", "in-network"):
        headers = {"thalweg-strategy": strategy, "thalweg-bound-ms": "0.000001"}
        answer = d.http.post("/queries", json={"cql": text}, headers=headers)
        assert answer.status_code == 409
        assert "bound on latency" in answer.json()["detail"]
    headers = {"thalweg-strategy": "local", "thalweg-bound-ms": "5"}
    answer = d.http.post("/queries", json={"cql": text}, headers=headers)
    assert (answer.status_code, "keeps no bound" in answer.text) == (422, True)
    texts = {"texts": [{"cql": text, "name": "hasty.cql"}]}
    answer = d.http.post("/queries/bulk", json=texts, headers=headers)
    assert (answer.status_code, "keeps no bound" in answer.text) == (422, True)
    for node in nodes.values():
        eventually(lambda n=node: has_nothing(n))  # type: ignore[misc]


def test_a_source_that_is_silent_while_nodes_decide_leaves_nothing_half_placed(
    nodes: dict[str, LiveNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(zones, "PLACED_WITHIN_S", 1.5)
    d, exchange = nodes["d"], nodes["d"].shared.exchange
    exchange.lost.add("a")  # its protocols hear nothing; its service still answers
    headers = {"thalweg-strategy": "edge"}
    text = {"cql": f"CREATE QUERY joined AS {JOINED}"}
    answer = d.http.post("/queries", json=text, headers=headers)
    assert answer.status_code == 503
    assert "no word of" in answer.json()["detail"]
    assert d.names("queries") == {}
    exchange.lost.clear()
    for node in nodes.values():
        eventually(lambda n=node: has_nothing(n))  # type: ignore[misc]


def test_what_was_decided_and_not_followed_is_dropped_after_a_crash(
    nodes: dict[str, LiveNode],
) -> None:
    d = nodes["d"]
    d.cql(f"CREATE QUERY joined AS {JOINED}", "edge")
    asked = asked_of(d, "joined")
    assert d.node.deciding is not None
    d.node.deciding._open += 1  # a decision is under way, and this node is killed
    left = msgspec.structs.replace(asked, name="left#d.1")
    d.node.deciding.zones.place([left])
    d.close()
    d.open()
    deciding = d.node.deciding
    eventually(lambda: deciding.zones.asked() == [asked.name])
    eventually(lambda: asked.name in deciding.zones.stands())
    for node in nodes.values():
        eventually(lambda n=node: "left" not in str(coordinators(n)))  # type: ignore[misc]
    push(nodes, 1, 60)
    eventually(lambda: final(d, "joined") >= 58)
    assert said(d, "joined", 60) == expected(JOINED, 60)


def test_a_coordinator_of_a_zone_that_falls_silent_is_replaced_while_a_query_is_placed(
    nodes: dict[str, LiveNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    """c has no stream and no user: nobody needs it but as a coordinator."""
    d = nodes["d"]

    def owner(ticket: str, zone: int) -> str | None:
        return d.driver.read(lambda s: s["prefix"].next_hop(zone_key(ticket, zone)))

    d.cql(f"CREATE QUERY first AS {JOINED}", "edge")
    tops = [zone for zone, _ in d.node.deciding.zones.stands().popitem()[1].coordinators]  # type: ignore[union-attr]
    tickets = (f"joined#d.{number}" for number in range(1_000))
    chosen = next(t for t in tickets if owner(t, tops[-1]) == "c")
    monkeypatch.setattr(Deciding, "ticket", lambda *_: chosen)
    d.shared.exchange.lost.add("c")
    d.cql(f"CREATE QUERY joined AS {JOINED}", "edge")
    words = "\n".join(task_of(d, "joined").words)
    assert "coordinators of its zones together" in words
    assert "by c:" not in words
    push(nodes, 1, 60)
    eventually(lambda: final(d, "joined") >= 58)
    assert said(d, "joined", 60) == expected(JOINED, 60)


def equally_far(nodes: Sequence[NodeInfo], *_: object) -> dict[str, float]:
    return {n.name: 1.0 for n in nodes}


def test_operators_follow_when_streams_get_other_rates(
    nodes: dict[str, LiveNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The join stands with the stream that brings more, whichever that is."""
    d = nodes["d"]
    rates = {"Bids": 10.0, "Sold": 1_000.0}
    for node in nodes.values():
        monkeypatch.setattr(node.node.meter, "rows_per_s", lambda *_: dict(rates))
        monkeypatch.setattr(node.node.meter, "delays_ms", equally_far)
    text = JOINED.replace(" AND B.price > 2", "")
    d.cql(f"CREATE QUERY joined AS {text}", "edge")  # nothing has come yet: Sold's rows are wider
    asked = asked_of(d, "joined")

    def at() -> set[str]:
        return {running.at for running in d.node.planning.running("joined")}

    assert at() == {"b"}
    push(nodes, 1, 40)
    eventually(lambda: final(d, "joined") >= 38)
    monkeypatch.setattr(following, "RATES_EVERY_S", 0.3)
    monkeypatch.setattr(d.node.deciding.following, "_tried", {})  # type: ignore[union-attr]
    rates.update({"Bids": 1_000.0, "Sold": 10.0})
    eventually(lambda: asked_of(d, "joined").name != asked.name)
    monkeypatch.setattr(following, "RATES_EVERY_S", 600.0)  # zones have time to place what is asked
    eventually(lambda: at() == {"a"})
    push(nodes, 40, 80)
    eventually(lambda: final(d, "joined") >= 78)
    assert said(d, "joined", 80) == expected(text, 80)
    eventually(lambda: {n for n, _ in task_of(d, "joined").runs} == {"a"})
    assert asked_of(d, "joined").name != asked.name
    eventually(lambda: len(d.node.deciding.zones.asked()) == 1)  # type: ignore[union-attr]


def only(nodes: dict[str, LiveNode], *able: str) -> None:
    """Which nodes take whole queries, as the root of their coordinators knows it, too."""
    wanted = {f"p {name}": 1.0 if name in able else 0.0 for name in nodes}
    for node in nodes.values():
        asked = SetCapability(wanted[f"p {node.name}"])
        node.driver.call("distribution", asked).result(30)

    def known(node: LiveNode) -> bool:
        def told(stack: Stack) -> bool:
            state = stack["distribution"].state  # type: ignore[attr-defined]
            entries = state.reporter.ledger.entries
            is_so = {k: entries[k].capability for k in wanted if k in entries} == wanted
            return bool(state.tree.place.is_root and is_so)

        return node.driver.read(told)

    eventually(lambda: any(map(known, nodes.values())))


def owners(nodes: dict[str, LiveNode]) -> dict[str, list[str]]:
    return {row["node"]: row["queries"] for row in coordinators(nodes["d"])}


def places(node: LiveNode, queries: list[str]) -> dict[str, str]:
    """Where queries of a node are computed."""
    found = {}
    for query in queries:
        (running,) = node.node.planning.running(query)
        found[query] = running.at
    return found


def frontier(node: LiveNode, query: str) -> int:
    site = node.node.site
    return site.reader(site.query(query)).frontier().instant


def test_queries_follow_their_coordinators_rounds_with_their_state(
    adapting: dict[str, LiveNode], monkeypatch: pytest.MonkeyPatch
) -> None:
    d = adapting["d"]
    for node in adapting.values():  # loads as they were estimated, on whatever machine
        assert node.node.deciding is not None
        monkeypatch.setattr(node.node.deciding.following.statistics, "tell", lambda: None)
    only(adapting, "b")
    d.cql("; ".join(f"CREATE QUERY {n} AS {text}" for n, text in QUERIES.items()), "cosmos")
    assert places(d, list(QUERIES)) == dict.fromkeys(QUERIES, "b")
    push(adapting, 1, 40)
    for name in QUERIES:
        eventually(lambda q=name: final(d, q) >= 38)  # type: ignore[misc]
    only(adapting, "a", "b", "c", "d")  # b alone has more than its share
    eventually(lambda: sum(map(bool, owners(adapting).values())) >= 3)
    push(adapting, 40, 80)

    def follows() -> bool:
        told = {query: n for n, queries in owners(adapting).items() for query in queries}
        return len(told) == len(QUERIES) and places(d, list(QUERIES)) == told

    eventually(follows)
    push(adapting, 80, 120)
    for name, text in QUERIES.items():
        eventually(lambda q=name: final(d, q) >= 118)  # type: ignore[misc]
        assert said(d, name, 120) == expected(text, 120), name
    moves = d.http.get("/network/moves").json()
    assert {m["asked_by"] for m in moves} == {"coordinators at d"}
    moved = next(q for q, at in places(d, list(QUERIES)).items() if at != "b")
    eventually(lambda: "by a round of the coordinators" in str(task_of(d, moved).words))
    told = d.http.get(f"/queries/{moved}/placed").text
    assert "moved to" in told
    # What has ended stays where it is, whatever rounds come to.
    for name in ("Bids", "Sold"):
        assert d.http.post(f"/streams/{name}/finish").is_success
    for name in QUERIES:
        eventually(lambda q=name: frontier(d, q) >= FOREVER)  # type: ignore[misc]
    only(adapting, "c")
    eventually(lambda: sum(map(bool, owners(adapting).values())) == 1)
    before = places(d, list(QUERIES))
    assert d.node.deciding is not None
    d.node.deciding.following.look()
    assert places(d, list(QUERIES)) == before
    d.cql("; ".join(f"DROP QUERY {name}" for name in QUERIES))
    eventually(lambda: not any(owners(adapting).values()))


def test_without_the_root_of_the_coordinators_the_next_one_decides(
    nodes: dict[str, LiveNode],
) -> None:
    d = nodes["d"]
    eventually(lambda: bool(roots(d)))
    (root,) = roots(d)
    # Whoever is asked has to stay, and so have the homes: only their protocols fall silent.
    asked = next(n for name, n in nodes.items() if name not in ("a", "b", root))
    nodes["a"].shared.exchange.lost.add(root)
    only({n: x for n, x in nodes.items() if n != root}, "a", "b", asked.name)
    asked.cql(f"CREATE QUERY joined AS {JOINED}", "cosmos")
    (word,) = [w for w in task_of(asked, "joined").words if "COSMOS" in w]
    assert f"{root} (root)" not in word
    push(nodes, 1, 60)
    eventually(lambda: final(asked, "joined") >= 58)
    assert said(asked, "joined", 60) == expected(JOINED, 60)
