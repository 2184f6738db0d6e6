"""A provider takes a query in one epoch, and never goes back to a lower one."""

from tests.overlay.distribution.making import epoch, query

from thalweg.overlay.distribution.messages import Grant, Leased, Refused, Renew, Took
from thalweg.overlay.distribution.providing import Holdings

LEASE = 3_000_000


def grant(number, name="q", proxy="x"):
    return Grant(query(name, proxy), epoch(number), 1.0)


def test_a_grant_is_taken_once_and_answered_each_time():
    node = Holdings(LEASE)
    answer, effects, is_new = node.take(grant(2))
    assert (answer, is_new, [e.key for e in effects]) == (Took("q", epoch(2)), True, ["owned q"])
    assert node.take(grant(2)) == (Took("q", epoch(2)), [], False)


def test_a_late_grant_of_a_lower_epoch_is_refused():
    node = Holdings(LEASE)
    node.take(grant(2))
    assert node.take(grant(1))[0] == Refused("q", epoch(1), epoch(2))
    node.drop("q")
    assert node.take(grant(2))[0] == Refused("q", epoch(2), epoch(2), is_over=True)
    assert node.take(grant(3))[2]


def test_what_was_withdrawn_is_not_taken_again():
    node = Holdings(LEASE)
    node.take(grant(2))
    node.drop("q", is_withdrawn=True)
    assert node.take(grant(9))[0] == Refused("q", epoch(9), None)


def test_queries_come_back_from_disk_without_a_lease():
    node, again = Holdings(LEASE), Holdings(LEASE)
    _, effects, _ = node.take(grant(2))
    node.leased(Leased(10, (("q", epoch(2)),), ()), ())
    assert node.delivers(10 + LEASE - 1) == ["q"]
    again.start({e.key: e.value for e in effects})
    assert again.owned["q"].epoch == epoch(2)
    assert again.delivers(11) == []


def test_a_lease_counts_from_when_it_was_asked_for():
    node = Holdings(LEASE)
    node.take(grant(2))
    node.leased(Leased(10, (("q", epoch(2)),), ()), ())
    assert node.delivers(10 + LEASE) == []


def test_a_lease_of_another_epoch_is_none():
    node = Holdings(LEASE)
    node.take(grant(2))
    node.leased(Leased(10, (("q", epoch(1)),), ()), ())
    assert node.delivers(11) == []


def test_each_proxy_hears_of_its_own_queries_but_not_of_those_under_way():
    node = Holdings(LEASE)
    for name, proxy in (("a", "x"), ("b", "y"), ("c", "x"), ("d", "x")):
        node.take(grant(1, name, proxy))
    told = {e.to: e.message for e in node.renewals(5, resting=("d",))}
    assert told == {
        "x": Renew(5, (("a", epoch(1)), ("c", epoch(1)))),
        "y": Renew(5, (("b", epoch(1)),)),
    }
