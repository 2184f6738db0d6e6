import numpy as np
import pytest

from thalweg.sim.networks import latencies, scatter, transit_stub
from thalweg.sim.networks.scatter import Configuration, NoSuchPlaces


@pytest.fixture(scope="module")
def sand():
    t = transit_stub.generate(transit_stub.SAND, seed=1)
    return latencies.between(t), t.stubs


@pytest.mark.parametrize("wanted", scatter.CONFIGURATIONS.values(), ids=lambda c: c.name)
@pytest.mark.parametrize("sources", [8, 32])
def test_places_have_the_distances_asked_for(sand, wanted, sources):
    latency_us, stubs = sand
    found = scatter.place(latency_us, stubs, wanted, sources=sources, seed=5)
    spots = np.asarray(found.sources)
    nearness = latency_us[np.ix_(spots, spots)] / latency_us.max()
    apd = latency_us[found.proxy, spots].mean() / latency_us.max()
    asd = nearness.sum() / (sources * (sources - 1))
    assert (found.apd, found.asd) == pytest.approx((apd, asd))
    assert apd == pytest.approx(wanted.apd, rel=0.15)
    assert asd == pytest.approx(wanted.asd, rel=0.15)
    assert len({found.proxy, *found.sources}) == sources + 1
    assert set(found.sources) <= set(stubs.tolist())


def test_places_differ_by_seed_alone(sand):
    latency_us, stubs = sand
    one, again, other = (
        scatter.place(latency_us, stubs, scatter.STAR, sources=8, seed=s) for s in (1, 1, 2)
    )
    assert one == again
    assert one != other


def test_distances_that_the_triangle_inequality_forbids_are_refused():
    with pytest.raises(ValueError, match="at most as far apart as the way over the proxy"):
        Configuration("odd", apd=0.1, asd=0.3)


def test_distances_that_the_network_does_not_have_are_refused(sand):
    latency_us, stubs = sand
    far = Configuration("far", apd=1.0, asd=1.0)
    with pytest.raises(NoSuchPlaces, match=r"far: no 8 sources and proxy with APD 1\.0 .* closest"):
        scatter.place(latency_us, stubs, far, sources=8, seed=1, restarts=2)


@pytest.mark.parametrize(("sources", "message"), [(1, "two sources"), (10_000, "don't fit")])
def test_too_few_or_too_many_sources_are_refused(sand, sources, message):
    with pytest.raises(ValueError, match=message):
        scatter.place(*sand, scatter.STAR, sources=sources, seed=1)
