import pytest
from tests.placement.problems import two_way

from thalweg.placement.deployment import deployment
from thalweg.placement.explain import Kind, Plans, explain
from thalweg.placement.verify import verify

RELAYED = deployment(2, runs=[(0, 0)], sends=[(1, 2, 1), (2, 0, 1)], serves={0: 0})


def test_a_plan_as_text_names_hosts_and_relays():
    assert verify(two_way(), RELAYED) == ()
    assert explain(two_way(), RELAYED, 0).splitlines() == [
        "q0: ab from h0",
        "└─ a⋈b, at h0, 7 CPU",
        "   ├─ a, base stream at h0",
        "   └─ relay, at h2, sends b to h0, 30 bps",
        "      └─ b, base stream at h1, sends b to h2, 30 bps",
    ]


def test_a_plan_is_a_tree_of_runs_relays_and_homes():
    plan = Plans(two_way(), RELAYED).of(0)
    kinds = [(node.kind, node.host) for node in plan.walk()]
    assert kinds == [(Kind.RUN, 0), (Kind.HOME, 0), (Kind.RELAY, 2), (Kind.HOME, 1)]
    assert [arc.sent for arc in plan.inputs] == [False, True]


def test_a_result_served_elsewhere_than_made_is_relayed_there():
    deployed = deployment(2, runs=[(0, 0)], sends=[(1, 0, 1), (0, 2, 2)], serves={0: 2})
    assert explain(two_way(), deployed, 0).splitlines()[:3] == [
        "q0: ab from h2",
        "└─ relay, at h2",
        "   └─ a⋈b, at h0, 7 CPU, sends ab to h2, 5 bps",
    ]


def test_what_the_overlay_brings_is_said_to_come_from_there():
    deployed = deployment(2, runs=[(2, 0)], wants=[(2, 0), (2, 1)], serves={0: 2})
    lines = explain(two_way(), deployed, 0).splitlines()
    assert lines[2] == "   ├─ a, from the overlay, to h2"


def test_a_query_that_was_not_admitted_has_no_plan():
    assert Plans(two_way(), RELAYED).of(1) is None
    with pytest.raises(ValueError, match="q1 was not admitted"):
        explain(two_way(), RELAYED, 1)
