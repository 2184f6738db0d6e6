"""A node of the distribution, step by step; messages are carried by hand."""

import msgspec
import pytest
from tests.overlay.distribution.making import Node, epoch, query, running, sent

from thalweg.overlay.distribution import messages as say
from thalweg.overlay.distribution.entries import Provider, Rate, Running
from thalweg.overlay.distribution.protocol import Settings
from thalweg.overlay.protocol import (
    Deliver,
    Leave,
    Persist,
    TimerFired,
)

SECOND = 1_000_000


def delivered(effects):
    return [e.value for e in effects if isinstance(e, Deliver)]


def submit(title="q", weight=1.0, substreams=(0,)):
    return say.Submit(title, "SELECT *", substreams, 0.0, weight)


def grant(number, name="q", proxy="x", weight=1.0):
    return say.Grant(query(name, proxy), epoch(number), weight)


def test_a_query_is_on_disk_before_it_is_accepted_and_the_root_is_asked():
    node = Node("x", parent="r")
    effects = node.ask(0, submit())
    [accepted] = delivered(effects)
    assert effects.index(Deliver(accepted)) > 0
    assert isinstance(effects[0], Persist)
    assert [to for to, _ in sent(effects, say.Seek)] == ["r"]


def test_a_title_is_used_once():
    node = Node("x", parent="r")
    node.ask(0, submit())
    [refused] = delivered(node.ask(1, submit()))
    assert "called q already" in refused.why


def test_what_is_not_there_can_not_be_withdrawn():
    [refused] = delivered(Node("x").ask(0, say.Withdraw("nothing")))
    assert "no user of x has a query nothing" in refused.why


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (lambda: submit(weight=-1.0), "can't be negative"),
        (lambda: submit(substreams=(1, 1)), "listed twice"),
        (lambda: say.Measured(loads=(("q", float("nan")),)), "the load of q is nan"),
        (lambda: say.Measured(rates_bps=((3, float("inf")),)), "substream 3 is inf"),
        (lambda: say.SetCapability(-1.0), "a capability is -1.0"),
        (lambda: Settings(slack=-0.1), "can't be negative"),
        (lambda: Settings(lease_us=SECOND), "two beats"),
        (lambda: Settings(tries=0), "above 0"),
    ],
)
def test_nonsense_is_refused_when_it_is_made(request_, message):
    with pytest.raises(ValueError, match=message):
        request_()


def test_a_node_alone_runs_its_own_queries():
    node = Node("x")
    [(_, seek)] = sent(node.ask(0, submit()), say.Seek)
    [(_, found)] = sent(node.hear(1, "x", seek), say.Found)
    [(to, given)] = sent(node.hear(2, "x", found), say.Grant)
    effects = node.hear(3, "x", given)
    assert to == "x"
    assert [v.epoch.number for v in delivered(effects)] == [1]


def test_a_coordinator_sends_a_query_where_there_is_room():
    root = Node("r", members=("a",))
    root.told(0, "a", Provider("a", 1.0), running("p", "a", weight=5.0))
    seek = say.Seek("x", 4, query("q"), 1.0, None, say.NOT_YET, -1.0, 9)
    assert sent(root.hear(1, "x", seek), say.Found) == [("x", say.Found(4, "r", ("r",)))]


def test_two_queries_in_a_row_do_not_both_fill_the_same_room():
    root = Node("r", members=("a",), slack=0.0)
    root.told(0, "a", Provider("a", 1.0))
    found = []
    for token in (1, 2):
        seek = say.Seek("x", token, query(f"q{token}"), 1.0, None, 0, 1.0, 9)
        found += sent(root.hear(1, "x", seek), say.Found)
    assert sorted(m.provider for _, m in found) == ["a", "r"]


def test_who_is_not_root_passes_a_question_up():
    node = Node("a", parent="r")
    seek = say.Seek("x", 4, query("q"), 1.0, None, say.NOT_YET, -1.0, 9)
    [(to, passed)] = sent(node.hear(1, "x", seek), say.Seek)
    assert (to, passed.asker, passed.hops) == ("r", "x", 8)


def test_a_report_of_somebody_elses_child_is_not_taken():
    node = Node("r", members=("a",))
    assert node.told(0, "stranger", running("q", "stranger")) == []
    assert not node.it.state.knows("q")


def test_a_proxy_hears_who_runs_a_query_and_who_has_decided_it():
    node = Node("x", parent="r")
    [(_, seek)] = sent(node.ask(0, submit()), say.Seek)
    [(_, given)] = sent(node.hear(1, "r", say.Found(seek.token, "a", ("r", "s"))), say.Grant)
    name = given.query.name
    told = delivered(node.hear(2, "a", say.Took(name, given.epoch)))
    assert told == [say.Settled(name, "a", ("r", "s"))]
    assert not delivered(node.hear(3, "a", say.Renew(0, ((name, given.epoch),))))
    moved = msgspec.structs.replace(given.epoch, number=given.epoch.number + 1)
    told = delivered(node.hear(4, "b", say.Renew(0, ((name, moved),))))
    assert told == [say.Settled(name, "b", ())]
    assert not delivered(node.hear(5, "a", say.Renew(0, ((name, given.epoch),))))


def test_an_owner_that_is_silent_is_replaced_in_a_higher_epoch():
    node = Node("x", parent="r")
    [(_, seek)] = sent(node.ask(0, submit()), say.Seek)
    [(_, given)] = sent(node.hear(1, "r", say.Found(seek.token, "a")), say.Grant)
    node.hear(2, "a", say.Took(given.query.name, given.epoch))
    assert not sent(node.beat(5 * SECOND), say.Seek)
    [(_, again)] = sent(node.beat(9 * SECOND), say.Seek)
    [(to, given)] = sent(node.hear(10 * SECOND, "r", say.Found(again.token, "b")), say.Grant)
    assert (to, given.epoch.number) == ("b", 2)


def test_an_owner_that_speaks_up_again_keeps_its_query():
    node = Node("x", parent="r")
    [(_, seek)] = sent(node.ask(0, submit()), say.Seek)
    [(_, given)] = sent(node.hear(1, "r", say.Found(seek.token, "a")), say.Grant)
    name = given.query.name
    node.hear(2, "a", say.Took(name, given.epoch))
    node.beat(9 * SECOND)
    node.hear(10 * SECOND, "a", say.Renew(0, ((name, given.epoch),)))
    assert not node.it.state.granter.jobs


def test_a_move_hands_over_and_only_an_answer_lets_go():
    owner = Node("a", parent="r")
    owner.hear(0, "x", grant(1))
    [(to, given)] = sent(owner.hear(1, "r", say.Move("q", epoch(1), "b")), say.Grant)
    assert (to, given.epoch.number) == ("b", 2)
    assert "q" in owner.it.state.holdings.owned
    effects = owner.hear(2, "b", say.Took("q", given.epoch))
    assert delivered(effects) == [say.Stopped("q")]
    assert Persist("owned q", None) in effects


def test_nothing_is_delivered_while_it_is_handed_over():
    owner = Node("a", parent="r")
    owner.hear(0, "x", grant(1))
    lease = say.Leased(0, (("q", epoch(1)),), ())
    owner.hear(1, "x", lease)
    assert owner.it.state.holdings.delivers(2) == ["q"]
    owner.hear(3, "r", say.Move("q", epoch(1), "b"))
    owner.hear(4, "x", lease)  # a late copy
    assert owner.it.state.holdings.delivers(5) == []


def test_an_order_about_another_epoch_is_old():
    owner = Node("a", parent="r")
    owner.hear(0, "x", grant(2))
    assert owner.hear(1, "r", say.Move("q", epoch(1), "b")) == []


def test_a_refusal_moves_nothing_and_drops_nothing():
    """Who refuses may have seen a higher epoch whose owner is gone: the query stays."""
    owner = Node("a", parent="r")
    owner.hear(0, "x", grant(1))
    [(_, given)] = sent(owner.hear(1, "r", say.Move("q", epoch(1), "b")), say.Grant)
    owner.hear(2, "b", say.Refused("q", given.epoch, epoch(9)))
    owner.it.step(3, TimerFired(("job", "q")))
    assert "q" in owner.it.state.holdings.owned
    assert not owner.it.state.granter.jobs


def test_a_provider_that_wants_to_leave_tells_when_it_is_rid_of_everything():
    owner = Node("a", parent="r")
    owner.hear(0, "x", grant(1))
    assert delivered(owner.ask(1, say.SetCapability(0.0))) == []
    [(_, given)] = sent(owner.hear(2, "r", say.Move("q", epoch(1), "b")), say.Grant)
    assert say.Drained() in delivered(owner.hear(3, "b", say.Took("q", given.epoch)))


def test_the_root_moves_what_is_too_much():
    root = Node("r", members=("a",))
    runs = [running(f"q{i}", "a") for i in range(4)]
    root.told(0, "a", Provider("a", 1.0), *runs)
    root.beat(SECOND)  # a new root waits for a round
    orders = sent(root.beat(6 * SECOND), say.Move)
    assert [(to, m.to) for to, m in orders] == [("a", "r"), ("a", "r")]
    assert not sent(root.beat(7 * SECOND), say.Move)


def test_measured_loads_and_rates_are_reported_once():
    node = Node("a", parent="r")
    node.hear(0, "x", grant(1))
    [(_, report)] = sent(node.beat(1), say.Report)
    node.hear(2, "r", say.Noted(report.life, report.until))
    node.ask(3, say.Measured(loads=(("q", 4.0), ("gone", 1.0)), rates_bps=((7, 50.0),)))
    [(_, report)] = sent(node.beat(4), say.Report)
    assert report.changed == (
        Running(query("q"), epoch(1), "a", 4.0),
        Rate(7, "a", 1, 50.0),
    )
    node.hear(5, "r", say.Noted(report.life, report.until))
    [(_, report)] = sent(node.beat(6), say.Report)
    assert report.changed == ()


def test_an_orphan_goes_up_to_the_root_and_from_there_to_its_proxy():
    middle = Node("m", members=("a",), parent="r")
    middle.told(0, "a", running("q", "a"))
    middle.tree.place.led[0].remove(1, "a")
    middle.beat(1)
    [(to, entrust)] = sent(middle.beat(5 * SECOND), say.Entrust)
    assert to == "r"
    root = Node("r", members=("m",))
    root.hear(0, "m", entrust)
    [(to, handed)] = sent(root.beat(5 * SECOND), say.Entrust)
    assert to == "x"
    root.hear(6 * SECOND, "x", say.Entrusted("q", handed.custody))
    assert not sent(root.beat(7 * SECOND), say.Entrust)


def test_two_that_change_roles_do_not_both_let_go_of_an_orphan():
    """Each has it from the other; a late answer to the first handover must not count."""
    one, other = Node("m", parent="r"), Node("r", members=("m",))
    one.hear(0, "c", say.Entrust(query("q"), epoch(3)))
    [(_, up)] = sent(one.beat(5 * SECOND), say.Entrust)
    [(_, late)] = sent(other.hear(5 * SECOND, "m", up), say.Entrusted)
    other.tree.place.parent = other.tree.root = "m"
    [(_, down)] = sent(other.beat(9 * SECOND), say.Entrust)
    [(_, answer)] = sent(one.hear(9 * SECOND, "r", down), say.Entrusted)
    other.hear(10 * SECOND, "m", answer)
    one.hear(10 * SECOND, "r", late)
    assert [n.it.state.knows("q") for n in (one, other)] == [True, False]


def test_the_root_rescues_an_orphan_whose_proxy_is_down():
    root = Node("r", members=("m",), down=("x",))
    root.hear(0, "m", say.Entrust(query("q"), epoch(3)))
    assert not sent(root.beat(5 * SECOND), say.Seek)
    [(to, seek)] = sent(root.beat(11 * SECOND), say.Seek)
    [(_, given)] = sent(root.hear(11 * SECOND, "r", say.Found(seek.token, "m")), say.Grant)
    assert to == "r"
    assert epoch(2) < given.epoch < epoch(3)


def test_a_proxy_takes_back_what_it_forgot_but_not_what_was_withdrawn():
    node = Node("x")
    [(_, answer)] = sent(node.hear(0, "r", say.Entrust(query("q"), epoch(3))), say.Entrusted)
    assert answer.name == "q"
    assert node.it.state.guards.kept["q"].epoch == epoch(3)
    node.ask(1, say.Withdraw("q"))
    answers = node.hear(2, "r", say.Entrust(query("q"), epoch(3)))
    assert sent(answers, say.Superseded) == [("r", say.Superseded("q", None))]


def test_queries_and_guards_come_back_after_a_restart():
    node = Node("x")
    effects = node.ask(0, submit()) + node.hear(1, "y", grant(1, "other", "y"))
    disk = {e.key: e.value for e in effects if isinstance(e, Persist)}
    again = Node("x", persisted=disk)
    assert list(again.it.state.holdings.owned) == ["other"]
    assert [g.query.text for g in again.it.state.guards.kept.values()] == ["SELECT *"]
    assert [v.query.name for v in delivered(again.first)] == ["other"]


def test_who_goes_without_notice_gives_everything_to_its_neighbours():
    node = Node("r", members=("a", "b"))
    for name in ("p", "q", "s"):
        node.hear(0, "x", grant(1, name))
    gone = sent(node.it.step(1, Leave()), say.Grant)
    assert [(to, m.query.name, m.epoch.number) for to, m in gone] == [
        ("a", "p", 2),
        ("b", "q", 2),
        ("a", "s", 2),
    ]


def test_who_leaves_hands_on_the_orphans_in_its_custody():
    """Nobody else knows of them; what is below it is reported to others."""
    leader = Node("r", parent="top", members=("a",))
    leader.told(0, "a", running("q", "a"))
    leader.told(1, "a")
    effects = leader.it.step(2, Leave())
    [(to, handed)] = sent(effects, say.Entrust)
    assert (to, handed.query.name) == ("top", "q")
    heir = Node("top", members=("r", "b"))
    heir.hear(3, "r", handed)
    assert "q q" in heir.it.state.reporter.orphans
