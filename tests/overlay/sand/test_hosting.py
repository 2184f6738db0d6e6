"""What a host does about messages that are late, doubled, or from somebody who has no say."""

from tests.overlay.sand.networks import Everybody

from thalweg.overlay.protocol import Deliver, Send
from thalweg.overlay.sand.hosting import Hosting
from thalweg.overlay.sand.messages import (
    Feed,
    Hosted,
    InvalidateMap,
    Mapped,
    MapSubtree,
    OperatorMapped,
    OperatorRemapped,
    Unmapped,
    Visit,
)
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.zone_mail import ZoneMail

LEASE_US = SandSettings().lease_us


def host():
    knows = Everybody("me", ["me", "c", "d"])
    mail = ZoneMail(knows, knows, SandSettings())
    mail.own = "me"
    return Hosting(mail, knows, SandSettings())


def mapped(stamp_us, taker="t"):
    return OperatorMapped("q", 9, 3, ((1, "a"),), taker, stamp_us)


def delivered(effects):
    return [e.value for e in effects if isinstance(e, Deliver)]


def test_an_operator_is_run_once_however_often_it_is_said():
    hosting = host()
    first = hosting.mapped(0, "c", mapped(5))
    assert delivered(first) == [Mapped("q", 3, ((1, "a"),), "t")]
    assert Send("c", Hosted("q", 9, 3)) in first
    again = hosting.mapped(1, "c", mapped(5))
    assert delivered(again) == []
    assert again == [Send("c", Hosted("q", 9, 3))]


def test_what_comes_late_does_not_undo_what_came_after_it():
    hosting = host()
    hosting.mapped(0, "c", mapped(5, taker="new"))
    assert hosting.mapped(1, "c", mapped(4, taker="old")) == []
    assert hosting.running["q", 3].taker == "new"
    assert hosting.invalidated("c", InvalidateMap("q", 3, 4)) == []
    assert delivered(hosting.invalidated("c", InvalidateMap("q", 3, 6))) == [Unmapped("q", 3)]
    assert hosting.invalidated("c", InvalidateMap("q", 3, 6)) == []


def test_a_coordinator_of_before_can_not_take_back_what_another_mapped():
    hosting = host()
    hosting.mapped(0, "c", mapped(5))
    hosting.mapped(1, "d", mapped(2))  # another clock
    assert hosting.invalidated("c", InvalidateMap("q", 3, 9)) == []
    assert ("q", 3) in hosting.running


def test_an_operator_stops_when_its_lease_runs_out():
    hosting = host()
    hosting.mapped(0, "c", mapped(5))
    assert hosting.tend(LEASE_US - 1) == []
    assert delivered(hosting.tend(LEASE_US)) == [Unmapped("q", 3)]


def test_a_source_tells_the_zone_above_and_feeds_whom_it_is_told_to():
    hosting = host()
    (said,) = hosting.visited(0, Visit("q", 1, "me", 9, ("proxy", "x", "y")))
    assert isinstance(said.message, MapSubtree)
    assert (said.message.zone, said.message.told.candidates) == (9, ("x", "y"))
    word = OperatorRemapped("q", 1, "c", 0, "me", "t", True, 7)
    assert delivered(hosting.remapped(1, word)) == [Feed("q", 1, "t")]
    assert hosting.remapped(2, word) == []
    hosting.visited(LEASE_US, Visit("q", 1, "me", 9, ("proxy",)))
    assert delivered(hosting.tend(LEASE_US + 2)) == [Feed("q", 1, None)]  # nobody said it again
    hosting.tend(3 * LEASE_US)
    assert hosting.sources == {}


def test_a_source_keeps_the_peers_that_it_was_told_of_first():
    hosting = host()
    hosting.visited(0, Visit("q", 1, "me", 9, ("proxy", "x")))
    (said,) = hosting.visited(1, Visit("q", 1, "me", 9, ("proxy", "y")))
    assert said.message.told.candidates == ("x",)
