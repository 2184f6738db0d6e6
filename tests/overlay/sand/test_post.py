"""How letters find the coordinator of a zone."""

from thalweg.overlay.protocol import Send
from thalweg.overlay.sand.messages import InvalidateSubtree, Visit
from thalweg.overlay.sand.post import MOST_HOPS, Post
from thalweg.overlay.sand.settings import SandSettings


class Route:
    def __init__(self, hop, down=()):
        self.hop, self.down = hop, down

    def next_hop(self, key):
        return self.hop

    def is_down(self, address):
        return address in self.down


def post_of(hop, down=()):
    route = Route(hop, down)
    post = Post(route, route, SandSettings())
    post.own = "me"
    return post


def letter(hops=0):
    return InvalidateSubtree("q", 4, "me", hops)


def test_the_first_letter_goes_through_the_overlay_the_next_directly():
    post = post_of("next")
    assert post.send(0, letter()) == [Send("next", letter(1))]
    post.heard(1, "q", 4, "c")
    assert post.send(2, letter()) == [Send("c", letter())]


def test_a_coordinator_that_was_not_heard_for_a_lease_or_is_down_is_looked_for_again():
    post = post_of("next", down=("d",))
    post.heard(0, "q", 4, "c")
    assert post.send(SandSettings().lease_us, letter())[0].to == "next"
    post.heard(0, "q", 4, "d")
    assert post.send(1, letter())[0].to == "next"


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
