"""The catalogue of one node: what it refuses, writes, tells and asks."""

import pytest

from thalweg.overlay.catalogue import (
    Catalogue,
    CatalogueSettings,
    Changed,
    Drop,
    Forget,
    Put,
    Refused,
)
from thalweg.overlay.catalogue.messages import Compare, Give, Listing, News
from thalweg.overlay.generator import stable_hash
from thalweg.overlay.membership import Up
from thalweg.overlay.protocol import (
    Call,
    Deliver,
    Heard,
    Init,
    Persist,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)


class Members:
    def __init__(self, *up):
        self.addresses = list(up)

    def up(self):
        return self.addresses


class Node:
    def __init__(self, address="a:1", others=("b:1", "c:1"), persisted=None, seed=1, **settings):
        self.catalogue = Catalogue(Members(*others), CatalogueSettings(**settings))
        self.disk = dict(persisted or {})
        self.do(Init(address, seed, self.disk))

    def do(self, event):
        effects = self.catalogue.step(0, event)
        for effect in effects:
            if isinstance(effect, Persist):
                self.disk[effect.key] = effect.value
        return effects

    def call(self, request):
        """What is delivered, and what is sent."""
        return split(self.do(Call(request)))

    def hear(self, sender, message):
        return split(self.do(Receive(sender, message)))


def split(effects):
    delivered = [e.value for e in effects if isinstance(e, Deliver)]
    return delivered, [(e.to, e.message) for e in effects if isinstance(e, Send)]


def stream(name="bids", text="CREATE STREAM bids (…)", extra=b""):
    return Put(name, "stream", text, extra)


@pytest.fixture
def node():
    return Node()


def test_a_put_is_written_answered_and_told_to_all_that_are_up(node):
    effects = node.do(Call(stream(extra=b"where")))
    delivered, sent = split(effects)
    [changed] = delivered
    assert changed.entry == node.catalogue.entry("bids")
    assert (changed.entry.owner, changed.entry.extra) == ("a:1", b"where")
    assert [to for to, _ in sent] == ["b:1", "c:1"]
    assert all(m == News(changed.entry, node.catalogue.table.hash) for _, m in sent)
    kinds = [type(e) for e in effects]
    assert kinds.index(Persist) < kinds.index(Deliver) < kinds.index(Send)


def test_versions_grow_with_every_change_and_drop(node):
    versions = []
    for request in (stream(), stream(text="other"), Drop("bids"), stream()):
        [changed], _ = node.call(request)
        versions.append((changed.entry.version, changed.entry.born, changed.entry.dropped))
    assert versions == [(1, 1, False), (2, 1, False), (3, 1, True), (4, 4, False)]


def test_what_was_written_is_there_after_a_restart(node):
    node.call(stream())
    node.call(stream("asks"))
    node.call(Drop("asks"))
    again = Node(persisted=node.disk, seed=2)
    assert again.catalogue.entries() == node.catalogue.entries()
    [changed], _ = again.call(stream("asks"))
    assert changed.entry.version == 4
    assert changed.entry.disk == node.catalogue.entry("bids").disk


@pytest.mark.parametrize(
    ("put", "why"),
    [
        (Put("", "stream", "x"), "no @"),
        (Put("a@b", "stream", "x"), "no @"),
        (Put("n" * 201, "stream", "x"), "1 to 200 characters"),
        (Put("n", "index", "x"), "'index' is none of stream, relation"),
        (Put("n", "stream", "x" * (1 << 20), b"x"), "at most 1048576 bytes, not 1048577"),
    ],
)
def test_what_is_no_entry_is_refused(node, put, why):
    [refused], sent = node.call(put)
    assert isinstance(refused, Refused)
    assert why in refused.why
    assert sent == []


def told_by(owner, node, put):
    """An entry of another node reaches this one."""
    other = Node(owner, others=("a:1",), seed=stable_hash(owner))
    [changed], [(_, news)] = other.call(put)
    node.hear(owner, news)
    return other, changed.entry


def test_a_name_that_is_taken_is_refused_and_so_is_dropping_it(node):
    told_by("b:1", node, stream())
    assert node.call(stream()) == ([Refused("bids", "there is a stream of this name at b:1")], [])
    [refused], _ = node.call(Drop("bids"))
    assert refused.why == "this node defined nothing of this name; only b:1 can drop it"


def test_a_name_that_was_dropped_is_free(node):
    other, _ = told_by("b:1", node, stream())
    _, [(_, news)] = other.call(Drop("bids"))
    node.hear("b:1", news)
    [changed], _ = node.call(stream())
    assert changed.entry.born > news.entry.version
    assert node.catalogue.names() == {"bids": changed.entry}


def test_who_comes_second_writes_that_down_and_tells_it():
    node = Node("z:1", others=("b:1",))
    node.call(stream(text="mine"))
    _, theirs = told_by("b:1", node, stream(text="theirs"))  # as early, and b:1 is before z:1
    own = node.catalogue.entry("bids")
    assert own.renamed
    assert node.catalogue.names() == {"bids": theirs, "bids@z:1": own}
    [changed], [(_, news)] = node.call(stream(text="mine, changed"))
    assert changed.entry.renamed
    assert news.entry == changed.entry
    [gone], _ = node.call(Drop("bids@z:1"))
    assert gone.entry.dropped


def test_who_gave_way_to_what_had_been_dropped_already_takes_that_back():
    node, other = Node("b:1", others=("z:1",)), Node("z:1", others=("b:1",))
    # What z:1 says during a partition, and b:1 hears of one by one when it is over.
    late = [other.call(r)[1][0][1] for r in (stream(), Drop("bids"), stream())]
    for name in "xy":  # b:1 comes third, and first of those that stand
        node.call(stream(name))
    node.call(stream())
    node.hear("z:1", late[0])
    assert node.catalogue.entry("bids").renamed
    for news in late[1:]:
        node.hear("z:1", news)
    assert not node.catalogue.entry("bids").renamed


def test_who_gave_way_stays_so_when_the_first_is_dropped_later():
    node, other = Node("z:1", others=("b:1",)), Node("b:1", others=("z:1",))
    node.call(stream())
    news = other.call(stream())[1][0][1]
    node.hear("b:1", news)
    other.hear("z:1", News(node.catalogue.entry("bids"), 0))
    dropped = other.call(Drop("bids"))[1][0][1]
    node.hear("b:1", dropped)
    assert node.catalogue.entry("bids").renamed


def test_a_lost_disk_is_made_up_for():
    before = Node()
    for _ in range(5):
        before.call(stream(text="old"))
    before.call(stream("asks", text="only others have this"))
    after = Node(seed=2)
    after.call(stream(text="new"))
    old, asks = before.catalogue.entry("bids"), before.catalogue.entry("asks")
    delivered, sent = after.hear("b:1", Give((old, asks), ()))
    again = after.catalogue.entry("bids")
    assert (again.text, again.version > old.version) == ("new", True)
    assert Changed(again) in delivered
    assert [m.entry for _, m in sent] == [again, again]  # to both
    assert after.catalogue.entry("asks") == asks


def test_own_words_from_the_same_disk_are_taken_back():
    """The disk is an old copy: the others know what came later."""
    node = Node()
    node.call(stream(text="one"))
    copy = dict(node.disk)
    node.call(stream(text="two"))
    again = Node(persisted=copy, seed=2)
    again.hear("b:1", Give((node.catalogue.entry("bids"),), ()))
    assert again.catalogue.entry("bids").text == "two"


def test_what_a_node_that_is_gone_for_good_defined_can_be_dropped():
    node = Node(others=("b:1",))
    _, theirs = told_by("z:1", node, stream())
    [gone], [(to, news)] = node.call(Forget("z:1"))
    assert (gone.entry.key, gone.entry.dropped) == (theirs.key, True)
    assert (to, news.entry.owner) == ("b:1", "z:1")
    assert node.catalogue.names() == {}
    [mine], _ = node.call(stream())  # the name is free
    assert node.catalogue.names() == {"bids": mine.entry}
    node.hear("b:1", Give((theirs,), ()))  # late news of it
    assert node.catalogue.entries() == [mine.entry]
    again = Node(persisted=node.disk, seed=2)
    assert again.catalogue.names() == node.catalogue.names()
    delivered, _ = Node("b:1", others=()).hear("a:1", news)
    assert delivered == []  # it knew nothing that is gone now


def test_a_node_that_comes_back_nevertheless_keeps_its_definitions_but_not_the_name():
    node = Node(others=("b:1",))
    away, _ = told_by("z:1", node, stream(text="theirs"))
    _, [(_, news)] = node.call(Forget("z:1"))
    [mine], _ = node.call(stream(text="mine"))
    away.hear("a:1", Give((mine.entry,), ()))
    _, sent = away.hear("a:1", news)
    own = away.catalogue.entry("bids")
    assert (own.text, own.renamed, own.born > mine.entry.born) == ("theirs", True, True)
    for _, message in sent:
        node.hear("z:1", message)
    assert node.catalogue.names() == {"bids": mine.entry, "bids@z:1": own}
    assert node.catalogue.table.hashes == away.catalogue.table.hashes


def test_who_runs_is_not_forgotten(node):
    told_by("b:1", node, stream())
    for owner, why in (("b:1", "it runs"), ("a:1", "it runs"), ("x:1", "nothing that it defined")):
        [refused], sent = node.call(Forget(owner))
        assert (refused.name, sent) == (owner, [])
        assert why in refused.why


def test_equal_tables_cost_one_message(node):
    assert node.hear("b:1", Compare(Node().catalogue.table.hashes)) == ([], [])


def test_comparing_takes_versions_first_and_then_what_is_lacking():
    one, other = Node(), Node("b:1", seed=2)
    one.call(stream("x", "of one"))
    other.call(stream("y", "of the other"))
    _, [(_, listing)] = other.hear("a:1", Compare(one.catalogue.table.hashes))
    assert isinstance(listing, Listing)
    _, gives = one.hear("b:1", listing)
    answers = []
    for _, give in gives:
        answers += other.hear("a:1", give)[1]
    for _, give in answers:
        one.hear("b:1", give)
    assert one.catalogue.entries() == other.catalogue.entries()
    assert [e.name for e in one.catalogue.entries()] == ["x", "y"]


def test_many_entries_go_in_several_messages():
    one, other = Node(at_once=10), Node("b:1", seed=2)
    for i in range(95):
        one.call(stream(f"s{i}"))
    listing = Listing(tuple(range(32)), ())
    _, gives = one.hear("b:1", listing)
    assert [len(g.entries) for _, g in gives] == [10] * 9 + [5]
    for _, give in gives:
        other.hear("a:1", give)
    assert other.catalogue.entries() == one.catalogue.entries()


def test_who_is_up_again_and_whose_table_differs_is_asked_soon(node):
    [timer] = node.do(Heard("membership", Up("b:1")))
    assert isinstance(timer, SetTimer)
    [sent] = node.do(TimerFired("ask"))
    assert (sent.to, type(sent.message)) == ("b:1", Compare)
    _, entry = told_by("c:1", node, stream())
    effects = node.do(Receive("c:1", News(entry, 12345)))
    assert [type(e) for e in effects] == [SetTimer]


def test_periods_and_sizes_are_checked():
    with pytest.raises(ValueError, match="above 0"):
        CatalogueSettings(at_once=0)


def test_another_request_is_a_mistake(node):
    with pytest.raises(TypeError):
        node.do(Call("something"))
