"""The generators reach the whole language, and what they write is always understood."""

from collections import Counter

from hypothesis import HealthCheck, Phase, given, settings
from tests.conformance import clauses
from tests.conformance.coverage import (
    WANTED,
    WANTED_OF_VALUES,
    features,
    input_features,
    outcome_features,
)
from tests.conformance.generators import Workload, scripts, values, workloads

from thalweg.cql import compile_script
from thalweg.engine import reference
from thalweg.engine.changelog import faults

EXAMPLES = 600
SCRIPTS = 900


def test_generators_reach_everything_often_enough_to_matter():
    seen: Counter[str] = Counter()
    with_output = 0

    @settings(
        max_examples=EXAMPLES,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(workloads())
    def look(workload: Workload) -> None:
        nonlocal with_output
        (query,) = workload.script().queries
        outcome = reference.run(query.plan, workload.inputs)
        with_output += bool(outcome.changes)
        found = {*features(query.plan), *input_features(workload.inputs)}
        seen.update(found | set(outcome_features(outcome)))

    look()
    assert sorted(WANTED - seen.keys()) == []
    # Cases without any output prove little.
    assert with_output > EXAMPLES * 0.4


def test_every_clause_is_drawn_with_every_type_that_it_takes():
    seen: Counter[str] = Counter()

    @settings(
        max_examples=SCRIPTS,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )
    @given(scripts(queries=2))
    def look(text: str) -> None:
        for query in compile_script(text).queries:
            seen.update(set(clauses.pairs(query.plan)))

    look()
    assert sorted(clauses.WANTED - seen.keys()) == []


def test_script_of_values_uses_every_function_and_cast():
    seen = {f for q in compile_script(values.script()).queries for f in features(q.plan)}
    assert sorted(WANTED_OF_VALUES - seen) == []


def test_reference_has_a_value_for_each_pair_of_edges():
    inputs = values.arrivals()
    for query in compile_script(values.script(40)).queries:
        changes = reference.evaluate(query.plan, inputs)
        assert changes
        assert faults(changes) == []
