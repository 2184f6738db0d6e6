"""A table and its copy: change by change, whatever is lost or doubled."""

from hypothesis import given
from hypothesis import strategies as st
from tests.overlay.distribution.making import running

from thalweg.overlay.distribution.entries import Provider, key_of
from thalweg.overlay.distribution.ledger import Copy, Ledger


def put(ledger, entry):
    ledger.put(key_of(entry), entry)


def test_only_what_changed_is_reported():
    ledger = Ledger()
    put(ledger, Provider("a", 1.0))
    put(ledger, Provider("b", 1.0))
    put(ledger, Provider("b", 1.0))  # says nothing new
    assert ledger.version == 2
    put(ledger, Provider("a", 2.0))
    report = ledger.report(7, since=2)
    assert (report.since, report.until, report.changed) == (2, 3, (Provider("a", 2.0),))


def test_a_report_that_skips_changes_is_not_taken():
    ledger, copy = Ledger(), Copy(7)
    put(ledger, Provider("a", 1.0))
    copy.take(ledger.report(7, 0))
    put(ledger, Provider("b", 1.0))
    put(ledger, Provider("c", 1.0))
    assert copy.take(ledger.report(7, since=2)) == []
    assert copy.version == 1


def test_forgotten_removals_make_the_next_report_a_whole_one():
    ledger, copy = Ledger(), Copy(7)
    put(ledger, running("q", "a"))
    copy.take(ledger.report(7, 0))
    put(ledger, Provider("b", 1.0))
    ledger.put("q q", None)
    ledger.told(ledger.version)  # to somebody else, who was the parent meanwhile
    report = ledger.report(7, since=copy.version)
    assert report.since == 0
    copy.take(report)
    assert copy.entries == ledger.entries


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("put"), st.sampled_from("abcde"), st.integers(0, 3)),
            st.tuples(st.just("drop"), st.sampled_from("abcde"), st.just(0)),
            st.tuples(
                st.sampled_from(["lost", "arrives", "again", "unheard"]), st.just(""), st.just(0)
            ),
        ),
        max_size=60,
    )
)
def test_a_copy_equals_the_table_once_a_report_and_its_answer_arrive(deeds):
    ledger, copy, told, last = Ledger(), Copy(1), 0, None
    for deed, name, value in deeds:
        if deed == "put":
            put(ledger, Provider(name, float(value)))
        elif deed == "drop":
            if f"p {name}" in ledger.entries:
                ledger.put(f"p {name}", None)
        elif deed == "again" and last is not None:
            copy.take(last)  # a copy of an old message
        else:
            last = ledger.report(1, told)
            if deed in ("arrives", "unheard"):
                copy.take(last)
            if deed == "arrives":  # and so does the answer
                told = copy.version
                ledger.told(told)
    for _ in range(2):  # the first answer may say that a part is missing
        copy.take(ledger.report(1, told))
        told = copy.version
    assert copy.entries == ledger.entries
