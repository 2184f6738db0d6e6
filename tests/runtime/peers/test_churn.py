"""Peers as processes that are killed, paused and started again, while rows go on coming.

With THALWEG_CHURN_MINUTES=0 five nodes and three faults; with more, as in `make soak`, sixteen
nodes, of which one a minute is killed and comes back, within its place or after it was passed on.
"""

import os
import random
import time
from collections import Counter

import pytest
from tests.runtime.network.processes import Network, patiently
from tests.runtime.peers.workload import QUERIES, STREAMS, Rows, combinations, net_of

MINUTES = float(os.environ.get("THALWEG_CHURN_MINUTES", "0"))
NODES = int(os.environ.get("THALWEG_CHURN_NODES", "16" if MINUTES else "5"))
EVERY_S = float(os.environ.get("THALWEG_CHURN_EVERY_S", "60"))
ROUND = 10  # instants
ASKED = {"pair": "n1", "chain": "n2", "three": "n3"}


class Churn:
    def __init__(self, net, seed):
        self.net, self.rows = net, Rows(seed)
        names = sorted(net.nodes, key=lambda n: int(n[1:]))
        self.sources = {
            "X": names[: max(3, len(names) // 2)],
            "Y": names[1 : max(4, len(names) // 2)],
            "Z": names[2:5],
        }
        self.time = 0
        self.last = {}  # what a node was pushed
        self.batches = 0
        self.machines = len(names)

    def begin(self):
        self.net.cql("n1", STREAMS)
        for query, node in ASKED.items():
            self.net.cql(node, f"CREATE QUERY {query} AS {QUERIES[query]}")
        for stream, nodes in self.sources.items():
            for node in nodes:
                patiently(lambda n=node, s=stream: self.open(n, s), 180)

    def push(self, node, stream, rows):
        self.batches += 1
        path = f"/streams/{stream}/tuples?batch_id=b{self.batches}"
        done = patiently(lambda: self.net.ask(node, "POST", path, json=rows), 180).json()
        assert done["late"] == 0, (node, stream, done)
        self.last[node] = (path, rows)

    def push_again(self, node):
        """What was acknowledged counts once, also if its source was passed on meanwhile."""
        path, rows = self.last[node]
        done = patiently(lambda: self.net.ask(node, "POST", path, json=rows), 180).json()
        assert done["repeated"], done

    def round(self, away=()):
        """Everybody who is there says something of the same instants. Who was passed on meanwhile
        is a source again before the others go on."""
        low, self.time = self.time, self.time + ROUND
        there = [(n, s) for s, nodes in self.sources.items() for n in nodes if n not in away]
        for node, stream in there:
            patiently(lambda n=node, s=stream: self.open(n, s), 180)
        for node, stream in there:
            self.push(node, stream, self.rows.draw(node, stream, low, self.time, 3))

    def replace(self, gone):
        """A new machine is a source of what the one that is gone was a source of."""
        self.machines += 1
        name = f"n{self.machines}"
        self.net.begin(name)
        for nodes in self.sources.values():
            nodes += [name] * (gone in nodes)
        return name

    def open(self, node, stream):
        return self.net.ask(node, "POST", f"/streams/{stream}/tuples", json=[])

    def judge(self):
        end = self.time + 100
        for stream, nodes in self.sources.items():
            for node in nodes:
                path = f"/streams/{stream}/heartbeat"
                ask = lambda n=node, p=path: self.net.ask(n, "POST", p, json={"at": end})  # noqa: E731
                patiently(ask, 180)
        for query, node in ASKED.items():
            until = time.monotonic() + 300
            while self.net.final(query, node) < end - 1:
                assert time.monotonic() < until, (query, self.net.final(query, node), end)
                time.sleep(0.3)
            expected = self.rows.expected(QUERIES[query], end)
            said = self.said(query, node)
            assert len(said) == len(expected) > 0, query
            assert said == expected, query

    def judge_with_losses(self, gone):
        """`pair`: the reference's rows, less those of combinations that were reported as lost."""
        end = self.time + 100
        for stream, nodes in self.sources.items():
            for node in set(nodes) - set(gone):
                path = f"/streams/{stream}/heartbeat"
                ask = lambda n=node, p=path: self.net.ask(n, "POST", p, json={"at": end})  # noqa: E731
                patiently(ask, 180)
        asker = ASKED["pair"]
        until = time.monotonic() + 300
        while self.net.final("pair", asker) < end - 1:
            assert time.monotonic() < until, (self.net.final("pair", asker), end)
            time.sleep(0.3)
        path = "/queries/pair/results?format=json&limit=1"
        told = patiently(lambda: self.net.ask(asker, "GET", path)).json().get("lost", [])
        lost = {(x["node"], x["stream"]): x["since"] for x in told}
        assert lost
        assert {node for node, _ in lost} <= set(gone)
        expected = net_of(self.rows.expected(QUERIES["pair"], end))
        for (start, over), row, parts in combinations(self.rows):
            if any(part in lost and start >= lost[part] for part in parts):
                expected[start, row] -= 1
                expected[over, row] += 1
        expected = {key: count for key, count in expected.items() if count}
        assert dict(net_of(self.said("pair", asker))) == expected

    def said(self, query, at):
        found, after = [], None
        path = f"/queries/{query}/results"
        while True:
            params = {"format": "json", **({"after": after} if after else {})}
            told = patiently(lambda p=params: self.net.ask(at, "GET", path, params=p)).json()
            if not told["rows"]:
                return found
            after = told["next"]
            found += [(r["ts"], r["op"], tuple(r["row"].values())) for r in told["rows"]]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(
    "THALWEG_CHURN_MINUTES" not in os.environ, reason="processes are killed: `make soak` plays it"
)
def test_killed_and_paused_peers_lose_and_double_nothing(tmp_path):
    with Network(tmp_path, NODES, "--mode", "p2p", "--copies", "1") as net:
        churn = Churn(net, 7)
        churn.begin()
        churn.round()
        if MINUTES:
            storm(churn, net)
        else:
            net.kill("n4")  # a source of all three, and an owner
            churn.round(away=("n4",))
            net.begin("n4")
            churn.round()
            net.pause("n2")  # who has asked, and is a source
            time.sleep(2)
            net.go_on("n2")
            churn.round()
            net.kill("n1")
            churn.round(away=("n1",))
            time.sleep(12)  # its sources are passed on to who has copies
            churn.round(away=("n1",))
            net.begin("n1")
            churn.push_again("n1")
            churn.round()
        churn.judge()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.skipif(not MINUTES, reason="minutes of processes: THALWEG_CHURN_MINUTES sets how many")
def test_what_churn_beyond_the_repair_time_takes_away_is_what_is_reported(tmp_path):
    """Every minute a source goes for good together with who has the only copies of its tuples, and
    as many new nodes come in their place."""
    with Network(tmp_path, NODES, "--mode", "p2p", "--copies", "1") as net:
        churn = Churn(net, 8)
        churn.begin()
        churn.round()
        rng = random.Random(12)
        until = time.monotonic() + 60 * MINUTES
        gone = []
        there = sorted(set(net.nodes) - set(ASKED.values()))
        while time.monotonic() < until:
            due = time.monotonic() + EVERY_S
            told = patiently(lambda: net.ask("n1", "GET", "/network")).json()["nodes"]
            roles = {n["name"]: n["role"] for n in told if n["name"] in there and n.get("role")}
            holders = {name: role["copied_to"] for name, role in roles.items()}
            able = [n for n in sorted(roles) if _may_go([n, *holders[n]], roles)]
            if not able:
                churn.round(away=gone)  # until registers have moved, and copies are renewed
                continue
            name = rng.choice(able)
            together = (name, *holders[name])
            for name in together:
                net.kill(name)
                there.remove(name)
            gone += together
            for name in together:
                patiently(lambda n=name: _forgotten(net, n), 180)
                there.append(churn.replace(name))
            while time.monotonic() < due:
                churn.round(away=gone)
                time.sleep(0.5)
        churn.judge_with_losses(gone)


def _may_go(together, roles):
    """A source with its holders, but no two of the three that keep one stream's register: without
    a majority of them the stream waits."""
    if len(together) < 2 or not set(together) <= set(roles):
        return False
    kept = Counter(stream for name in together for stream in roles[name]["registers"])
    return max(kept.values(), default=0) < 2


def _forgotten(net, name):
    """Once it counts as down."""
    answer = net.ask("n1", "POST", "/network/forget", json={"node": name})
    if answer.status_code == 409:
        answer.status_code = 503  # not yet
    return answer


def storm(churn, net):
    rng = random.Random(11)
    until = time.monotonic() + 60 * MINUTES
    while time.monotonic() < until:
        due = time.monotonic() + EVERY_S
        name = rng.choice(sorted(net.nodes))
        down_s = rng.choice((1, 5, 20))
        net.kill(name)
        back = time.monotonic() + down_s
        while time.monotonic() < back:
            churn.round(away=(name,))
            time.sleep(0.5)
        net.begin(name)
        while time.monotonic() < due:
            churn.round()
            time.sleep(0.5)
