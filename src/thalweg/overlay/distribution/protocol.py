"""Queries on a network of providers: who runs which, whatever joins, leaves or stops.

Source: COSMOS (seed 000) 3.3.6 to 3.3.9, on the coordinator tree (`overlay.coordinators`). Added
here: all that has to do with failures, which the source leaves out.

Every node is a provider (of its capability, maybe 0), the proxy of its own users, and, where it
leads clusters, a coordinator. Modules, by role: `proxying`, with `guarding` (leases); `owning`,
with `providing` (what is owned); `granting` (for whoever gives a query to a provider); `reporting`
(statistics) and `rescuing` (what nobody reports any more); for coordinators `surveying` (what they
know), `routing` and `rounds` (what they decide). Here is only who does what when.

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

from typing import ClassVar

from thalweg.overlay.coordinators.tree import CoordinatorTree
from thalweg.overlay.distribution import messages as say
from thalweg.overlay.distribution.entries import Epoch
from thalweg.overlay.distribution.owning import Owner
from thalweg.overlay.distribution.proxying import Proxy
from thalweg.overlay.distribution.rescuing import OrphanRescue
from thalweg.overlay.distribution.rounds import Rounds
from thalweg.overlay.distribution.routing import Routing
from thalweg.overlay.distribution.settings import Settings
from thalweg.overlay.distribution.state import Failures, State
from thalweg.overlay.distribution.surveying import Survey
from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import (
    Address,
    Call,
    Effect,
    Event,
    Init,
    Leave,
    Message,
    Receive,
    Send,
    SetTimer,
    TimerFired,
)

__all__ = ["QueryDistribution", "Settings"]


class QueryDistribution:
    name = "distribution"
    messages: ClassVar[tuple[type[Message], ...]] = say.MESSAGES
    listens_to: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, failures: Failures, tree: CoordinatorTree, settings: Settings | None = None
    ) -> None:
        self.state = State(settings or Settings(), failures, tree)
        self.proxy, self.owner = Proxy(self.state), Owner(self.state)
        self.orphan_rescue = OrphanRescue(self.state)
        slack, calm_us = self.state.settings.slack, 3 * self.state.settings.beat_us
        self._survey = Survey(tree, self.state.reporter)
        self._routing = Routing(self._survey, slack, calm_us)
        self._rounds = Rounds(self._survey, self._routing, slack, calm_us)
        self._round_us = 0  # when the last round began
        self._is_root = False

    def step(self, now_us: int, event: Event) -> list[Effect]:
        match event:
            case Receive(sender, message):
                return self._receive(now_us, sender, message)
            case TimerFired("beat"):
                return self._beat(now_us)
            case TimerFired(("job", str(name))):
                return self.state.granter.late(name, self.state.tree.root)
            case Call(request):
                return self._asked(now_us, request)
            case Init():
                return self._init(now_us, event)
            case Leave():
                return [*self.owner.leave(), *self.orphan_rescue.leave()]
        return []

    def _init(self, now_us: int, event: Init) -> list[Effect]:
        state, generator = self.state, Generator(event.seed)
        state.own, state.life = event.address, generator.bits() >> 1
        state.granter.begin(state.own, state.life)
        state.reporter.begin(state.life)
        self._survey.own = state.own
        self._rounds.seed(generator)
        state.guards.start(now_us, event.persisted)
        state.holdings.start(event.persisted)
        state.tell_capability(now_us)
        first_us = generator.between(1, state.settings.beat_us)
        return [SetTimer("beat", first_us), *self.owner.resume(now_us)]

    def _asked(self, now_us: int, request: object) -> list[Effect]:
        match request:
            case say.Submit():
                return self.proxy.submit(now_us, request)
            case say.Withdraw(name):
                was_kept = name in self.state.guards.kept
                effects = self.proxy.withdraw(name)
                return effects + self._superseded(now_us, name, None) if was_kept else effects
            case say.Measured():
                return self.owner.measured(now_us, request)
            case say.SetCapability(capability):
                return self.owner.set_capability(now_us, capability)
        return []

    def _beat(self, now_us: int) -> list[Effect]:
        """What is done regularly."""
        state, parent = self.state, self.state.tree.place.parent
        effects: list[Effect] = [SetTimer("beat", state.settings.beat_us)]
        state.reporter.keep_only(now_us, state.children)
        effects += state.holdings.renewals(now_us, state.granter.jobs)
        effects += state.reporter.to_stop()
        effects += self.proxy.look_after(now_us)
        effects += self.orphan_rescue.look_after(now_us)
        if parent is not None:
            effects.append(state.reporter.report(parent))
        elif now_us - self._round_us >= state.settings.round_us:
            if self._is_root:  # a new root waits: it has not heard of everything yet
                effects += self._rounds.begin(now_us)
            self._round_us = now_us
        self._is_root = parent is None
        return effects

    def _receive(self, now_us: int, sender: Address, message: Message) -> list[Effect]:
        state = self.state
        match message:
            case say.Report():
                if sender not in state.children:
                    return []  # it has another parent now, or will hear that it has not this one
                return [Send(sender, state.reporter.heard(now_us, sender, message))]
            case say.Noted():
                state.reporter.noted(sender, message)
            case say.Renew():
                return self.proxy.renewed(now_us, sender, message)
            case say.Leased():
                return self.owner.leased(sender, message)
            case say.Seek():
                return self._routing.route(now_us, message)
            case say.Found():
                return state.granter.found(message)
            case say.Grant():
                return self.owner.granted(now_us, sender, message)
            case say.Took():
                return self._taken(now_us, message)
            case say.Refused(name, _, fence):
                state.granter.refused(message)
                return [] if fence is not None else self._superseded(now_us, name, None)
            case say.Superseded(name, epoch):
                return self._superseded(now_us, name, epoch)
            case say.Move():
                return self.owner.move(message)
            case say.Round():
                return self._rounds.go_on(now_us, message)
            case say.Entrust(query):
                role = self.proxy if query.proxy == state.own else self.orphan_rescue
                return role.entrusted(now_us, sender, message)
            case say.Entrusted(name, custody):
                state.reporter.let_go(name, custody)
        return []

    def _taken(self, now_us: int, took: say.Took) -> list[Effect]:
        """What was granted here, by whatever role, has an owner."""
        state = self.state
        if not state.granter.is_taken(took):
            return []
        job = state.granter.jobs[took.name]
        effects = state.granter.stop(took.name) + state.guards.raise_to(took.name, took.epoch)
        guard = state.guards.kept.get(took.name)
        if guard is not None:
            guard.heard_us = now_us
            if guard.epoch == took.epoch and job.to is not None:
                effects += self.proxy.settled(took.name, job.to, job.by)
        self.orphan_rescue.granted(now_us, took.name)
        return effects + self.owner.superseded(now_us, took.name, took.epoch)

    def _superseded(self, now_us: int, name: str, epoch: Epoch | None) -> list[Effect]:
        effects: list[Effect] = []
        if epoch is None:
            self.orphan_rescue.forget(name)
            if name not in self.state.guards.kept:
                effects += self.state.granter.stop(name)
        return effects + self.owner.superseded(now_us, name, epoch)
