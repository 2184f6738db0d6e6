"""A deployment on its network: near hosts near each other, and everything in use marked."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import numpy as np
from tests.placement.problems import problem_of
from tests.placement.sand.test_deploying import TWO
from tests.placement.test_network_use import AT_SOURCE

from thalweg.placement.arrays import ints
from thalweg.placement.deployment import nothing
from thalweg.placement.drawing.layout import positions
from thalweg.placement.drawing.map import map_svg

SVG = "{http://www.w3.org/2000/svg}"


def test_distances_in_the_plane_are_kept() -> None:
    places = np.random.default_rng(0).random((30, 2)) * 100
    distance = np.linalg.norm(places[:, None] - places[None, :], axis=2)
    found = positions(distance)
    again = np.linalg.norm(found[:, None] - found[None, :], axis=2)
    np.testing.assert_allclose(again, distance, atol=1e-6)


def test_hosts_without_a_way_are_far_off_and_few_hosts_are_no_problem() -> None:
    far = positions(np.array([[0, 1, np.inf], [1, 0, np.inf], [np.inf, np.inf, 0]]))
    assert np.linalg.norm(far[0] - far[2]) > np.linalg.norm(far[0] - far[1])
    assert positions(np.zeros((1, 1))).shape == (1, 2)
    assert positions(np.zeros((0, 0))).shape == (0, 2)


def test_operators_sources_and_proxies_are_marked() -> None:
    problem = problem_of(TWO)
    root = ET.fromstring(map_svg(problem, AT_SOURCE))
    titles = [t.text for t in root.iter(f"{SVG}title")]
    assert "h0; has a; runs a⋈b" in titles
    assert "h1; has b" in titles
    assert "h2; proxy of q0" in titles
    assert "h1 to h0: b, 30 bps" in titles
    square = [r for r in root.iter(f"{SVG}rect") if r.find(f"{SVG}title") is not None]
    assert len(square) == 1
    dots = [c for c in root.iter(f"{SVG}circle") if c.find(f"{SVG}title") is None]
    assert len(dots) == 4


def test_given_positions_and_links_are_drawn_as_given() -> None:
    problem = problem_of(TWO)
    places = np.array([[0, 0], [1, 0], [2, 0], [4, 0]], float)
    root = ET.fromstring(map_svg(problem, AT_SOURCE, places, ints([0, 3, 1, 2]).reshape(2, 2)))
    xs = [float(c.attrib["cx"]) for c in root.iter(f"{SVG}circle") if "class" not in c.attrib]
    np.testing.assert_allclose(np.diff(xs) / (xs[1] - xs[0]), [1, 1, 2], atol=1e-2)
    thin = [p for p in root.iter(f"{SVG}path") if p.attrib.get("stroke-width") == "0.4"]
    assert len(thin) == 2


def test_nothing_deployed_is_a_map_of_dots() -> None:
    text = map_svg(problem_of(TWO), nothing(2))
    assert text.count("<circle") == 4
