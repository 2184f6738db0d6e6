"""Alerts, step by step: one operator, its consumers and its inputs."""

import pytest

from thalweg.overlay.alerts.messages import (
    Demand,
    Install,
    Operator,
    Remove,
    Resumed,
    SetAble,
    Status,
    Suspended,
    Want,
)
from thalweg.overlay.alerts.protocol import Alerts
from thalweg.overlay.protocol import Call, Deliver, Init, Persist, Receive, Send, TimerFired

LEASE = 3_000


def node(*operators):
    alerts = Alerts(LEASE)
    alerts.step(0, Init("me", 1, {}))
    for operator in operators:
        alerts.step(0, Call(Install(operator)))
    return alerts


JOIN = Operator("ab", (("a", "na"), ("b", "nb")))


def sends(effects):
    return [(e.to, e.message) for e in effects if isinstance(e, Send)]


def delivered(effects):
    return [e.value for e in effects if isinstance(e, Deliver)]


def demand(alerts, now_us, wanted=True, consumer="top", sender="nt"):
    return alerts.step(now_us, Receive(sender, Demand("ab", consumer, wanted, now_us)))


def status(alerts, now_us, producer, able):
    message = Status(producer, "ab", able, now_us)
    return alerts.step(now_us, Receive(f"n{producer}", message))


def test_demand_from_none_to_one_goes_down_the_plan():
    alerts = node(JOIN)
    effects = demand(alerts, 10)
    assert delivered(effects) == [Resumed("ab")]
    assert sends(effects) == [
        ("na", Demand("a", "ab", True, 10)),
        ("nb", Demand("b", "ab", True, 10)),
        ("nt", Status("ab", "top", True, 10)),
    ]
    again = demand(alerts, 20, consumer="other")
    assert sends(again) == [("nt", Status("ab", "other", True, 20))]


def test_the_last_consumer_takes_the_demand_back():
    alerts = node(JOIN)
    demand(alerts, 10)
    demand(alerts, 20, consumer="other")
    assert delivered(demand(alerts, 30, wanted=False)) == []
    effects = demand(alerts, 40, wanted=False, consumer="other")
    assert delivered(effects) == [Suspended("ab")]
    assert ("na", Demand("a", "ab", False, 40)) in sends(effects)


def test_an_input_that_is_not_able_lets_the_others_rest_and_is_still_wanted_itself():
    alerts = node(JOIN)
    demand(alerts, 10)
    effects = status(alerts, 20, "a", able=False)
    assert sends(effects) == [
        ("nb", Demand("b", "ab", False, 20)),
        ("nt", Status("ab", "top", False, 20)),
    ]
    back = status(alerts, 30, "a", able=True)
    assert sends(back)[0] == ("nb", Demand("b", "ab", True, 30))


def test_a_query_that_came_after_the_suspend_is_resumed_too():
    """What Procedure 12 forgets."""
    alerts = node(JOIN)
    demand(alerts, 10)
    status(alerts, 20, "a", able=False)
    demand(alerts, 25, consumer="second")
    status(alerts, 30, "a", able=True)
    assert delivered(demand(alerts, 40, wanted=False)) == []
    assert alerts.active == ["ab"]


def test_silence_of_a_producer_for_a_lease_means_not_able():
    alerts = node(JOIN)
    demand(alerts, 0)
    alerts.step(0, TimerFired("renew"))
    status(alerts, 2_900, "b", able=True)
    demand(alerts, 2_900)
    effects = alerts.step(3_500, TimerFired("renew"))
    assert ("nb", Demand("b", "ab", False, 3_500)) in sends(effects)


def test_a_lease_that_is_not_renewed_runs_out():
    alerts = node(JOIN)
    demand(alerts, 0)
    assert alerts.active == ["ab"]
    assert alerts.overdue(LEASE + 2_000) == ["ab"]
    effects = alerts.step(LEASE + 1, TimerFired("renew"))
    assert delivered(effects) == [Suspended("ab")]
    assert alerts.overdue(LEASE + 2_000) == []


def test_what_comes_late_does_not_undo_what_came_after_it():
    alerts = node(JOIN)
    alerts.step(50, Receive("nt", Demand("ab", "top", False, 40)))
    assert alerts.step(51, Receive("nt", Demand("ab", "top", True, 30))) == []
    assert alerts.active == []
    status(alerts, 60, "a", able=False)
    assert alerts.step(61, Receive("na", Status("a", "ab", True, 55))) == []


def test_a_source_is_able_while_its_stream_flows():
    alerts = node(Operator("s"))
    alerts.step(5, Receive("nt", Demand("s", "j", True, 5)))
    effects = alerts.step(9, Call(SetAble("s", False)))
    assert sends(effects) == [("nt", Status("s", "j", False, 9))]


def test_nobody_asks_on_behalf_of_what_nobody_looks_at():
    alerts = node(JOIN)
    assert sends(alerts.step(9, TimerFired("renew"))) == []


def test_queries_at_home_count_as_demand_and_survive_a_restart():
    alerts = node(JOIN)
    effects = alerts.step(5, Call(Want("ab", "q1")))
    disk = {e.key: e.value for e in effects if isinstance(e, Persist)}
    again = Alerts(LEASE)
    effects = again.step(0, Init("me", 2, disk))
    assert again.active == ["ab"]
    assert {to for to, _ in sends(effects)} == {"na", "nb"}
    assert delivered(again.step(9, Call(Want("ab", "q1", wanted=False)))) == [Suspended("ab")]


def test_what_was_removed_does_not_answer():
    alerts = node(JOIN)
    alerts.step(1, Call(Remove("ab")))
    assert demand(alerts, 5) == []


def test_mistakes_are_named():
    alerts = node(JOIN)
    with pytest.raises(ValueError, match="ab is installed already"):
        alerts.step(0, Call(Install(JOIN)))
    with pytest.raises(ValueError, match="zz is not installed"):
        alerts.step(0, Call(Want("zz", "q")))
    with pytest.raises(TypeError, match="can't 'dance'"):
        alerts.step(0, Call("dance"))
    with pytest.raises(ValueError, match="renewed three times"):
        Alerts(2)
