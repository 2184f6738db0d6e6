"""How letters find the coordinator of a zone."""

from thalweg.overlay.protocol import Send
from thalweg.overlay.sand.messages import InvalidateSubtree, Visit
from thalweg.overlay.sand.settings import SandSettings
from thalweg.overlay.sand.zone_mail import MOST_HOPS, ZoneMail


class Route:
    def __init__(self, hop, down=()):
        self.hop, self.down = hop, down

    def next_hop(self, key):
        return self.hop

    def is_down(self, address):
        return address in self.down


def post_of(hop, down=()):
    route = Route(hop, down)
    mail = ZoneMail(route, route, SandSettings())
    mail.own = "me"
    return mail


def letter(hops=0):
    return InvalidateSubtree("q", 4, "me", hops)


def test_the_first_letter_goes_through_the_overlay_the_next_directly():
    mail = post_of("next")
    assert mail.send(0, letter()) == [Send("next", letter(1))]
    mail.heard(1, "q", 4, "c")
    assert mail.send(2, letter()) == [Send("c", letter())]


def test_a_coordinator_that_was_not_heard_for_a_lease_or_is_down_is_looked_for_again():
    mail = post_of("next", down=("d",))
    mail.heard(0, "q", 4, "c")
    assert mail.send(SandSettings().lease_us, letter())[0].to == "next"
    mail.heard(0, "q", 4, "d")
    assert mail.send(1, letter())[0].to == "next"


def test_the_owner_of_the_zone_keeps_the_letter():
    assert post_of(None).forward(letter(3)) == []
    assert post_of(None).send(0, letter()) == [Send("me", letter())]


def test_a_letter_does_not_go_in_circles_for_ever():
    assert post_of("next").forward(letter(MOST_HOPS)) == []


def test_a_visit_notes_its_way_and_ends_at_the_source():
    visit = Visit("q", 1, "s", 4, ("proxy",))
    (sent,) = post_of("next").visit(visit)
    assert (sent.to, sent.message.path) == ("next", ("proxy", "me"))
    (sent,) = post_of(None).visit(visit)
    assert sent.to == "s"
