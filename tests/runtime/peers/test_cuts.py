"""Peers whose links are cut and healed: each side waits for the other, and nothing is lost."""

import threading
import time

from tests.runtime.peers.nodes import Peers
from tests.runtime.peers.relay import Relays
from tests.runtime.peers.test_peers import begin, end, judge, push
from tests.runtime.peers.workload import QUERIES, Rows

ASKED = {name: QUERIES[name] for name in ("pair", "chain")}


def test_cut_links_cost_no_row(tmp_path):
    rows = Rows(31)
    relays = Relays()
    try:
        with Peers(tmp_path, 4, relays=relays) as peers:
            told = {name: node.address for name, node in peers.nodes.items()}
            begin(peers, ASKED)
            push(peers, rows, 0, 20)
            for low, senders, receivers, both_ways in (
                (20, ("n1", "n2"), ("n3", "n4"), True),  # two halves
                (40, ("n3",), ("n1", "n2", "n4"), False),  # n3 hears, and is not heard
                (60, ("n4",), ("n1", "n2", "n3"), True),  # n4 is alone
            ):
                here, there = [told[n] for n in senders], [told[n] for n in receivers]
                relays.cut(here, there)
                if both_ways:
                    relays.cut(there, here)
                # What is pushed is on the source's disk, and waits for the owners of its values.
                pushing = threading.Thread(target=push, args=(peers, rows, low, low + 20, 6))
                pushing.start()
                time.sleep(3)
                relays.heal()
                pushing.join(120)
                assert not pushing.is_alive()
            end(peers)
            judge(peers, rows, ASKED)
    finally:
        relays.close()
