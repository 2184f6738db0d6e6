"""SAND, section 5: messages that it takes to place a query, by the size of zones.

Balanced trees on the overlay, placed by the protocol of section 4 with nothing failing; each kind
of message beside its bound.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from thalweg.experiments.report import Beside, Goal, Progress, Report
from thalweg.experiments.sand.peers import Peers, Placing, make_peers, place_by_protocol
from thalweg.overlay.sand.query import ALGORITHMS, placer_named
from thalweg.placement.sand.placing import place
from thalweg.placement.sand.tree import Tree
from thalweg.placement.sand.workload import Shape, draw_tree

if TYPE_CHECKING:
    from matplotlib.axes import Axes


CASE = ("algorithm", "depth", "levels of a zone")
KINDS = {  # of messages, in a table of their own
    "ADD_SUBTREE": ("AddSubtree",),
    "to sources": ("Visit",),
    "MAP": ("MapSubtree",),
    "OPERATOR_MAPPED": ("OperatorMapped",),
    "OPERATOR_REMAPPED": ("OperatorRemapped",),
    "INVALIDATE_MAP": ("InvalidateMap",),
    "answers": ("Hosted", "Known"),
}


@dataclass(frozen=True)
class Parameters:
    seeds: int = 3  # topologies
    trees: int = 4  # on each, of each depth
    peers: int = 300
    depths: tuple[int, ...] = (2, 3, 4, 5)
    fanout: int = 2
    levels: tuple[int, ...] = (1, 2, 3)  # of operators in a zone; and the whole tree
    k: int = 10

    def __post_init__(self) -> None:
        if self.fanout ** max(self.depths) >= self.peers:
            raise ValueError("every source and the proxy stand at peers of their own: more peers")

    @classmethod
    def quick(cls) -> Parameters:
        return cls(seeds=1, trees=2, peers=100, depths=(2, 3, 4))


def run(parameters: Parameters, progress: Progress) -> Report:
    p = parameters
    found: dict[tuple[str, int, int], list[tuple[Placing, Placing, float]]] = {}
    for seed in range(p.seeds):
        peers = make_peers(p.peers, seed)
        for i, depth in enumerate(p.depths):
            progress(f"topology {seed}, depth {depth}", (seed + i / len(p.depths)) / p.seeds)
            for number in range(p.trees):
                tree = _tree(p, depth, [seed, depth, number])
                for algorithm in ALGORITHMS:
                    central = place(tree, peers.ways, placer_named(algorithm, p.k))
                    cost = tree.cost(central, peers.ways.weight)
                    for levels in _levels(p, depth):
                        case = found.setdefault((algorithm, depth, levels), [])
                        case.append(_measure(p, peers, tree, algorithm, levels, cost))
    rows = [_row(p, *case, found[case]) for case in sorted(found, key=_order)]
    return Report(
        "sand-messages",
        "Messages to place a query, by the size of zones (SAND, section 5)",
        asdict(parameters),
        [{name: value for name, value in row.items() if name not in KINDS} for row in rows],
        goals=_goals(p, rows),
        beside=_beside(p, rows),
        notes=NOTES,
        details={"kinds": [{name: row[name] for name in (*CASE, *KINDS)} for row in rows]},
        figures={
            "edge": lambda axes: _draw(axes, rows, "edge"),
            "edge-plus": lambda axes: _draw(axes, rows, "edge+"),
        },
    )


def _order(case: tuple[str, int, int]) -> tuple[int, int, int]:
    return (ALGORITHMS.index(case[0]), case[1], case[2])


def _levels(p: Parameters, depth: int) -> list[int]:
    return sorted({levels for levels in p.levels if levels < depth} | {depth})


def _tree(p: Parameters, depth: int, seed: list[int]) -> Tree:
    rng = np.random.default_rng(seed)
    places = rng.permutation(p.peers)[: p.fanout**depth + 1]
    shape = Shape(fanout=p.fanout)
    return draw_tree(shape, depth, int(places[0]), places[1:].tolist(), rng)


def _measure(
    p: Parameters, peers: Peers, tree: Tree, algorithm: str, levels: int, central: float
) -> tuple[Placing, Placing, float]:
    """By messages of one hop, then over the overlay; and the cost against the centralised one."""
    plain = place_by_protocol(peers, tree, algorithm, levels, p.k, one_hop=True)
    routed = place_by_protocol(peers, tree, algorithm, levels, p.k, one_hop=False)
    return plain, routed, tree.cost(routed.at, peers.ways.weight) / central


def bound(fanout: int, depth: int, levels: int) -> int:
    """Section 5 in sum: d^h + (d − 1) Σ d^(2(h − jt)), of which d^(2(h − t)) is the largest."""
    pairs = sum(fanout ** (2 * (depth - j * levels)) for j in range(1, depth // levels + 1))
    return int(fanout**depth + (fanout - 1) * pairs)


def _row(
    p: Parameters,
    algorithm: str,
    depth: int,
    levels: int,
    found: list[tuple[Placing, Placing, float]],
) -> dict[str, Any]:
    def mean(*kinds: str) -> float:
        return float(np.mean([sum(plain.sent[k] for k in kinds) for plain, _, _ in found]))

    measuring = float(np.mean([plain.measuring for plain, _, _ in found]))
    messages = float(np.mean([plain.messages for plain, _, _ in found]))
    return {
        "algorithm": algorithm,
        "depth": depth,
        "sources": p.fanout**depth,
        "levels of a zone": levels,
        "zones": float(np.mean([plain.zones for plain, _, _ in found])),
        **{name: mean(*kinds) for name, kinds in KINDS.items()},
        "pairs measured": mean("Measured"),
        "placing": messages - measuring,
        "measuring": measuring,
        "section 5": float(bound(p.fanout, depth, levels)),
        "with all hops": float(np.mean([routed.messages for _, routed, _ in found])),
        "ms to place": float(np.mean([routed.took_ms for _, routed, _ in found])),
        "cost, of the centralised": float(np.mean([cost for _, _, cost in found])),
    }


def _case(rows: list[dict[str, Any]], algorithm: str, depth: int) -> list[dict[str, Any]]:
    return [r for r in rows if (r["algorithm"], r["depth"]) == (algorithm, depth)]


def _goals(p: Parameters, rows: list[dict[str, Any]]) -> list[Goal]:
    deep = max(p.depths)
    per_source = max(r["placing"] / r["sources"] for r in rows)
    all_pairs = p.fanout**deep * (p.fanout**deep + 1) / 2
    measured = max(r["pairs measured"] for r in _case(rows, "edge+", deep))
    edge = _case(rows, "edge", deep)
    aware = [r for r in rows if r["algorithm"] != "edge"]  # Edge itself does not look at distances
    worst = max(r["cost, of the centralised"] for r in aware)
    return [
        Goal("placing: messages for each source, at most", per_source, 12, at_least=False),
        Goal(
            "Edge+: measurements for each pair of sources",
            measured / all_pairs,
            1.0,
            at_least=False,
        ),
        Goal(
            "Edge: one zone, of the messages of finest zones",
            edge[-1]["placing"] / edge[0]["placing"],
            0.7,
            at_least=False,
        ),
        Goal("Edge+, In-Network: cost, of the centralised, at most", worst, 1.1, at_least=False),
    ]


def _beside(p: Parameters, rows: list[dict[str, Any]]) -> list[Beside]:
    deep = max(p.depths)
    edge, plus = _case(rows, "edge", deep), _case(rows, "edge+", deep)
    by_zone = ", ".join(f"{r['levels of a zone']}: {r['placing']:.0f}" for r in edge)
    pairs = ", ".join(f"{r['levels of a zone']}: {r['pairs measured']:.0f}" for r in plus)
    sums = ", ".join(f"{r['levels of a zone']}: {r['section 5']:.0f}" for r in plus)
    return [
        Beside(
            "5, initialisation",
            "O(d^h) messages",
            ", ".join(
                f"depth {d}: {r['ADD_SUBTREE'] + r['to sources']:.0f} for {r['sources']} sources"
                for d in p.depths
                for r in _case(rows, "edge", d)[:1]
            ),
        ),
        Beside(
            "5, mapping",
            "less control overhead as zones grow",
            f"Edge, depth {deep}, by levels of a zone: {by_zone}",
            "fewer ADD_SUBTREE, MAP and OPERATOR_REMAPPED; each operator and source is still told",
        ),
        Beside(
            "5, topology",
            f"(d − 1) Σ d^(2(h − jt)), with d^h in all, by levels of a zone: {sums}",
            f"pairs that Edge+ measures: {pairs}",
            "the sum has d − 1 pairs of partitions in a zone; a zone of t levels has d^t "
            "partitions, so that any two sources meet in exactly one zone, whatever its size",
        ),
        Beside(
            "5, sum",
            "O(d^h + d^(h(h − 1)/t))",
            "O(d^(2h)), the square of the number of sources, where distances matter; O(d^h) where "
            "they don't",
            "the exponent does not follow from the sum, whose largest term is d^(2(h − t)); and "
            "see above",
        ),
    ]


NOTES = (
    "Placing counts what section 4 sends, with the answers by which losses are noticed here; "
    "measuring takes four messages for each pair at most (the question, a probe, its echo, the "
    "answer; one question covers all pairs of a location). A message counts once, as in section "
    "5; *with all hops*, those to a coordinator that is not known yet and those to sources count "
    "on each step of the prefix overlay. Nothing is renewed in the time that is measured.",
    "Where a message is one hop, no peers are met on the way, and In-Network says what Edge+ says; "
    "*with all hops*, it also measures the ways to those that it meets.",
    "*Section 5* is its sum before the last step. The cost is that of the plan of the protocol "
    "against that of the centralised algorithm (all hosts are candidates of its In-Network, the "
    "peers met on routes here).",
)


def _draw(axes: Axes, rows: list[dict[str, Any]], algorithm: str) -> None:
    shown = [r for r in rows if r["algorithm"] == algorithm]
    for levels in sorted({r["levels of a zone"] for r in shown}):
        line = [r for r in shown if r["levels of a zone"] == levels]
        counts = [r["placing"] + r["measuring"] for r in line]
        axes.plot([r["sources"] for r in line], counts, marker="o", label=f"zones of {levels}")
    most = [r for r in shown if r["levels of a zone"] == 1]
    axes.plot(
        [r["sources"] for r in most],
        [r["section 5"] for r in most],
        linestyle="--",
        color="grey",
        label="section 5's sum, t = 1",
    )
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("sources")
    axes.set_ylabel("messages")
    axes.set_title(algorithm)
    axes.legend()
