"""Fragments move between live nodes with their state, and no row shows it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.runtime.network.fragments.test_fragments import (
    SALES,
    STREAMS,
    fragments_at,
    path_of,
    plan_of,
    pushed,
)
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.adapt.handover import Giving
from thalweg.adapt.handover.messages import Step
from thalweg.engine.shared.groups.cost_model import Sharing
from thalweg.engine.shared.tick.task import READER
from thalweg.engine.site import Unknown, WrongUse
from thalweg.plan.nodes import Aggregate, Join
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.fragments import cut_plan

# The last five bids of each item and all that was ever sold: nobody can rebuild either.
LOSSY = """CREATE QUERY sales AS SELECT S.item, COUNT(*) AS n, MAX(B.price) AS highest
           FROM Bids [Partition By item Rows 5] B, Sold [Unbounded] S
           WHERE B.item = S.item GROUP BY S.item"""


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {name: LiveNode(name, tmp_path, shared) for name in ("a", "b", "c", "d")}
    made["a"].cql(STREAMS)
    yield made
    for node in made.values():
        node.close()


def placed(c: LiveNode, text: str = LOSSY, at: str = "b", kind: type = Aggregate) -> None:
    plan = plan_of(c, text)
    c.node.place(text, cut_plan(plan, {path_of(plan, kind): at}, "c"))


def said(node: LiveNode, query: str) -> list[tuple[Any, Any]]:
    return [(r["ts"], r["row"]) for r in node.rows(query)]


def beside(nodes: dict[str, LiveNode], text: str = LOSSY) -> None:
    """The same query, whole, where nothing moves."""
    nodes["a"].cql(text.replace("QUERY sales", "QUERY whole"))


def same(nodes: dict[str, LiveNode], upto: int) -> None:
    a, c = nodes["a"], nodes["c"]
    eventually(lambda: bool(said(a, "whole")) and said(a, "whole")[-1][0] >= upto, 60)
    eventually(lambda: said(c, "sales") == said(a, "whole"), 60)


def moved(node: LiveNode, to: str, way: str = "precopy") -> dict[str, Any]:
    (publication,) = fragments_at(node)
    record = node.node.moving.begin(publication, to, way)  # type: ignore[union-attr]
    done = node.node.moving.await_end(record.move, 60)  # type: ignore[union-attr]
    assert (done.state, done.error) == ("done", None)
    return {"move": done.move, "sent": done.sent, "since": done.since}


@pytest.mark.parametrize("way", ["precopy", "mslb", "stop"])
def test_what_nobody_could_rebuild_moves_with_its_state(
    nodes: dict[str, LiveNode], way: str
) -> None:
    a, b, _, d = nodes.values()
    placed(nodes["c"])
    beside(nodes)
    pushed(a, 1, 60)
    same(nodes, 55)
    assert moved(b, "d", way)["sent"] > 0
    pushed(a, 60, 120)
    same(nodes, 115)
    eventually(lambda: fragments_at(b) == [])
    assert [name.rpartition("~")[2] for name in fragments_at(d)] == ["1"]
    eventually(lambda: not b.node.site.catalog.streams())  # nothing is read there any more
    state = b.node.site.engine.manifest  # nor is it on its disk, or mapped
    eventually(lambda: not state.segments and not READER.mapped(state.folder))
    assert set(state.folder.names()) <= state.live()  # few results stand beside state
    assert moved(d, "b", way)["sent"] > 0
    pushed(a, 120, 180)
    same(nodes, 175)
    eventually(lambda: fragments_at(d) == [])


def test_by_ptlb_what_is_old_and_what_is_new_are_computed_beside_each_other(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c, d = nodes.values()
    placed(c, SALES, kind=Join)
    beside(nodes, SALES)
    pushed(a, 1, 60)
    same(nodes, 55)
    told = moved(b, "d", "ptlb")
    until = b.node.moving.journal.find(told["move"]).until  # type: ignore[union-attr]
    assert told["since"] < until <= told["since"] + 101
    pushed(a, 60, 120)
    same(nodes, 115)
    assert len(fragments_at(b)) == len(fragments_at(d)) == 1  # two tracks
    pushed(a, 120, 200)
    same(nodes, 195)
    eventually(lambda: fragments_at(b) == [], 60)  # nothing is old any more
    eventually(lambda: not b.node.site.catalog.streams())
    assert moved(d, "b", "mslb")["since"] > until  # what was on two tracks moves like the others
    pushed(a, 200, 260)
    same(nodes, 255)
    eventually(lambda: fragments_at(d) == [], 60)


def test_an_old_part_that_has_ended_is_listed_nowhere(nodes: dict[str, LiveNode]) -> None:
    a, b, c, d = nodes.values()
    placed(c, SALES, kind=Join)
    pushed(a, 1, 60)
    eventually(lambda: len(c.rows("sales")) > 50)
    moved(b, "d", "ptlb")
    pushed(a, 60, 80)
    assert [x["from"] for x in links(d) if x["fragment"]] == ["b"]
    moved(d, "a", "stop")  # while there are two tracks
    eventually(lambda: not d.node.site.catalog.streams())
    pushed(a, 80, 200)
    eventually(lambda: fragments_at(b) == [])
    for node in (a, b, d):
        eventually(lambda node=node: not any(x["fragment"] for x in links(node)))  # type: ignore[misc]
    text = c.http.get("/queries/sales/placed").text
    assert "does not answer" not in text
    assert text.count("fragment ") == 1
    assert "Bids from a: " in text  # and not from a by way of a
    moved(a, "d")  # what has ended goes along, and nobody is asked for it
    pushed(a, 200, 220)
    eventually(lambda: c.rows("sales")[-1]["ts"] == 218)
    assert "does not answer" not in c.http.get("/queries/sales/placed").text
    assert not any(x["fragment"] for node in (a, b, d) for x in links(node))


def links(node: LiveNode) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = node.http.get("/network/links").json()
    return found


def test_it_may_go_to_its_reader_and_to_the_home_of_its_streams(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c, _ = nodes.values()
    placed(c)
    beside(nodes)
    pushed(a, 1, 40)
    same(nodes, 35)
    for sender, receiver, first in ((b, c, 40), (c, a, 80), (a, b, 120)):
        moved(sender, receiver.name)
        pushed(a, first, first + 40)
        same(nodes, first + 35)
        eventually(lambda sender=sender: fragments_at(sender) == [])  # type: ignore[misc]


def test_a_fragment_that_reads_another_node_s_fragment_goes_on_reading_it(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c, d = nodes.values()
    plan = plan_of(c, LOSSY)
    at = {path_of(plan, Aggregate): "b", path_of(plan, Join): "d"}
    c.node.place(LOSSY, cut_plan(plan, at, "c"))
    beside(nodes)
    pushed(a, 1, 60)
    same(nodes, 55)
    moved(b, "a")  # the aggregate, which reads the join at d
    pushed(a, 60, 120)
    same(nodes, 115)
    moved(d, "b")  # then the join, which a reads
    pushed(a, 120, 180)
    same(nodes, 175)
    eventually(lambda: fragments_at(d) == [])


@pytest.mark.parametrize("which", ["sender", "receiver", "reader"])
def test_a_node_that_is_started_again_in_the_middle_goes_on(
    nodes: dict[str, LiveNode], which: str
) -> None:
    a, b, c, d = nodes.values()
    placed(c)
    beside(nodes)
    pushed(a, 1, 60)
    same(nodes, 55)
    one = {"sender": b, "receiver": d, "reader": c}[which]
    nodes["c"].shared.exchange.lost.add("d")  # the receiver does not hear the sender
    (publication,) = fragments_at(b)
    record = b.node.moving.begin(publication, "d")  # type: ignore[union-attr]
    pushed(a, 60, 90)
    one.close()
    one.open()
    nodes["c"].shared.exchange.lost.discard("d")
    eventually(lambda: b.node.moving.journal.find(record.move).is_over, 60)  # type: ignore[union-attr]
    pushed(a, 90, 120)
    same(nodes, 115)
    eventually(lambda: fragments_at(b) == [])


def test_what_a_receiver_does_not_take_stays(nodes: dict[str, LiveNode]) -> None:
    a, b, _, d = nodes.values()
    placed(nodes["c"])
    beside(nodes)
    pushed(a, 1, 60)
    same(nodes, 55)

    def refuse(*_: object, **__: object) -> None:
        raise WrongUse("there is no room")

    d.node.moving._taker.stand = refuse  # type: ignore[union-attr, method-assign]
    (publication,) = fragments_at(b)
    record = b.node.moving.begin(publication, "d")  # type: ignore[union-attr]
    done = b.node.moving.await_end(record.move, 60)  # type: ignore[union-attr]
    assert (done.state, done.error) == ("failed", "there is no room")
    pushed(a, 60, 120)
    same(nodes, 115)
    assert fragments_at(b) == [publication]
    assert fragments_at(d) == []


def test_what_can_not_move_is_told(nodes: dict[str, LiveNode]) -> None:
    b = nodes["b"]
    placed(nodes["c"])
    (publication,) = fragments_at(b)
    moving = b.node.moving
    assert moving is not None
    with pytest.raises(WrongUse, match="already"):
        moving.begin(publication, "b")
    with pytest.raises(Unknown):
        moving.begin(publication, "nowhere")
    with pytest.raises(Unknown):
        moving.begin("pub/#0>c.1", "d")
    with pytest.raises(WrongUse, match="precopy, mslb, ptlb, stop, replay"):
        moving.begin(publication, "d", "mail")
    with pytest.raises(WrongUse, match=r"not linear.* use mslb or precopy"):
        moving.begin(publication, "d", "ptlb")


def test_a_user_moves_a_query_and_sees_what_has_moved(nodes: dict[str, LiveNode]) -> None:
    a, b, c, d = nodes.values()
    placed(c)
    beside(nodes)
    pushed(a, 1, 60)
    same(nodes, 55)
    wanted = {"what": "sales", "to": "d", "why": "b is small"}
    answer = a.http.post("/network/moves", json=wanted)
    assert answer.is_success, answer.text
    (begun,) = answer.json()
    eventually(lambda: a.http.get("/network/moves").json()[-1]["is_over"], 60)
    (told,) = c.http.get("/network/moves").json()
    assert (told["state"], told["error"]) == ("done", None)
    assert [told[k] for k in ("move", "at", "to", "by", "why")] == [
        begun["move"], "b", "d", "precopy", "b is small",
    ]  # fmt: skip
    assert told["sent"] >= told["total"] > 0
    pushed(a, 60, 120)
    same(nodes, 115)
    eventually(lambda: "moved once" in a.http.get("/queries/sales/placed").text, 60)
    (fragment,) = d.http.get("/network/fragments").json()
    assert fragment["moved"] == {"since": str(told["since"]), "times": 1}
    assert a.http.post("/network/moves", json={**wanted, "what": "nothing"}).status_code == 404
    assert a.http.post("/network/moves", json=wanted).status_code == 409  # it is there
    assert b.http.post("/network/drain").json()["state"] == "done"  # there is nothing any more


def test_what_is_answered_together_with_others_is_computed_anew(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c, d = nodes.values()
    b.node.site.engine.grouping.sharing = Sharing.WHEREVER_POSSIBLE
    text = SALES.replace("sales", "dear").replace("Range 100", "Range 50")
    plans = [plan_of(c, t) for t in (SALES, text)]
    for given, plan in zip((SALES, text), plans, strict=True):
        c.node.place(given, cut_plan(plan, {path_of(plan, Join): "b"}, "c"))
    beside(nodes, SALES)
    pushed(a, 1, 60)
    same(nodes, 55)
    (first, *_) = fragments_at(b)
    eventually(lambda: first in b.node.site.engine.roster.group_of)
    with pytest.raises(WrongUse, match="replay"):
        b.node.move(first, "d", "precopy")
    b.node.move(first, "d", "replay")
    pushed(a, 60, 120)
    eventually(lambda: len(fragments_at(d)) == 1)
    pushed(a, 120, 180)
    same(nodes, 175)


def test_what_has_said_nothing_yet_moves_too(nodes: dict[str, LiveNode]) -> None:
    a, b, c, _ = nodes.values()
    placed(c)
    beside(nodes)
    moved(b, "d")
    pushed(a, 1, 60)
    same(nodes, 55)
    eventually(lambda: fragments_at(b) == [])


def test_moves_are_told_in_words(nodes: dict[str, LiveNode]) -> None:
    a, b, c, d = nodes.values()
    a.cql("CREATE STREAM Seen (item BIGINT) TIMESTAMP BY ts TIMESTAMP")
    text = "CREATE QUERY told AS SELECT item, COUNT(*) AS n FROM Seen [Rows 5] GROUP BY item"
    plan = plan_of(c, text)
    c.node.place(text, cut_plan(plan, {path_of(plan, Aggregate): "b"}, "c"))
    moved(b, "d")
    (first,) = b.http.get("/network/moves").json()
    assert (first["since"], first["since_text"]) == (BEGINNING, "the beginning")
    eventually(lambda: fragments_at(b) == [])
    a.push("Seen", *({"ts": f"2026-01-01T00:00:{t:02}Z", "item": t % 3} for t in range(20)))
    eventually(lambda: bool(c.rows("told")))
    moved(d, "b")
    _, second = d.http.get("/network/moves").json()
    assert second["since_text"].startswith("2026-01-01")
    eventually(lambda: fragments_at(d) == [])
    # The protocol knows d by its address.
    moving, (fragment,) = b.node.moving, fragments_at(b)
    assert moving is not None
    record = moving.journal_of(fragment, "d", "precopy", "", "")
    why = "127.0.0.1:7 has been silent for too long"
    kept = Giving(record.move, fragment, "127.0.0.1:7", 3, "precopy", Step.KEPT, why=why)
    moving._ended(kept)
    assert b.http.get("/network/moves").json()[-1]["error"] == "d has been silent for too long"
    # Who is waited for is who has it now, by name.
    b.close()
    eventually(lambda: bool(links(c)[0]["error"]))
    assert links(c)[0]["error"].startswith("b can't be reached since")
    assert "127.0.0.1" not in links(c)[0]["error"]
    b.open()


def test_a_reader_that_was_away_finds_it(nodes: dict[str, LiveNode]) -> None:
    a, b, c, _ = nodes.values()
    placed(c)
    beside(nodes)
    pushed(a, 1, 60)
    same(nodes, 55)
    c.close()
    moved(b, "d")
    b.close()  # what it has said is read, though it computes nothing any more
    b.open()
    pushed(a, 60, 120)
    kept = b.node.site.engine.manifest
    eventually(lambda: not [s for s in kept if s.table.startswith("state/")], 60)
    c.open()
    same(nodes, 115)
    eventually(lambda: fragments_at(b) == [])


def test_a_query_that_is_dropped_meanwhile_leaves_nothing_behind(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, c, d = nodes.values()
    placed(c)
    pushed(a, 1, 60)
    eventually(lambda: bool(c.rows("sales")))
    # Its reader does not hear where it goes on before it goes itself.
    c.node.mirrors._gone_on = lambda *_: None  # type: ignore[method-assign]
    moved(b, "d")
    assert len(fragments_at(d)) == 1
    c.cql("DROP QUERY sales")
    for node in (b, d):
        eventually(lambda node=node: fragments_at(node) == [])  # type: ignore[misc]
        eventually(lambda node=node: not node.node.site.catalog.streams())  # type: ignore[misc]


def test_all_readers_of_a_fragment_follow_it(nodes: dict[str, LiveNode]) -> None:
    a, b, c, d = nodes.values()
    placed(c)
    other = LOSSY.replace("QUERY sales", "QUERY again")
    plan = plan_of(d, other)
    d.node.place(other, cut_plan(plan, {path_of(plan, Aggregate): "b"}, "d"))
    beside(nodes)
    assert len(fragments_at(b)) == 1
    pushed(a, 1, 60)
    same(nodes, 55)
    moved(b, "a")
    pushed(a, 60, 120)
    same(nodes, 115)
    eventually(lambda: said(d, "again") == said(a, "whole"), 60)
    eventually(lambda: fragments_at(b) == [])
    c.cql("DROP QUERY sales")
    assert len(fragments_at(a)) == 1
    pushed(a, 120, 150)
    eventually(lambda: said(d, "again")[-1][0] >= 145, 60)
    d.cql("DROP QUERY again")
    eventually(lambda: fragments_at(a) == [])
    eventually(lambda: not [s for s in a.node.site.catalog.streams() if "again" in s.name])


@pytest.mark.parametrize("way", ["precopy", "ptlb"])
def test_a_query_that_is_one_fragment_moves_and_its_results_stay(
    nodes: dict[str, LiveNode], way: str
) -> None:
    a, b, c, _ = nodes.values()
    text = SALES.replace("ISTREAM ", "") if way == "ptlb" else SALES
    plain = c.http.post("/queries", json={"cql": text.replace("sales", "fixed")})
    assert plain.is_success, plain.text
    headers = {"thalweg-movable": "1"}
    answer = c.http.post("/queries", json={"cql": text}, headers=headers)
    assert answer.is_success, answer.text
    beside(nodes, text)
    pushed(a, 1, 60)
    same(nodes, 55)
    ids = [r["id"] for r in c.rows("sales")]
    wanted = {"what": "sales", "to": "b", "by": way}
    begun = a.http.post("/network/moves", json=wanted)
    assert begun.is_success, begun.text
    eventually(lambda: a.http.get("/network/moves").json()[-1]["state"] == "done", 60)
    pushed(a, 60, 200)
    same(nodes, 195)
    eventually(lambda: fragments_at(c) == [], 60)
    assert len(fragments_at(b)) == 1
    assert [r["id"] for r in c.rows("sales")][: len(ids)] == ids
    stays = a.http.post("/network/moves", json={**wanted, "what": "fixed"})
    assert stays.status_code == 409
    assert "--movable" in stays.text


def test_what_nobody_could_rebuild_goes_on_from_its_copy(nodes: dict[str, LiveNode]) -> None:
    a, b, c, _ = nodes.values()
    placed(c)
    beside(nodes)
    pushed(a, 1, 60)
    same(nodes, 55)
    copies, (key, (stream, _)) = c.node.copies, next(iter(c.node.fragments.read()))
    assert copies is not None
    assert copies.renew(key, stream)
    pushed(a, 60, 80)
    same(nodes, 75)
    first = copies.find(key)
    assert first is not None
    assert copies.renew(key, stream)  # only what is new is fetched; inputs stay subscribed to
    again = copies.find(key)
    assert again is not None
    assert again.opened == first.opened
    assert again.state.manifest.frontier > first.state.manifest.frontier
    pushed(a, 80, 120)
    same(nodes, 115)
    c.close()
    c.open()  # a copy is on disk
    b.close()  # for good
    copies = c.node.copies
    assert copies is not None
    assert copies.begin(key, stream) == again.state.manifest.frontier
    assert copies.find(key) is None
    pushed(a, 120, 180)
    same(nodes, 175)
    assert len(fragments_at(c)) == 1
    b.open()


def test_a_copy_goes_with_its_reader(nodes: dict[str, LiveNode]) -> None:
    a, b, c, _ = nodes.values()
    placed(c)
    pushed(a, 1, 60)
    eventually(lambda: bool(c.rows("sales")))
    copies, (key, (stream, _)) = c.node.copies, next(iter(c.node.fragments.read()))
    assert copies is not None
    assert copies.renew(key, stream)
    kept = len(a.node.data.publications.names())
    copies.forget(key)
    assert copies.find(key) is None
    assert len(a.node.data.publications.names()) == kept - 2  # of two streams
    assert len(fragments_at(b)) == 1
