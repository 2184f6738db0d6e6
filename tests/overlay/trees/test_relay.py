"""What a node has of a stream, for itself and for those below."""

from hypothesis import given
from hypothesis import strategies as st

from thalweg.overlay.trees.home import Home
from thalweg.overlay.trees.relay import Relay
from thalweg.overlay.trees.stream import Line, Spec, Tree

TREE = Tree("h", "s")


def lines(*labels):
    return tuple(Line(at, at * 10, label) for at, label in enumerate(labels))


def reading(klass, begins=0):
    relay = Relay(TREE)
    relay.begin(klass, begins)
    relay.choose_start()
    return relay


def test_a_reader_takes_the_rows_of_its_class_once():
    relay, rows = reading(1), lines((0, 1), (0,), (1,))
    assert relay.take((0, 1), 0, 3, rows)
    assert relay.read() == [(0, 0), (2, 20)]
    assert relay.take((0, 1), 0, 3, rows)  # again: nothing new
    assert relay.read() is None


def test_a_gap_and_a_batch_for_other_classes_are_refused():
    relay = reading(1)
    assert not relay.take((1,), 2, 3, ())
    assert not relay.take((0,), 0, 3, lines((0,)))
    assert relay.upto == 0


def test_silence_moves_a_reader_on():
    relay = reading(1)
    assert relay.take((1,), 0, 7, ())
    assert relay.read() == []
    assert relay.place == 7


def test_a_child_with_another_class_makes_a_relay_begin_anew():
    relay = reading(1)
    relay.take((1,), 0, 5, lines((1,), (1,)))
    relay.read()
    relay.subscribe(0, "c", (2,), 3)
    assert not relay.can_serve("c")
    relay.choose_start()
    assert (relay.start, relay.upto) == (3, 3)  # from where the child needs it; nothing is had yet
    assert relay.classes == (1, 2)
    assert not relay.take((1,), 3, 5, ())  # on its way since before
    assert relay.take((1, 2), 3, 6, (Line(4, 40, (2,)),))
    assert relay.batch("c", False) == ((2,), 3, 6, (Line(4, 40, (2,)),))
    assert relay.read() == []  # nothing twice


def test_what_all_have_taken_is_dropped_and_served_no_more():
    relay = reading(1)
    relay.subscribe(0, "c", (1,), 0)
    relay.take((1,), 0, 3, lines((1,), (1,), (1,)))
    relay.read()
    relay.choose_start()
    assert len(relay.lines) == 3  # the child has none of it
    relay.subscribe(1, "c", (1,), 2)
    relay.choose_start()
    assert [x.at for x in relay.lines] == [2]


def test_who_is_silent_is_forgotten():
    relay = reading(1)
    relay.subscribe(10, "c", (2,), 0)
    relay.forget_silent(11)
    assert relay.classes == (1,)


def test_a_place_survives_a_restart():
    relay = reading(1, begins=4)
    relay.spec = Spec("updates", 1)
    again = Relay.restored(relay.remembered())
    assert (again.tree, again.spec, again.klass, again.place) == (TREE, relay.spec, 1, 4)


@given(st.lists(st.one_of(st.integers(-9, 9), st.sampled_from(["deviation", "updates", "age"]))))
def test_a_home_comes_back_from_its_journal_as_it_was(deeds):
    home, journal = Home(TREE), []
    for deed in deeds:
        if isinstance(deed, int):
            home.publish(deed)
        else:
            home.open(Spec(deed, 2))
        journal += [entry for _, entry in home.to_journal()]
    again = Home.replayed(TREE, journal)
    assert again.lines == home.lines
    assert again.to_journal() == []
    assert again.open(Spec("deviation", 2))[0] == home.open(Spec("deviation", 2))[0]


def test_newcomers_to_a_class_begin_with_what_it_holds():
    home = Home(TREE)
    home.publish(10)
    klass, said = home.open(Spec("deviation", 5))
    assert said == (Line(0, 10, (klass,)),)
    home.publish(12)
    home.publish(20)
    home.publish(21)
    assert home.begins(klass) == 1  # 20 is what it holds
    assert home.lines[1].value == 20
    assert home.open(Spec("deviation", 5)) == (klass, None)
