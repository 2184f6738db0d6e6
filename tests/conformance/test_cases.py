"""The reference gives what was worked out by hand, case by case."""

import pytest
from tests.conformance.case_files import Case, all_cases, parse_file
from tests.conformance.runner import check, prepare, reference_engine

from thalweg.engine import reference
from thalweg.engine.changelog import faults

CASES = all_cases()


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reference_prints_what_the_case_says(case: Case):
    check(reference_engine, case)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_reference_drops_what_the_case_says(case: Case):
    prepared = prepare(case)
    for query in prepared.queries:
        outcome = reference.run(query.plan, prepared.inputs, **prepared.options)
        for listed, found in ((prepared.late, outcome.late), (prepared.rejects, outcome.rejects)):
            for name, arrivals in found.items():
                assert _contents(arrivals) == _contents(listed.get(name, ()))


def _contents(arrivals):
    return [(a.partition, a.timestamp, a.op, a.row) for a in arrivals]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_what_a_case_expects_is_itself_a_changelog_in_order(case: Case):
    for changes in prepare(case).expected.values():
        assert faults(changes) == []


def test_titles_are_unique():
    assert len({case.name for case in CASES}) == len(CASES)


def test_a_wrong_expectation_is_caught_with_a_readable_report():
    text = """
CREATE STREAM S (a INTEGER) TIMESTAMP BY ts BIGINT;
=== wrong on purpose
SELECT a FROM S [Now]
--- S
3   1
--- q
3 + 1
5 - 1
"""
    (case,) = parse_file("file", text)
    with pytest.raises(AssertionError) as caught:
        check(reference_engine, case)
    assert "unexpected: 4 - (1)" in str(caught.value)
    assert "missing: 5 - (1)" in str(caught.value)


def test_a_case_that_forgets_an_input_is_refused():
    text = """
CREATE STREAM S (a INTEGER) TIMESTAMP BY ts BIGINT;
=== no input
SELECT a FROM S [Now]
--- q
"""
    (case,) = parse_file("file", text)
    with pytest.raises(ValueError, match="no section for S"):
        check(reference_engine, case)
