"""A guard on the guards: a reference that is wrong on purpose fails the hand-written cases."""

from functools import cache

import pytest
from tests.conformance.case_files import all_cases
from tests.conformance.mutants import MUTANTS
from tests.conformance.runner import Prepared, compare, prepare, reference_engine


@cache
def prepared_cases() -> list[tuple[str, Prepared]]:
    return [(case.name, prepare(case)) for case in all_cases()]


def first_failure() -> str | None:
    for name, case in prepared_cases():
        results = reference_engine(case.catalog, case.queries, case.inputs, case.options)
        if any(compare(q, case.expected[q.name], results[q.name]) for q in case.queries):
            return name
    return None


def test_without_a_mutation_all_cases_pass():
    assert first_failure() is None


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_caught(name, monkeypatch):
    MUTANTS[name](monkeypatch)
    assert first_failure() is not None
