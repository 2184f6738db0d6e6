"""Grants: every attempt at another provider is another epoch."""

from tests.overlay.distribution.making import epoch, query

from thalweg.overlay.distribution.granting import Granter
from thalweg.overlay.distribution.messages import Found, Grant, Refused, Seek, Took
from thalweg.overlay.protocol import Send


def granter(life=1):
    found = Granter(answer_within_us=10, tries=2)
    found.begin("x", life)
    return found


def sent(effects, kind):
    return [(e.to, e.message) for e in effects if isinstance(e, Send) and type(e.message) is kind]


def test_the_tree_is_asked_then_the_provider_gets_it():
    node = granter()
    [(to, question)] = sent(node.start(query("q"), 1.0, None, "root"), Seek)
    assert to == "root"
    [(to, grant)] = sent(node.found(Found(question.token, "p")), Grant)
    assert (to, grant.epoch) == ("p", epoch(1))
    assert node.is_taken(Took("q", epoch(1)))


def test_a_second_answer_to_one_question_grants_nothing():
    node = granter()
    [(_, question)] = sent(node.start(query("q"), 1.0, None, "root"), Seek)
    node.found(Found(question.token, "p"))
    assert node.found(Found(question.token, "other")) == []


def test_a_provider_that_does_not_answer_is_asked_again_in_the_same_epoch():
    node = granter()
    [(_, question)] = sent(node.start(query("q"), 1.0, epoch(4), "root"), Seek)
    node.found(Found(question.token, "p"))
    assert sent(node.late("q", "root"), Grant)[0][1].epoch == epoch(5)


def test_the_next_provider_gets_the_next_epoch():
    node = granter()
    [(_, question)] = sent(node.start(query("q"), 1.0, epoch(4), "root"), Seek)
    node.found(Found(question.token, "p"))
    node.late("q", "root")
    [(_, question)] = sent(node.late("q", "root"), Seek)
    [(to, grant)] = sent(node.found(Found(question.token, "p2")), Grant)
    assert (to, grant.epoch) == ("p2", epoch(6))
    assert not node.is_taken(Took("q", epoch(5)))


def test_no_epoch_is_issued_twice_even_by_jobs_that_know_no_better():
    node = granter()
    first = node.start(query("q"), 1.0, epoch(3), "root", to="p")
    node.stop("q")
    second = node.start(query("q"), 1.0, epoch(3), "root", to="p2")
    epochs = [m.epoch for _, m in sent(first + second, Grant)]
    assert epochs == [epoch(4), epoch(5)]


def test_epochs_of_two_lives_differ():
    assert granter(1).next_epoch("q", None) != granter(2).next_epoch("q", None)


def test_an_order_that_nobody_follows_is_dropped():
    node = granter()
    node.start(query("q"), 1.0, epoch(1), "root", to="p")
    node.late("q", "root")
    assert node.late("q", "root") == []
    assert not node.jobs


def test_who_knows_a_higher_epoch_is_believed():
    node = granter()
    [(_, question)] = sent(node.start(query("q"), 1.0, epoch(1), "root"), Seek)
    node.found(Found(question.token, "p"))
    node.refused(Refused("q", epoch(2), epoch(9)))
    [(_, question)] = sent(node.late("q", "root"), Seek)
    [(_, grant)] = sent(node.found(Found(question.token, "p")), Grant)
    assert grant.epoch == epoch(10)


def rescued(node, lost):
    [(_, question)] = sent(node.start(query("q"), 1.0, lost, "root", is_rescue=True), Seek)
    [(_, grant)] = sent(node.found(Found(question.token, "p")), Grant)
    node.stop("q")
    return grant.epoch


def test_a_rescue_ranks_right_below_what_it_stands_in_for():
    found = rescued(granter(), epoch(4, "a"))
    assert epoch(3, "z", 9) < found < epoch(4, "a")


def test_a_rescue_of_a_rescue_ranks_above_it():
    lost = rescued(granter(), epoch(4, "a"))
    found = rescued(granter(life=2), lost)
    assert lost < found < epoch(4, "a")


def test_no_two_rescues_are_the_same():
    node = granter()
    assert rescued(node, epoch(4)) != rescued(node, epoch(4))


def test_a_rescue_in_between_does_not_make_a_number_free_again():
    node = granter()
    first = node.next_epoch("q", epoch(1))
    rescued(node, epoch(1))
    assert node.next_epoch("q", epoch(1)) > first


def refused_rescue(node, lost, *refusals):
    """What is granted to stand in for it after these were refused."""
    effects = node.start(query("q"), 1.0, lost, "root", is_rescue=True)
    for fence, is_over in (*refusals, (None, None)):
        [(_, question)] = sent(effects, Seek)
        [(_, grant)] = sent(node.found(Found(question.token, "p")), Grant)
        if fence is not None:
            node.refused(Refused("q", grant.epoch, fence, is_over))
            effects = node.late("q", "root")
    return grant.epoch


def test_a_rescue_ranks_above_an_epoch_that_is_over_and_below_what_may_have_come_after_it():
    found = refused_rescue(granter(), epoch(4, "a"), (epoch(4, "a"), True))
    assert epoch(4, "a") < found < epoch(5, "a")
    found = refused_rescue(granter(), epoch(4, "a"), (epoch(6, "a"), True))
    assert epoch(6, "a") < found < epoch(7, "a")


def test_a_rescue_ranks_above_an_epoch_that_is_over_and_has_the_number_of_the_lost_one():
    found = refused_rescue(granter(), epoch(4, "b"), (epoch(4, "a"), True))
    assert epoch(4, "b") < found < epoch(5, "a")


def test_a_rescue_ranks_above_a_rescue_that_is_over():
    found = refused_rescue(granter(), epoch(4, "a"), (epoch(3, "z", rescue=7), True))
    assert epoch(3, "z", rescue=7) < found < epoch(4, "a")


def test_a_rescue_stays_below_an_epoch_that_runs():
    found = refused_rescue(granter(), epoch(4, "a"), (epoch(4, "a"), True), (epoch(6, "a"), False))
    assert epoch(5, "z") < found < epoch(6, "a")
