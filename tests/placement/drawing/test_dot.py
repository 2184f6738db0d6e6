from tests.placement.problems import TWO_WAY, problem_of, two_way
from tests.placement.test_explain import RELAYED

from thalweg.placement.drawing.dot import deployment_dot, plan_dot
from thalweg.placement.explain import Plans


def test_a_deployment_has_hosts_with_loads_and_arrows_with_traffic():
    text = deployment_dot(two_way(), RELAYED)
    assert '  h0 [label="h0\\nCPU 70%, runs 1"];' in text
    assert '  h1 -> h2 [label="b\\n30 bps"];' in text
    assert text.startswith("digraph deployment {")
    assert text.endswith("}\n")


def test_a_plan_leads_from_base_streams_to_the_query():
    text = plan_dot(two_way(), 0, Plans(two_way(), RELAYED).of(0))
    assert '  n [label="a⋈b\\nat h0, 7 CPU"];' in text
    assert '  n_1 [label="relay\\nat h2", style=rounded];' in text
    assert '  n_1 -> n [label="sends b to h0, 30 bps", style=bold];' in text
    assert '  n -> query [label="ab"];' in text


def test_names_are_quoted():
    document = {**TWO_WAY, "queries": [{"name": 'the "best" \\', "wants": "ab"}]}
    problem = problem_of(document)
    text = plan_dot(problem, 0, Plans(problem, RELAYED).of(0))
    assert '  query [label="the \\"best\\" \\\\", shape=plaintext];' in text
