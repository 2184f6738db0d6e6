import pyarrow as pa
import pytest

from thalweg.engine.generators import GeneratorError
from thalweg.engine.generators.packets import Packets, PacketSettings


@pytest.fixture(scope="module")
def routers():
    world = Packets(PacketSettings(seed=1, limit=50_000))
    return {r: pa.Table.from_batches(world.batches(r)).to_pandas() for r in ("X", "Y", "Z")}


def test_routers_see_the_same_hosts_but_different_packets(routers):
    hosts = [set(r["destIP"]) for r in routers.values()]
    assert len(hosts[0] & hosts[1] & hosts[2]) > 900
    assert not routers["X"].equals(routers["Y"])


def test_host_does_not_send_to_itself(routers):
    assert all((r["srcIP"] != r["destIP"]).all() for r in routers.values())


def test_hot_hosts_receive_more(routers):
    shares = routers["X"]["destIP"].value_counts(normalize=True)
    assert shares.iloc[0] > 20 * shares.median()


def test_sizes_and_protocols_are_those_of_networks(routers):
    sizes = routers["Z"]["size"]
    assert (sizes.min(), sizes.max()) == (40, 1500)
    assert (sizes == 40).mean() == pytest.approx(0.45, abs=0.02)
    assert (sizes == 1500).mean() == pytest.approx(0.20, abs=0.02)
    assert routers["Z"]["proto"].value_counts(normalize=True)["TCP"] == pytest.approx(0.8, abs=0.02)


def test_number_of_hosts_is_checked():
    with pytest.raises(GeneratorError, match="hosts is 2 to"):
        PacketSettings(hosts=1)
