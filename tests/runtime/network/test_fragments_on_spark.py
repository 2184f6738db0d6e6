"""A fragment at a node that ticks on Spark, between nodes that do not."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runtime.network.auctions import Auctions
from tests.runtime.network.processes import Network

from thalweg.cli.network.running import Wanted
from thalweg.engine.site import IN_PROCESS


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_a_fragment_on_spark_gives_what_the_reference_gives(tmp_path: Path) -> None:
    wanted = [
        Wanted("n1", master=IN_PROCESS),
        Wanted("n2", master="local[1]"),
        Wanted("n3", master=IN_PROCESS),
    ]
    with Network(tmp_path, 3, wanted=wanted) as network:
        auctions = Auctions(network, "S", bids="n1", sold="n1", proxy="n3")
        auctions.place("n2", "joined", "counted")
        assert network.fragments("n2")
        for upto in (40, 80, 120):
            auctions.push(upto)
        auctions.check("joined", "counted")
