"""Put and get, step by step."""

import pytest

from thalweg.overlay.chord.messages import Create, Found, Lookup, NotFound
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.dht.messages import (
    Answer,
    Failed,
    Fetch,
    Fetched,
    Get,
    Got,
    Hand,
    Item,
    Offer,
    Put,
    PutDone,
    Store,
    Stored,
)
from thalweg.overlay.dht.protocol import ROUNDS_OF_PATIENCE, Dht, Settings
from thalweg.overlay.membership import Membership
from thalweg.overlay.protocol import (
    Call,
    Deliver,
    Heard,
    Init,
    Leave,
    Persist,
    Receive,
    Send,
    SetTimer,
    Tell,
    TimerFired,
)
from thalweg.overlay.routing import id_of

OLD, NEW = Item(1, "x", b"old"), Item(2, "x", b"new")


@pytest.fixture
def node():
    """`me`, in a ring with others after it."""
    chord = Chord(Membership())
    chord.step(0, Init("me", 1, {}))
    chord.step(0, Call(Create()))
    chord.table.follow(["a", "b", "c"])
    found = Dht(chord)
    found.step(0, Init("me", 1, {}))
    return found


def _sends(effects):
    return [(e.to, e.message) for e in effects if isinstance(e, Send)]


def _looked_up(node, request):
    """The token under which the owners of the request's key are looked up."""
    [effect] = node.step(0, Call(request))
    assert effect == Tell("chord", Lookup(id_of(request.key), effect.request.tag))
    return effect.request.tag


def _reading(node, request, owners=("a", "b")):
    tag = _looked_up(node, request)
    effects = node.step(0, Heard("chord", Found(tag, id_of(request.key), owners, 1)))
    assert {m.key for _, m in _sends(effects)} == {request.key}
    return effects[0].key, _sends(effects)[0][1].token


def test_a_get_takes_the_newest_answer(node):
    _, token = _reading(node, Get("k", 7))
    assert node.step(0, Receive("a", Fetched(token, NEW))) == []
    assert node.step(0, Receive("b", Fetched(token, OLD)))[-1] == Deliver(Got(7, b"new"))


def test_a_get_is_content_with_some_answers(node):
    timer, token = _reading(node, Get("k", 7))
    node.step(0, Receive("a", Fetched(token, None)))
    assert node.step(0, TimerFired(timer)) == [Deliver(Got(7, None))]


def test_a_put_reads_then_writes_above_what_it_read(node):
    _, token = _reading(node, Put("k", b"mine", 7))
    node.step(0, Receive("a", Fetched(token, NEW)))
    effects = node.step(0, Receive("b", Fetched(token, None)))
    stores = _sends(effects)
    assert [to for to, _ in stores] == ["a", "b"]
    store = stores[0][1]
    assert (store.key, store.item) == ("k", Item(3, "me", b"mine"))
    node.step(0, Receive("a", Stored(store.token)))
    assert node.step(0, Receive("b", Stored(store.token)))[-1] == Deliver(PutDone(7))


def test_a_put_that_not_all_have_is_tried_again_and_given_up(node):
    tries, effects = 0, node.step(0, Call(Put("k", b"v", 7)))
    while effects != [Deliver(Failed(7))]:
        [tell] = effects
        assert isinstance(tell, Tell)
        tries += 1
        effects = node.step(0, Heard("chord", NotFound(tell.request.tag, 0)))
        if isinstance(effects[0], SetTimer):
            effects = node.step(0, TimerFired(effects[0].key))
    assert tries == Settings().attempts


def test_one_answer_twice_is_not_two_answers(node):
    _, token = _reading(node, Get("k", 7))
    node.step(0, Receive("a", Fetched(token, OLD)))
    assert node.step(0, Receive("a", Fetched(token, OLD))) == []
    assert node.step(0, Receive("stranger", Fetched(token, OLD))) == []


def test_only_newer_items_are_kept_and_they_are_durable(node):
    assert isinstance(node.step(0, Receive("a", Store(1, "k", NEW)))[0], Persist)
    assert node.step(0, Receive("a", Store(2, "k", OLD))) == [Send("a", Stored(2))]
    assert node.step(0, Receive("a", Fetch(3, "k"))) == [Send("a", Fetched(3, NEW))]


def test_items_survive_a_restart(node):
    [saved, _] = node.step(0, Receive("a", Store(1, "k", NEW)))
    again = Dht(node._chord)
    again.step(0, Init("me", 1, {saved.key: saved.value}))
    assert again.items == {"k": NEW}


def test_an_offer_is_answered_with_what_is_had_newer_and_wanted(node):
    node.items = {"same": OLD, "newer": NEW}
    offer = Offer((("same", 1, "x"), ("newer", 1, "x"), ("lacking", 1, "x")))
    [(to, answer)] = _sends(node.step(0, Receive("a", offer)))
    assert to == "a"
    assert answer == Answer(("same", "newer"), (("newer", NEW),), ("lacking",))


def test_what_is_wanted_is_handed_over_and_what_is_newer_is_kept(node):
    node.items = {"k": OLD, "w": OLD}
    effects = node.step(0, Receive("a", Answer(("k",), (("k", NEW),), ("w", "gone"))))
    assert _sends(effects) == [("a", Hand((("w", OLD),)))]
    assert node.items["k"] == NEW


def test_an_owner_offers_to_the_nodes_after_it(node):
    node._chord.table.predecessor = "a"
    mine = next(k for k in map(str, range(1000)) if node._chord.table.owns(id_of(k)))
    node.items = {mine: OLD}
    assert _sends(node.step(0, TimerFired("tend"))) == [
        (a, Offer(((mine, 1, "x"),))) for a in node._chord.table.successors[:3]
    ]


def test_a_stray_is_let_go_once_all_its_owners_have_it(node):
    node.items = {"k": OLD}
    effects = node.step(0, Heard("chord", Found(("dht", "k"), 0, ("a", "b"), 1)))
    assert [to for to, _ in _sends(effects)] == ["a", "b"]
    node.step(0, Receive("a", Answer(("k",), (), ())))
    assert node.items == {"k": OLD}
    assert node.step(0, Receive("b", Answer(("k",), (), ()))) == [Persist("k", None)]
    assert node.items == {}


def test_a_substitute_only_sees_to_it_that_the_owner_has_it(node):
    node.items = {"k": OLD}
    effects = node.step(0, Heard("chord", Found(("dht", "k"), 0, ("a", "me"), 1)))
    assert [to for to, _ in _sends(effects)] == ["a"]
    node.step(0, Receive("a", Answer(("k",), (), ())))
    assert node.items == {"k": OLD}


def test_a_substitute_that_hears_from_the_owner_does_not_search(node):
    node._chord.table.predecessor = "c"
    foreign = next(k for k in map(str, range(1000)) if not node._chord.table.owns(id_of(k)))
    node.items = {foreign: OLD}
    for _ in range(2 * ROUNDS_OF_PATIENCE):
        node.step(0, Receive("a", Offer(((foreign, 1, "x"),))))
        assert [e for e in node.step(0, TimerFired("tend")) if isinstance(e, Tell)] == []
    silent = [node.step(0, TimerFired("tend")) for _ in range(ROUNDS_OF_PATIENCE + 1)]
    assert any(isinstance(e, Tell) for effects in silent for e in effects)


def test_leaving_hands_everything_to_the_nodes_after(node):
    node.items = {"k": OLD}
    assert [to for to, _ in _sends(node.step(0, Leave()))] == list(node._chord.table.successors)
    node.items = {}
    assert node.step(0, Leave()) == []


def test_impossible_settings_are_refused():
    with pytest.raises(ValueError, match="above 0"):
        Settings(attempts=0)
