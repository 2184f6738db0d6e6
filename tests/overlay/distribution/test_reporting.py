"""Statistics up the tree: coordinators know what is below, and find what is doubled or lost."""

from tests.overlay.distribution.making import epoch, query, running

from thalweg.overlay.distribution.entries import Provider, key_of
from thalweg.overlay.distribution.messages import Noted, Superseded
from thalweg.overlay.distribution.reporting import Reporter
from thalweg.overlay.protocol import Send


def node(life, *entries):
    found = Reporter()
    found.begin(life)
    for entry in entries:
        found.set_own(0, key_of(entry), entry)
    return found


def tell(child, name, parent, parent_name, now_us=0):
    report = child.report(parent_name).message
    child.noted(parent_name, parent.heard(now_us, name, report))


def test_a_root_knows_what_is_two_levels_below():
    leaf, middle, root = node(1, running("q", "leaf")), node(2), node(3)
    tell(leaf, "leaf", middle, "middle")
    tell(middle, "middle", root, "root")
    assert root.ledger.entries["q q"] == running("q", "leaf")


def test_a_coordinator_that_lost_its_memory_gets_everything_again():
    leaf, before, after = node(1, running("q", "leaf"), Provider("leaf", 2.0)), node(2), node(3)
    tell(leaf, "leaf", before, "parent")
    tell(leaf, "leaf", after, "parent")  # which says that it has heard nothing
    tell(leaf, "leaf", after, "parent")
    assert after.ledger.entries == leaf.ledger.entries


def test_a_new_parent_gets_everything():
    leaf, old, new = node(1, running("q", "leaf")), node(2), node(3)
    tell(leaf, "leaf", old, "old")
    tell(leaf, "leaf", new, "new")
    assert new.ledger.entries == old.ledger.entries


def test_only_changes_are_sent_to_a_parent_that_has_the_rest():
    leaf, root = node(1, running("q", "leaf"), Provider("leaf", 2.0)), node(2)
    tell(leaf, "leaf", root, "root")
    leaf.set_own(1, "p leaf", Provider("leaf", 0.0))
    report = leaf.report("root").message
    assert report.changed == (Provider("leaf", 0.0),)
    assert root.heard(1, "leaf", report) == Noted(1, 3)


def test_of_two_owners_the_lower_epoch_is_told_to_stop_until_it_does():
    a, b = node(1, running("q", "a", 2)), node(2, running("q", "b", 3))
    root = node(3)
    tell(a, "a", root, "root")
    tell(b, "b", root, "root")
    assert root.ledger.entries["q q"].owner == "b"
    word = [Send("a", Superseded("q", epoch(3)))]
    assert root.to_stop() == word
    assert root.to_stop() == word
    a.set_own(1, "q q", None)
    tell(a, "a", root, "root")
    assert root.to_stop() == []


def test_a_query_that_nobody_reports_any_more_is_an_orphan():
    leaf, root = node(1, running("q", "leaf")), node(2)
    tell(leaf, "leaf", root, "root")
    root.keep_only(7, ())
    assert [(o.last, o.since_us) for o in root.orphans.values()] == [(running("q", "leaf"), 7)]


def test_it_is_none_once_it_shows_up_elsewhere():
    leaf, other, root = node(1, running("q", "leaf")), node(2, running("q", "other", 2)), node(3)
    tell(leaf, "leaf", root, "root")
    root.keep_only(7, ())
    tell(other, "other", root, "root")
    assert not root.orphans


def test_a_child_that_restarted_empty_leaves_orphans():
    leaf, again, root = node(1, running("q", "leaf")), node(9), node(2)
    tell(leaf, "leaf", root, "root")
    tell(again, "leaf", root, "root")
    assert list(root.orphans) == ["q q"]


def test_what_a_node_gives_away_itself_is_no_orphan_to_it():
    leaf = node(1, running("q", "leaf"))
    leaf.set_own(5, "q q", None)
    assert not leaf.orphans


def test_an_orphan_handed_up_is_ignored_where_it_is_known_to_run():
    root = node(1, running("q", "root", 4))
    root.adopt(5, query("q"), epoch(3), "leaf")
    root.adopt(5, query("other"), epoch(3), "leaf")
    assert list(root.orphans) == ["q other"]
