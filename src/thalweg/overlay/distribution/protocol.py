"""Queries on a network of providers: who runs which, whatever joins, leaves or stops.

Source: COSMOS (seed 000) 3.3.6 to 3.3.9, on the coordinator tree (`overlay.coordinators`). Added
here: all that has to do with failures, which the source leaves out.

Every node is a provider (of its capability, maybe 0), the proxy of its own users, and, where it
leads clusters, a coordinator. Modules, by role: `guarding` (proxy), `granting` (who gives a query
to a provider), `providing` (owner), `reporting` (statistics), `coordinating` (decisions).

Messages: `messages`. A proxy asks the tree where a new query should go (Seek, Found), and grants it
there in a new epoch. The owner renews its lease at the proxy, reports up the tree, and hands the
query over when a coordinator says so (Move). Silence at the proxy starts a new grant; an orphan at
the root whose proxy is gone too is rescued.

Promise, always: an epoch of a query has one owner; no two nodes hold a lease on a query at once; a
query that was accepted and not withdrawn is not forgotten while a node that knows it lives on.
Once quiet: each has exactly one owner, which holds a lease if the proxy is there; and no provider
has more than (1 + slack) of its share of the load, where single queries are no heavier than that
slack, or else more than that by less than a query's weight.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Protocol

from thalweg.overlay.coordinators.tree import CoordinatorTree
from thalweg.overlay.distribution import messages as say
from thalweg.overlay.distribution.coordinating import Coordinator
from thalweg.overlay.distribution.entries import Epoch, Provider, Query, Rate, key_of
from thalweg.overlay.distribution.granting import Granter
from thalweg.overlay.distribution.guarding import Guard, Guards
from thalweg.overlay.distribution.providing import Holdings
from thalweg.overlay.distribution.reporting import Orphan, Reporter
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import (
    Address,
    Call,
    Deliver,
    Effect,
    Event,
    Init,
    Leave,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)


class Failures(Protocol):
    def is_down(self, address: Address) -> bool: ...


@dataclass(frozen=True, slots=True)
class Settings:
    capability: float = 1.0
    slack: float = 0.1  # of a provider's share of the load
    beat_us: int = 1_000_000  # reports and renewals
    lease_us: int = 3_000_000
    silent_us: int = 8_000_000  # after that, a proxy takes an owner for lost
    orphaned_us: int = 10_000_000  # after that, the root looks after one whose proxy is gone
    round_us: int = 4_000_000  # between rounds of redistribution; 200 s in the source
    answer_within_us: int = 1_000_000
    tries: int = 3  # of one grant

    def __post_init__(self) -> None:
        if self.capability < 0 or self.slack < 0:
            raise ValueError("a capability or a slack can't be negative")
        if not 0 < 2 * self.beat_us <= self.lease_us < self.silent_us:
            raise ValueError("a lease lasts two beats or more, and ends before an owner is lost")
        if min(self.round_us, self.answer_within_us, self.tries, self.orphaned_us) < 1:
            raise ValueError("periods, times to wait and tries must be above 0")


class QueryDistribution:
    name = "distribution"
    messages: ClassVar[tuple[type[Message], ...]] = say.MESSAGES
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, failures: Failures, tree: CoordinatorTree, settings: Settings | None = None
    ) -> None:
        self.settings = settings or Settings()
        self.capability = self.settings.capability
        self.guards = Guards(self.settings.lease_us)
        self.holdings = Holdings(self.settings.lease_us)
        self.granter = Granter(self.settings.answer_within_us, self.settings.tries)
        self.reporter = Reporter()
        self.coordinator = Coordinator(
            tree, self.reporter, self.settings.slack, 3 * self.settings.beat_us
        )
        self._failures = failures
        self._tree = tree
        self._own: Address = ""
        self._life = 0
        self._measurements = 0
        self._round_us = 0  # when the last round began
        self._is_root = False

    def knows(self, name: str) -> bool:
        """Whether a query would come back from what this node has."""
        key = f"q {name}"
        return (
            name in self.guards.kept
            or name in self.holdings.owned
            or key in self.reporter.ledger.entries
            or key in self.reporter.orphans
        )

    def step(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Receive(sender, message):
                return self._receive(now_us, sender, message)
            case TimerFired("beat"):
                return self._beat(now_us)
            case TimerFired(("job", str(name))):
                return self.granter.late(name, self._tree.root)
            case Call(request):
                return self._asked(now_us, request)
            case Init():
                return self._init(now_us, event)
            case Leave():
                return self._leave()
        return []

    def _init(self, now_us: int, event: Init) -> list[Effect]:
        generator = Generator(event.seed)
        self._own, self._life = event.address, generator.bits() >> 1
        self.granter.begin(self._own, self._life)
        self.reporter.begin(self._life)
        self.coordinator.begin(self._own, generator)
        self.guards.start(now_us, event.persisted)
        self.holdings.start(event.persisted)
        self._set_own(now_us, Provider(self._own, self.capability))
        effects: list[Effect] = [SetTimer("beat", generator.between(1, self.settings.beat_us))]
        for owned in self.holdings.owned.values():
            self._set_own(now_us, owned.entry(self._own))
            effects.append(Deliver(say.Started(owned.query, owned.epoch)))
        return effects

    def _set_own(self, now_us: int, entry: object) -> None:
        self.reporter.set_own(now_us, key_of(entry), entry)  # type: ignore[arg-type]

    # --- requests ---

    def _asked(self, now_us: int, request: object) -> list[Effect]:
        match request:
            case say.Submit():
                return self._submit(now_us, request)
            case say.Withdraw(name):
                if name not in self.guards.kept:
                    return _rejected(f"no user of {self._own} has a query {name}; {self._mine()}")
                effects = [*self.guards.withdraw(name), *self.granter.stop(name)]
                effects.append(Deliver(say.Withdrawn(name)))
                return effects + self._superseded(now_us, name, None)
            case say.Measured(loads, rates):
                return self._measured(now_us, loads, rates)
            case say.SetCapability(capability):
                self.capability = capability
                self._set_own(now_us, Provider(self._own, capability))
                return self._drained()
        return []

    def _mine(self) -> str:
        return f"there are {', '.join(self.guards.kept)}" if self.guards.kept else "there is none"

    def _submit(self, now_us: int, new: say.Submit) -> list[Effect]:
        """The name is new in all the network: this node, its present life, and a title."""
        name = f"{new.title}@{self._own}.{self._life:x}"
        if name in self.guards.kept or name in self.guards.withdrawn:
            return _rejected(f"a query of {self._own} is called {new.title} already")
        query = Query(
            name,
            new.text,
            self._own,
            new.substreams,
            new.result_bps,
            new.weight,
            new.state_bytes,
        )
        effects = self.guards.keep(now_us, query, None)
        effects.append(Deliver(say.Accepted(new.title, name)))
        return effects + self._grant_anew(self.guards.kept[name])

    def _measured(
        self,
        now_us: int,
        loads: tuple[tuple[str, float], ...],
        rates: tuple[tuple[int, float], ...],
    ) -> list[Effect]:
        """COSMOS 3.3.8: only what changed is told on; the ledger sees to that."""
        for name, weight in loads:
            owned = self.holdings.owned.get(name)
            if owned is not None:  # it may have moved since it was measured
                owned.weight = weight
                self._set_own(now_us, owned.entry(self._own))
        self._measurements += 1
        for substream, bps in rates:
            self._set_own(now_us, Rate(substream, self._own, self._measurements, bps))
        return []

    # --- what is done regularly ---

    def _beat(self, now_us: int) -> list[Effect]:
        place, settings = self._tree.place, self.settings
        effects: list[Effect] = [SetTimer("beat", settings.beat_us)]
        self.reporter.keep_only(now_us, self._children())
        effects += self.holdings.renewals(now_us, self.granter.jobs)
        effects += self.reporter.to_stop()
        for guard in self.guards.silent(now_us, settings.silent_us):
            effects += self._grant_anew(guard)
        effects += self._look_after_orphans(now_us)
        if place.parent is not None:
            effects.append(self.reporter.report(place.parent))
        elif now_us - self._round_us >= settings.round_us:
            if self._is_root:  # a new root waits: it has not heard of everything yet
                effects += self.coordinator.begin_round(now_us)
            self._round_us = now_us
        self._is_root = place.parent is None
        return effects

    def _children(self) -> list[Address]:
        return [m for cluster in self._tree.place.led for m in cluster.others]

    def _grant_anew(self, guard: Guard) -> list[Effect]:
        query = guard.query
        return self.granter.start(query, query.weight, guard.epoch, self._tree.root)

    def _look_after_orphans(self, now_us: int) -> list[Effect]:
        """They are handed up to the root, and by it to their proxies, if these are there."""
        effects: list[Effect] = []
        parent = self._tree.place.parent
        for orphan in self.reporter.orphans.values():
            age_us, query = now_us - orphan.since_us, orphan.last.query
            if age_us < self.settings.lease_us:
                continue  # most of them have only moved
            to = query.proxy if parent is None else parent
            effects.append(Send(to, say.Entrust(query, orphan.last.epoch)))
            proxy_is_gone = parent is None and self._failures.is_down(query.proxy)
            if proxy_is_gone and age_us > self.settings.orphaned_us:
                last, root = orphan.last, self._tree.root
                effects += self.granter.start(query, last.weight, last.epoch, root, is_rescue=True)
        return effects

    # --- messages ---

    def _receive(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        match message:
            case say.Report():
                if sender not in self._children():
                    return []  # it has another parent now, or will hear that it has not this one
                return [Send(sender, self.reporter.heard(now_us, sender, message))]
            case say.Noted():
                self.reporter.noted(sender, message)
            case say.Renew():
                return self._renewed(now_us, sender, message)
            case say.Leased():
                return self._leased(sender, message)
            case say.Seek():
                return self.coordinator.route(now_us, message)
            case say.Found():
                return self.granter.found(message)
            case say.Grant():
                return self._granted(now_us, sender, message)
            case say.Took():
                return self._taken(now_us, message)
            case say.Refused(name, _, fence):
                self.granter.refused(message)
                return [] if fence is not None else self._superseded(now_us, name, None)
            case say.Superseded(name, epoch):
                return self._superseded(now_us, name, epoch)
            case say.Move():
                return self._move(message)
            case say.Round():
                return self.coordinator.go_on(now_us, message)
            case say.Entrust():
                return self._entrusted(now_us, sender, message)
            case say.Entrusted(name):
                self.reporter.orphans.pop(f"q {name}", None)
        return []

    def _renewed(self, now_us: int, sender: Address, message: say.Renew) -> list[Effect]:
        answers, effects = self.guards.renew(now_us, message)
        for name, epoch in message.claims:
            guard, job = self.guards.kept.get(name), self.granter.jobs.get(name)
            # It was not lost after all, or was given away by somebody else.
            if job is not None and guard is not None and guard.epoch == epoch:
                undecided = job.epoch is None or job.epoch <= epoch
                if job.given_to is None and undecided:
                    effects += self.granter.stop(name)
        return [*effects, *(Send(sender, a) for a in answers)]

    def _leased(self, sender: Address, message: say.Leased) -> list[Effect]:
        self.holdings.leased(message, self.granter.jobs)
        unknown = [self.holdings.owned[n] for n in message.unknown if n in self.holdings.owned]
        return [Send(sender, say.Entrust(owned.query, owned.epoch)) for owned in unknown]

    def _granted(self, now_us: int, sender: Address, grant: say.Grant) -> list[Effect]:
        answer, effects, is_new = self.holdings.take(grant)
        if is_new:
            self._set_own(now_us, self.holdings.owned[grant.query.name].entry(self._own))
            effects.append(Deliver(say.Started(grant.query, grant.epoch)))
        return [*effects, Send(sender, answer)]

    def _taken(self, now_us: int, took: say.Took) -> list[Effect]:
        if not self.granter.is_taken(took):
            return []
        effects = self.granter.stop(took.name) + self.guards.raise_to(took.name, took.epoch)
        guard = self.guards.kept.get(took.name)
        if guard is not None:
            guard.heard_us = now_us
        orphan = self.reporter.orphans.get(f"q {took.name}")
        if orphan is not None:  # it will be reported; if not, it is an orphan anew
            self.reporter.orphans[f"q {took.name}"] = Orphan(orphan.last, now_us)
        if self.holdings.is_superseded(took.name, took.epoch):
            effects += self._stop(now_us, took.name)
        return effects

    def _superseded(self, now_us: int, name: str, epoch: Epoch | None) -> list[Effect]:
        effects: list[Effect] = []
        if epoch is None:
            self.reporter.orphans.pop(f"q {name}", None)
            if name not in self.guards.kept:
                effects += self.granter.stop(name)
        if self.holdings.is_superseded(name, epoch):
            effects += self._stop(now_us, name, is_withdrawn=epoch is None)
        return effects

    def _stop(self, now_us: int, name: str, *, is_withdrawn: bool = False) -> list[Effect]:
        job = self.granter.jobs.get(name)
        effects: list[Effect] = []
        if job is not None and job.given_to is not None:
            effects += self.granter.stop(name)
        effects += self.holdings.drop(name, is_withdrawn=is_withdrawn)
        self.reporter.set_own(now_us, f"q {name}", None)
        return [*effects, Deliver(say.Stopped(name)), *self._drained()]

    def _drained(self) -> list[Effect]:
        empty = self.capability <= 0 and not self.holdings.owned
        return [Deliver(say.Drained())] if empty else []

    def _move(self, order: say.Move) -> list[Effect]:
        """The query stops here while it is handed over, so that its state can be sent along."""
        owned = self.holdings.owned.get(order.name)
        if owned is None or owned.epoch != order.epoch or order.to == self._own:
            return []  # an old order
        if order.name in self.granter.jobs:
            return []
        owned.leased_until_us = 0
        root = self._tree.root
        return self.granter.start(owned.query, owned.weight, owned.epoch, root, to=order.to)

    def _entrusted(self, now_us: int, sender: Address, message: say.Entrust) -> list[Effect]:
        query = message.query
        if query.proxy == self._own:
            if query.name in self.guards.withdrawn:
                return [Send(sender, say.Superseded(query.name, None))]
            effects = self.guards.keep(now_us, query, message.epoch)
            return [*effects, Send(sender, say.Entrusted(query.name))]
        self.reporter.adopt(now_us, query, message.epoch, sender)
        return [Send(sender, say.Entrusted(query.name))]

    def _leave(self) -> list[Effect]:
        """A departure without notice: everything goes to the neighbours in the tree."""
        near = self._tree.place.near(self._own)
        effects: list[Effect] = []
        for number, (name, owned) in enumerate(self.holdings.owned.items() if near else ()):
            epoch = self.granter.next_epoch(name, owned.epoch)
            to = near[number % len(near)]
            effects.append(Send(to, say.Grant(owned.query, epoch, owned.weight)))
            effects.append(Persist(f"owned {name}", None))
        return effects


def _rejected(why: str) -> list[Effect]:
    return [Deliver(say.Rejected(why))]
