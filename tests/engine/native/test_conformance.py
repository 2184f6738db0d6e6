"""The native engine gives the reference's changelog on every hand-written case that it takes.

Cases share streaming queries, because starting and planning one takes longer than running it.
"""

from collections import Counter

import pytest
from tests.conformance.case_files import all_cases
from tests.conformance.runner import Prepared, compare, prepare
from tests.drawn import in_turn

from thalweg.engine import native
from thalweg.plan.catalog import QueryDef

CASES_PER_TEST = 14  # in one streaming query
FILES_PER_STREAM = 3

# Why queries of the cases are refused, and how many at least: a guard against refusing too much.
REFUSED = {
    "an aggregate": 30,
    "a Rows window": 15,
    "EXISTS or IN with a sub-query": 10,
    "LEFT JOIN": 10,
    "relation R": 10,
    "RSTREAM": 10,
    "Slide": 8,
    "a window over a derived stream": 5,
    "EXCEPT": 5,
    "DSTREAM": 4,
    "UNION": 3,
    "DISTINCT": 3,
    "INTERSECT": 2,
    "a Tumble or Hop window": 5,
    "a Session window": 3,
    "TOLERANCE": 10,
    "ORDER BY … LIMIT": 3,
}

Prepared_ = tuple[str, Prepared, QueryDef]


def _split() -> tuple[list[Prepared_], Counter[str]]:
    taken: list[Prepared_] = []
    refused: Counter[str] = Counter()
    for case in all_cases():
        prepared = prepare(case)
        for query in prepared.queries:
            try:
                native.check(query.plan)
                taken.append((case.name, prepared, query))
            except native.Unsupported as error:
                refused[error.what] += 1
    return taken, refused


TAKEN, REASONS = _split()
# Cases of a size run together: every batch plans all of them, also those that have ended.
TAKEN.sort(key=lambda case: max(map(len, case[1].inputs.values())))
GROUPS = [TAKEN[i : i + CASES_PER_TEST] for i in range(0, len(TAKEN), CASES_PER_TEST)]


def test_what_is_refused_is_refused_by_name():
    assert set(REASONS) == set(REFUSED)
    assert all(REASONS[what] >= least for what, least in REFUSED.items())


def test_select_project_join_is_taken():
    assert len(TAKEN) >= 80
    assert max(len(native.check(query.plan).inputs) for _, _, query in TAKEN) >= 3


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize(
    ("group", "files_per_trigger"),
    [(n, files) for n in range(len(GROUPS)) for files in in_turn([1000, 1], n % 2, of=2)],
)
def test_changelog_is_that_of_the_case(group, files_per_trigger, spark, tmp_path):
    cases = GROUPS[group]
    largest = max(len(a) for _, prepared, _ in cases for a in prepared.inputs.values())
    settings = native.Settings(
        files_per_trigger=files_per_trigger,
        rows_per_file=max(1, -(-largest // FILES_PER_STREAM)),
        queries_per_job=CASES_PER_TEST,
        partitions=1,
    )
    tasks = [
        native.Task(q.plan, p.inputs, p.options.get("horizons"), p.options.get("start"))
        for _, p, q in cases
    ]
    results = native.run_tasks(spark, tasks, tmp_path, settings)
    reports = {
        name: compare(query, prepared.expected[query.name], found)
        for (name, prepared, query), found in zip(cases, results, strict=True)
    }
    assert {name: report for name, report in reports.items() if report} == {}
