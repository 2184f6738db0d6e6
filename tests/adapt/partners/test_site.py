"""One live node at a time: what it makes of what it observes, and whom it gives what."""

from thalweg.adapt.partners import messages as say
from thalweg.adapt.partners.objective import Ratio, foreseen, helps
from thalweg.adapt.partners.settings import Settings
from thalweg.adapt.partners.site import GiveAway, Observed, Running, Runs, SitePartners, Stays
from thalweg.overlay.protocol import Call, Deliver, Init, Receive, Send, TimerFired

SECOND_US = 1_000_000
REST_US = 11 * SECOND_US


def node(**settings):
    made = SitePartners(Settings(alpha=0.0, **settings))
    made.step(0, Init("me", 1, {}))
    return made


def observed(*fragments, load=0.8, peers=("other", "third"), **more):
    return Call(Observed(load, fragments, peers, **more))


def running(name="f", load=0.2, home="me", at=(), **more):
    return Running(name, load, 1000.0, home, at, **more)


def sent(effects, kind):
    return [e for e in effects if isinstance(e, Send) and isinstance(e.message, kind)]


def given(effects):
    return [e.value for e in effects if isinstance(e, Deliver) and isinstance(e.value, GiveAway)]


def partnered(*fragments, **more):
    """A node with f, rested, and `other` as a partner with little to do."""
    made = node()
    made.step(0, observed(*fragments, **more))
    made.step(1, Receive("other", say.Propose(0.1)))
    made.step(REST_US, observed(*fragments, **more))
    made.step(REST_US, Receive("other", say.Propose(0.1)))
    made.step(REST_US, TimerFired("round"))
    return made


def offered(made, native=False):
    made.step(REST_US + 1, Receive("other", say.Ask(7, 0.35, 0.1, native, "low")))
    [offer] = sent(made.step(REST_US + 2, TimerFired("give")), say.Offer)
    return offer.message.fragments


def test_what_is_asked_for_is_handed_over_once_the_asker_consents():
    made = partnered(running())
    [fragment] = offered(made)
    assert fragment.fragment == "f"
    consent = Receive("other", say.Consent(7, ("f",)))
    [give] = given(made.step(REST_US + 3, consent))
    assert (give.fragment, give.asker) == ("f", "other")
    assert "asked for 0.35 of a node's time: it has less than the mean" in give.why
    assert "native; neighbours at neither" in give.why
    assert given(made.step(REST_US + 4, consent)) == []  # said twice, done once


def test_what_has_begun_anew_or_moved_rests():
    made = node()
    made.step(0, observed())
    made.step(1, observed(running(has_moved=True), running("g")))
    assert list(made._candidates(2 * SECOND_US)) == []
    assert [c.name for c in made._candidates(3 * SECOND_US)] == ["g"]  # it is settled
    assert [c.name for c in made._candidates(REST_US)] == ["f", "g"]


def test_what_is_on_its_way_is_not_given_and_rests_if_it_stays():
    made = partnered(running())
    made.step(REST_US + 1, observed(running(is_moving=True)))
    assert made.load < 0.8  # it is to go
    assert offered(made) == ()
    made.step(REST_US + 3, observed(running()))
    assert list(made._candidates(REST_US + 4)) == []


def test_what_could_not_go_is_left_alone_for_a_while():
    made = partnered(running())
    made.step(REST_US + 1, Call(Stays("f")))
    assert offered(made) == ()


def test_a_load_that_has_come_or_gone_shows_at_once():
    made = SitePartners(Settings(alpha=0.9))
    made.step(0, Init("me", 1, {}))
    made.step(0, observed(running(load=0.4)))
    made.step(1, observed(load=0.4))  # f has gone, and was half of it
    assert abs(made.load - 0.4) < 0.01


def test_homes_hear_of_their_own_and_ask_for_them():
    made = node()
    made.step(0, observed(running(home="other", at=("third",))))
    [told] = sent(made.step(1, TimerFired("round")), Runs)
    assert (told.to, told.message.entries) == ("other", (("f", ("third",)),))
    home = node()
    home.step(0, observed(load=0.1))
    home.step(1, TimerFired("round"))
    home.step(2, Receive("other", told.message))
    assert (home._abroad(), home._factors()) == ({"other": 1}, {"third": 1})
    for _ in range(6):
        home.step(3, TimerFired("round"))
    assert home._abroad() == {}  # nobody has said so for long


def test_nodes_of_other_sites_are_no_partners():
    made = partnered(running())
    assert "other" in made.circle.partners
    made.step(REST_US + 1, observed(running(), peers=("third",)))
    assert "other" not in made.circle.partners


def test_pr_is_foreseen_from_loads_and_hops():
    now = Ratio(8.0, 1.0, 0.01)
    there = foreseen(now, 0.75, 0.5, 0, 0.0)
    assert (there.ppr, there.cpr) == (4.0, 1.0)
    assert foreseen(now, 0.75, 0.75, 1, 0.02).cpr == 3.0
    assert foreseen(now, 0.75, 0.75, -1, 0.02).cpr == 0.0
    assert helps(now, there, worst=0.0)
    assert not helps(now, foreseen(now, 0.75, 0.75, 1, 0.02), worst=10.0)
    assert helps(now, foreseen(now, 0.75, 0.75, 1, 0.02), worst=11.0)
    assert foreseen(now, 1.3, 0.5, 0, 0.0).ppr < 1.0  # an overloaded node's queue only grows


def test_what_a_hop_would_make_the_worst_is_not_offered():
    ratio = Ratio(2.0, 0.0, 0.001)
    near = running(at=("me",), ratio=ratio)
    assert offered(partnered(near, pr_max=3.0, hop_s=0.1)) == ()
    assert len(offered(partnered(near, pr_max=3.0, hop_s=0.0))) == 1
