"""A storm over live nodes: they stop and return while links are cut, slowed and broken.

Some seconds here, ten minutes in `make soak` (THALWEG_STORM_S).
"""

import os
import random
import time
from collections import Counter

from tests.runtime.cluster import QUICK, Cluster
from tests.runtime.test_protocols_live import CHORD, TREE
from tests.runtime.waiting import eventually

from thalweg.overlay.catalogue import Catalogue, CatalogueSettings, Changed, Drop, Put
from thalweg.overlay.chord.messages import Create
from thalweg.overlay.chord.protocol import Chord
from thalweg.overlay.coordinators.tree import CoordinatorTree
from thalweg.overlay.membership import Membership
from thalweg.overlay.stack import Stack

STORM_S = float(os.environ.get("THALWEG_STORM_S", "5"))
QUICK_CATALOGUE = CatalogueSettings(compare_every_us=200_000, settle_us=60_000)


def build():
    membership = Membership(QUICK)
    above = [Chord(membership, CHORD), CoordinatorTree(membership, TREE)]
    return Stack([membership, *above, Catalogue(membership, QUICK_CATALOGUE)])


class Storm:
    def __init__(self, cluster, seed):
        self.cluster = cluster
        self.random = random.Random(seed)
        self.done = Counter()
        self.acknowledged = {}  # (name, owner) -> text, or None if it was dropped
        self.away = []
        self.texts = 0

    def rage(self, seconds):
        deeds = {self.define: 10, self.stop: 2, self.restart: 2, self.part: 1, self.heal: 1}
        deeds[self.worsen_links] = 2
        end_s = time.monotonic() + seconds
        while time.monotonic() < end_s:
            (deed,) = self.random.choices(list(deeds), list(deeds.values()))
            deed()
            time.sleep(self.random.random() * 0.1)
        self.heal()
        while self.away:
            self.restart()

    def define(self):
        node = self.random.choice(self.cluster.nodes)
        entries = node.read("catalogue", Catalogue.entries)
        own = [e.name for e in entries if e.owner == node.address]
        if own and self.random.random() < 0.4:
            request, text = Drop(self.random.choice(own)), None
        else:
            self.texts += 1
            text = f"text {self.texts}"
            request = Put(self.random.choice("abcdef"), "stream", text)
        (answer,) = node.driver.call("catalogue", request).result(10)
        if isinstance(answer, Changed):
            self.acknowledged[request.name, node.address] = text
            self.done[type(request).__name__] += 1

    def stop(self):
        if len(self.cluster.nodes) > 3:
            node = self.random.choice(self.cluster.nodes)
            self.cluster.stop(node)
            self.away.append(node)
            self.done["stop"] += 1

    def restart(self):
        if self.away:
            self.cluster.restart(self.away.pop(self.random.randrange(len(self.away))))

    def part(self):
        everybody = sorted(self.cluster.addresses)
        self.random.shuffle(everybody)
        cut = self.random.randrange(1, len(everybody))
        self.cluster.mesh.partition(set(everybody[:cut]), set(everybody[cut:]))
        self.done["partition"] += 1

    def heal(self):
        self.cluster.mesh.heal()

    def worsen_links(self):
        relays = list(self.cluster.mesh.relays.values())
        for relay in self.random.sample(relays, min(3, len(relays))):
            harm = self.random.choice([relay.hang_up, relay.refuse, self._delay, self._throttle])
            harm() if harm in (relay.hang_up, relay.refuse) else harm(relay)
            self.done["link"] += 1

    def _delay(self, relay):
        relay.delay(self.random.random() * 0.3)

    def _throttle(self, relay):
        relay.throttle(20_000)


def test_after_a_storm_all_agree_and_nothing_acknowledged_is_lost(tmp_path):
    with Cluster(tmp_path, build, 6, relays=True) as cluster:
        cluster[0].driver.call("chord", Create()).result(5)
        cluster.wait_until_all_know_all()
        storm = Storm(cluster, seed=1)
        storm.rage(STORM_S)
        cluster.wait_until_all_know_all()

        def agree():
            found = [n.read("catalogue", lambda c: (c.table.hashes, c.names())) for n in cluster]
            return all(f == found[0] for f in found)

        eventually(agree, within_s=60)
        entries = cluster[0].read("catalogue", Catalogue.entries)
        standing = {e.key: e.text for e in entries}
        expected = {key: text for key, text in storm.acknowledged.items() if text is not None}
        assert standing == expected
        assert all(n.driver.health().failures == 0 for n in cluster)
        assert len(storm.done) >= 4, storm.done  # it was one
