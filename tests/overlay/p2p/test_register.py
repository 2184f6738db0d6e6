"""The register: what a majority accepted is in the hands of every later leader."""

from hypothesis import given
from hypothesis import strategies as st

from thalweg.overlay.p2p.promises import Promises
from thalweg.overlay.p2p.register import NO_BALLOT, Group, Member, Stored, StreamState

MEMBERS = tuple(Member(a, f"{a}#1") for a in "abc")


def _groups():
    state = StreamState(1, MEMBERS)
    return {m.token: Group(Stored(NO_BALLOT, NO_BALLOT, state)) for m in MEMBERS}


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sets(st.sampled_from("abc")), st.booleans())))
def test_a_decided_version_is_never_lost(rounds):
    """Each round somebody stands, some hear it, and it may propose one more value."""
    groups, decided = _groups(), 0
    for value, (leader, hearers, writes) in enumerate(rounds, start=100):
        group = groups[f"{leader}#1"]
        ballot = (max(g.stored.promised[0] for g in groups.values()) + 1, leader)
        group.ballot, group.committed, group.proposal, group._prepared = ballot, None, None, {}
        elected = False
        for name in sorted(hearers | {leader}):
            other = groups[f"{name}#1"]
            if other.prepare(ballot):
                stored = other.stored
                elected |= group.prepared(ballot, f"{name}#1", stored.accepted, stored.state)
        if not elected:
            group.give_up()
            continue
        assert group.proposal is not None
        assert group.proposal.frontier >= decided  # the law
        if writes:
            state = group.proposal
            group.propose(StreamState(state.version, MEMBERS, frontier=value))
        proposal = group.proposal
        for name in sorted(hearers | {leader}):
            accepted = groups[f"{name}#1"].accept(ballot, proposal)
            if accepted and group.accepted(ballot, f"{name}#1", proposal.version):
                decided = max(decided, proposal.frontier)


def test_while_members_change_both_majorities_have_to_agree():
    new = tuple(Member(a, f"{a}#1") for a in "cde")
    state = StreamState(2, new, MEMBERS)
    assert not state.has_quorum({"c#1", "d#1", "e#1"})
    assert not state.has_quorum({"a#1", "b#1", "c#1"})
    assert state.has_quorum({"b#1", "c#1", "d#1"})


def test_a_promise_gives_way_to_a_higher_number_alone():
    promises = Promises()
    promises.give(((0, 9),), 1, "n1", "n1#a")
    promises.give(((3, 4),), 2, "n2", "n2#b")
    assert [(p.first, p.last, p.owner) for p in promises.entries] == [
        (0, 2, "n1"),
        (3, 4, "n2"),
        (5, 9, "n1"),
    ]
    assert promises.highest(((4, 6),), "n1#a") == 2
    assert promises.highest(((5, 6),), "n1#a") == 0
    assert promises.all_of(((0, 2), (5, 9)), "n1#a")
    assert not promises.all_of(((0, 9),), "n1#a")
    assert promises.of(4).owner == "n2"
    assert promises.of(12) is None
