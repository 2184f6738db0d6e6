from xml.etree import ElementTree

from tests.placement.problems import TWO_WAY, problem_of, two_way
from tests.placement.test_explain import RELAYED

from thalweg.placement.drawing.svg import deployment_svg, plan_svg
from thalweg.placement.explain import Plans

SVG = "{http://www.w3.org/2000/svg}"


def texts(svg):
    return ["".join(t.itertext()) for t in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def kinds(svg):
    return [r.get("class") for r in ElementTree.fromstring(svg).iter(f"{SVG}rect")]


def test_a_deployment_shows_every_host_with_its_load():
    svg = deployment_svg(two_way(), RELAYED)
    assert {"h0", "h1", "h2", "CPU 70%, runs 1"} <= set(texts(svg))
    assert kinds(svg).count("bar") == 3


def test_a_full_host_stands_out():
    document = {**TWO_WAY, "hosts": [{**h, "cpu": 7} for h in TWO_WAY["hosts"]]}
    assert kinds(deployment_svg(problem_of(document), RELAYED)).count("full") == 1


def test_a_plan_shows_runs_relays_homes_and_what_is_sent():
    problem = two_way()
    svg = plan_svg(problem, 0, Plans(problem, RELAYED).of(0))
    assert sorted(kinds(svg)) == ["home", "home", "relay", "run"]
    assert {"q0", "a⋈b", "sends b to h2, 30 bps", "sends b to h0, 30 bps"} <= set(texts(svg))


def test_boxes_of_a_plan_don_t_overlap():
    problem = two_way()
    root = ElementTree.fromstring(plan_svg(problem, 0, Plans(problem, RELAYED).of(0)))
    places = {(float(r.get("x")), float(r.get("y"))) for r in root.iter(f"{SVG}rect")}
    assert len(places) == 4
    assert all(0 <= x < float(root.get("width")) for x, _ in places)
    assert all(0 <= y < float(root.get("height")) for _, y in places)


def test_names_with_markup_stay_text():
    problem = problem_of({**TWO_WAY, "queries": [{"name": "<q> & co", "wants": "ab"}]})
    assert "<q> & co" in texts(plan_svg(problem, 0, Plans(problem, RELAYED).of(0)))
