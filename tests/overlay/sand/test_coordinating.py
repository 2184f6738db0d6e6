"""What a coordinator hears of a zone, in any order."""

from tests.overlay.sand.networks import Everybody, addresses

from thalweg.overlay.protocol import Send
from thalweg.overlay.sand.coordinating import Coordinating
from thalweg.overlay.sand.messages import (
    AddSubtree,
    Hosted,
    InvalidateMap,
    Known,
    MapSubtree,
    OperatorMapped,
    OperatorRemapped,
)
from thalweg.overlay.sand.planning import told_of_source
from thalweg.overlay.sand.query import query_of
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.zone_mail import ZoneMail
from thalweg.overlay.sand.zones import cut
from thalweg.placement.sand.parts import Operator, Source, make_tree

LEASE_US = SandSettings().lease_us

TREE = make_tree(
    "q",
    (Source("a", 8.0, 0), Source("b", 5.0, 1), Source("c", 5.0, 1)),
    (Operator("join", ("a", "b"), 0.1), Operator("top", ("join", "c"), 0.1)),
    2,
)
LOW, HIGH = cut(query_of(TREE, addresses(4), "edge", 1))
JOIN = LOW.top


def coordinator():
    knows = Everybody("h003", ["h003"])
    mail = ZoneMail(knows, knows, SandSettings())
    mail.own = "h003"
    return Coordinating(mail, knows, SandSettings())


def add(zone):
    return AddSubtree("q", zone.top, "h002", 0, zone)


def source_map(node, host, stamp_us=0):
    return MapSubtree("q", JOIN, host, 0, node, told_of_source(host, ()), stamp_us)


def sends(effects, kind):
    return [e for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def placed():
    """The lower zone, complete and placed for the time being."""
    coordinating = coordinator()
    coordinating.added(0, add(LOW))
    coordinating.heard_map(0, source_map(0, "h000"))
    return coordinating, coordinating.heard_map(1, source_map(1, "h001"))


def test_the_last_boundary_child_completes_a_zone():
    coordinating = coordinator()
    effects = coordinating.added(0, add(LOW))
    assert sends(effects, Known)[0].message.lacks == "no word of node 0, node 1"
    assert coordinating.heard_map(0, source_map(0, "h000")) == []
    effects = coordinating.heard_map(1, source_map(1, "h001"))
    (mapped,) = sends(effects, OperatorMapped)
    assert (mapped.to, mapped.message.node) == ("h000", JOIN)
    (above,) = sends(effects, MapSubtree)
    assert (above.message.zone, above.message.told.best) == (HIGH.top, "h000")


def test_maps_that_come_before_their_zone_are_kept():
    coordinating = coordinator()
    coordinating.heard_map(0, source_map(0, "h000"))
    coordinating.heard_map(0, source_map(1, "h001"))
    assert sends(coordinating.added(1, add(LOW)), OperatorMapped)


def test_what_comes_again_is_not_answered_again():
    coordinating, _ = placed()
    assert coordinating.heard_map(2, source_map(1, "h001")) == []


def test_a_late_map_does_not_undo_a_newer_one_of_the_same_sender():
    coordinating, _ = placed()
    coordinating.heard_map(2, source_map(1, "h001", stamp_us=9))
    withdrawn = MapSubtree("q", JOIN, "h001", 0, 1, None, 8)
    assert coordinating.heard_map(3, withdrawn) == []
    assert coordinating.duties["q", JOIN].plan is not None


def test_a_withdrawn_child_unmaps_the_zone_and_is_told_on():
    coordinating, _ = placed()
    effects = coordinating.heard_map(3, MapSubtree("q", JOIN, "h001", 0, 1, None, 8))
    assert [e.to for e in sends(effects, InvalidateMap)] == ["h000"]
    (above,) = sends(effects, MapSubtree)
    assert above.message.told is None


def word(location, final=True, stamp_us=5):
    return OperatorRemapped("q", JOIN, "h003", 0, location, location, final, stamp_us)


def test_a_zone_moves_to_where_the_zone_above_wants_it():
    coordinating, _ = placed()
    effects = coordinating.remapped(2, word("h001"))  # a common location of the zone above
    assert [e.to for e in sends(effects, InvalidateMap)] == ["h000"]
    assert [e.to for e in sends(effects, OperatorMapped)] == ["h001"]
    assert {(e.to, e.message.taker) for e in sends(effects, OperatorRemapped)} == {
        ("h000", "h001"),
        ("h001", "h001"),
    }


def test_a_place_that_was_never_offered_is_refused_by_saying_again_what_is():
    coordinating, _ = placed()
    effects = coordinating.remapped(2, word("h999"))
    assert coordinating.duties["q", JOIN].top_location == "h000"
    assert sends(effects, MapSubtree)


def test_for_the_time_being_is_a_lease():
    coordinating, _ = placed()
    for now_us in range(0, LEASE_US, LEASE_US // 5):  # zone and sources are said again
        coordinating.added(now_us, add(LOW))
        coordinating.heard_map(now_us, source_map(0, "h000", now_us))
        coordinating.heard_map(now_us, source_map(1, "h001", now_us))
    coordinating.hosted("h000", Hosted("q", JOIN, JOIN))
    assert coordinating.duties["q", JOIN].hosts
    effects = coordinating.tend(LEASE_US + 1)
    assert [e.to for e in sends(effects, InvalidateMap)] == ["h000"]
    assert sends(effects, MapSubtree)  # it could still stand, if only the zones above did
    effects = coordinating.remapped(LEASE_US + 2, word("h000"))
    assert [e.to for e in sends(effects, OperatorMapped)] == ["h000"]


def test_a_zone_that_the_proxy_asks_for_no_more_is_forgotten():
    coordinating, _ = placed()
    coordinating.tend(LEASE_US)
    assert coordinating.duties == {}
