"""When what runs is planned anew, and which changes are worth their price (SQPR IV-B).

A plan foresees what each node will use. Measured use is smoothed (`adapt/partners/low_pass.py`)
and compared with it; a node that comes, goes or fills up counts as well. A new plan is carried out
only as far as it pays: what it saves within a horizon exceeds what moving costs, the cheapest moves
come first, there are so many a minute, and what has just moved rests.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from thalweg.adapt.partners.low_pass import filtered

UNLIMITED = float("inf")


@dataclass(frozen=True, slots=True)
class Use:
    """Of a node, by what it was given to do: cores, and bits per second. Also its limits."""

    cpu: float = 0.0
    out_bps: float = 0.0
    in_bps: float = 0.0


NO_LIMITS = Use(UNLIMITED, UNLIMITED, UNLIMITED)
_NAMES = {"cpu": "cores", "out_bps": "bit/s out", "in_bps": "bit/s in"}


@dataclass(frozen=True, slots=True)
class Policy:
    threshold: float = 0.25  # of what was foreseen, by which use may differ
    full: float = 0.9  # of a limit: a node that uses more has filled up
    least_cpu: float = 0.01  # differences that nobody would notice
    least_bps: float = 1_000.0
    alpha: float = 0.8  # of the low-pass filter: the weight of what was known
    horizon_s: float = 600.0  # within which a change has to earn its price
    pause_s: float = 60.0  # between two plans
    moves_a_minute: int = 4
    rest_s: float = 600.0  # what has moved stays for so long

    def __post_init__(self) -> None:
        if not 0 <= self.alpha < 1 or self.threshold <= 0 or self.horizon_s <= 0:
            raise ValueError("α in [0, 1), a threshold and a horizon above 0")


@dataclass(frozen=True, slots=True)
class Priced:
    """A fragment's move, and the bits that have to be sent for it."""

    what: Hashable
    bits: float


@dataclass(frozen=True, slots=True)
class Gain:
    """Of a new plan beside what runs, both over the network as it is now."""

    saved_bps: float  # that need not be sent any more
    relieved_bps: float  # that nodes can process, and could not: their backlog grew by it

    @property
    def bps(self) -> float:
        return self.saved_bps + self.relieved_bps


@dataclass(frozen=True, slots=True)
class Choice:
    """What is carried out now, and why so much or so little."""

    chosen: tuple[Priced, ...]
    why: str


@dataclass(slots=True)
class Watch:
    """What is remembered from look to look."""

    policy: Policy
    _smooth: dict[str, Use] = field(default_factory=dict)
    left: int = 0  # moves of the last plan that are worth their price, and have to wait
    _planned_at_s: float | None = None
    _moved_at_s: dict[Hashable, float] = field(default_factory=dict)

    def smoothed(self, uses: Mapping[str, Use]) -> dict[str, Use]:
        """One more look; nodes that are not in it are forgotten."""
        alpha = self.policy.alpha

        def smooth(before: Use | None, now: Use) -> Use:
            if before is None:
                return now
            parts = (filtered(alpha, getattr(before, n), getattr(now, n)) for n in _NAMES)
            return Use(*parts)

        self._smooth = {node: smooth(self._smooth.get(node), now) for node, now in uses.items()}
        return dict(self._smooth)

    def begin_anew(self, uses: Mapping[str, Use]) -> None:
        """Something else runs now: what was before says nothing about it."""
        self._smooth = dict(uses)

    def may_plan(self, now_s: float) -> bool:
        return self._planned_at_s is None or now_s - self._planned_at_s >= self.policy.pause_s

    def choose(self, now_s: float, moves: Sequence[Priced], gain: Gain) -> Choice:
        """Of a plan that was just made. What is chosen counts as moved."""
        self._planned_at_s, self.left = now_s, 0
        if not moves:
            return Choice((), "what runs is what would be planned now")
        price, worth = sum(m.bits for m in moves), gain.bps * self.policy.horizon_s
        if worth <= price:
            told = f"it saves {_bits(worth)} in {self.policy.horizon_s:g} s"
            return Choice((), f"{told}, and moving costs {_bits(price)}")
        rested = [m for m in moves if not self._is_resting(m, now_s)]
        if not rested:
            return Choice((), f"all of it has moved within {self.policy.rest_s:g} s")
        left = self.policy.moves_a_minute - self._moves_since(now_s - 60.0)
        chosen = sorted(rested, key=lambda m: m.bits)[: max(left, 0)]
        self._moved_at_s |= {m.what: now_s for m in chosen}
        self.left = len(rested) - len(chosen)
        why = f"it saves {_bits(worth)} in {self.policy.horizon_s:g} s for {_bits(price)}"
        if len(chosen) < len(moves):
            why += f"; {len(chosen)} of {len(moves)} moves now"
        return Choice(tuple(chosen), why)

    def _is_resting(self, move: Priced, now_s: float) -> bool:
        moved = self._moved_at_s.get(move.what)
        return moved is not None and now_s - moved < self.policy.rest_s

    def _moves_since(self, then_s: float) -> int:
        return sum(at > then_s for at in self._moved_at_s.values())


def reasons(
    foreseen: Mapping[str, Use],
    now: Mapping[str, Use],
    limits: Mapping[str, Use],
    policy: Policy,
) -> list[str]:
    """Why to plan anew; nothing if all is as it was foreseen."""
    found = [f"{node} has come" for node in sorted(now.keys() - foreseen.keys())]
    found += [f"{node} is gone" for node in sorted(foreseen.keys() - now.keys())]
    for node in sorted(now.keys() & foreseen.keys()):
        found += _of_node(node, foreseen[node], now[node], limits.get(node, NO_LIMITS), policy)
    return found


def _of_node(node: str, planned: Use, now: Use, limit: Use, policy: Policy) -> Iterator[str]:
    for name, unit in _NAMES.items():
        used, thought = getattr(now, name), getattr(planned, name)
        least = policy.least_cpu if name == "cpu" else policy.least_bps
        if abs(used - thought) > max(policy.threshold * thought, least):
            yield f"{node} uses {used:.3g} {unit}, and {thought:.3g} were foreseen"
        elif used > policy.full * getattr(limit, name) and used - thought > least:
            yield f"{node} has filled up: {used:.3g} of {getattr(limit, name):.3g} {unit}"


def overload_bps(uses: Mapping[str, Use], limits: Mapping[str, Use]) -> float:
    """How fast backlogs grow: of what comes in, the part for which there are no cores."""
    total = 0.0
    for node, use in uses.items():
        cores = limits.get(node, NO_LIMITS).cpu
        if use.cpu > cores:
            total += use.in_bps * (1 - cores / use.cpu)
    return total


def _bits(bits: float) -> str:
    for unit in ("bit", "kbit", "Mbit", "Gbit"):
        if abs(bits) < 1000:
            return f"{bits:.3g} {unit}"
        bits /= 1000
    return f"{bits:.3g} Tbit"
