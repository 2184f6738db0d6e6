"""Giving queries to providers: each attempt is an epoch of its own, bound to one provider.

Where a query should go is a question to the coordinator tree, which may be lost, doubled or
answered twice without harm. Only then is an epoch made, and the grant repeated to that one
provider. If it does not answer, the next attempt has the next epoch: the first one may have been
taken after all, and is then fenced off. A job ends when a provider took the query.
"""

from __future__ import annotations

from dataclasses import dataclass

from thalweg.overlay.distribution.entries import Epoch, Query
from thalweg.overlay.distribution.messages import NOT_YET, Found, Grant, Refused, Seek, Took
from thalweg.overlay.protocol import Address, CancelTimer, Effect, Send, SetTimer

UNKNOWN_FAIR = -1.0
_MOST_HOPS = 12


@dataclass(slots=True)
class Job:
    query: Query
    weight: float
    after: Epoch | None  # the highest that is known
    is_rescue: bool
    given_to: Address | None  # by a coordinator's order; None: the tree is asked
    over: Epoch | None = None  # the highest that is known to be run by nobody any more
    token: int = 0
    epoch: Epoch | None = None
    to: Address | None = None
    tries: int = 0
    by: tuple[Address, ...] = ()  # the coordinators that named this provider


class Granter:
    def __init__(self, answer_within_us: int, tries: int) -> None:
        self.jobs: dict[str, Job] = {}
        self._answer_within_us = answer_within_us
        self._tries = tries
        self._own: Address = ""
        self._life = 0
        self._tokens = 0
        # The highest that were issued in this life, by query. A rescue must not hide a number.
        self._numbers: dict[str, int] = {}
        self._rescues: dict[str, int] = {}

    def begin(self, own: Address, life: int) -> None:
        self._own, self._life = own, life

    def start(
        self,
        query: Query,
        weight: float,
        after: Epoch | None,
        root: Address,
        *,
        to: Address | None = None,
        is_rescue: bool = False,
    ) -> list[Effect]:
        if query.name in self.jobs:
            return []
        job = self.jobs[query.name] = Job(query, weight, after, is_rescue, to)
        return self._seek(job, root) if to is None else self._grant(job, to)

    def stop(self, name: str) -> list[Effect]:
        return [] if self.jobs.pop(name, None) is None else [CancelTimer(("job", name))]

    def found(self, answer: Found) -> list[Effect]:
        for job in self.jobs.values():
            if job.token == answer.token and job.epoch is None:
                job.by = answer.by
                return self._grant(job, answer.provider)
        return []

    def is_taken(self, took: Took) -> bool:
        """Whether this was what an open job wanted."""
        job = self.jobs.get(took.name)
        return job is not None and job.epoch == took.epoch

    def refused(self, answer: Refused) -> None:
        """The next attempt has a higher number; an order that is refused is dropped."""
        job = self.jobs.get(answer.name)
        fence = answer.fence
        if job is None or job.epoch != answer.epoch or fence is None:
            return
        job.tries = self._tries
        job.after = _higher(job.after, fence)
        if answer.is_over:
            job.over = _higher(job.over, fence)

    def late(self, name: str, root: Address) -> list[Effect]:
        """No answer: the same grant again, or (where the tree chooses) another provider."""
        job = self.jobs[name]
        if job.epoch is not None and job.to is not None and job.tries < self._tries:
            return self._send(job, job.to, job.epoch)
        if job.given_to is not None:
            del self.jobs[name]
            return []
        return self._seek(job, root)

    def next_epoch(self, name: str, after: Epoch | None) -> Epoch:
        """Above what is known, and above all that this node has issued for it."""
        number = max(0 if after is None else after.number, self._numbers.get(name, 0)) + 1
        self._numbers[name] = number
        return Epoch(number, 0, self._own, self._life)

    def _rescue(self, name: str, lost: Epoch, over: Epoch | None) -> Epoch:
        """Below the lost epoch, which somebody may run, and above all before it; above the lost
        rescue, if it was one. In any case above what is over: below that, nobody takes it."""
        number = lost.number - (lost.rescue == 0)
        rescue = max(lost.rescue, self._rescues.get(name, 0))
        if over is not None:
            number, rescue = max(number, over.number), max(rescue, over.rescue)
        self._rescues[name] = rescue + 1
        return Epoch(number, rescue + 1, self._own, self._life)

    def _seek(self, job: Job, root: Address) -> list[Effect]:
        self._tokens += 1
        job.token, job.epoch, job.to = self._tokens, None, None
        question = Seek(
            asker=self._own,
            token=job.token,
            query=job.query,
            weight=job.weight,
            epoch=None,
            level=NOT_YET,
            fair=UNKNOWN_FAIR,
            hops=_MOST_HOPS,
        )
        timer = SetTimer(("job", job.query.name), self._answer_within_us)
        return [Send(root, question), timer]

    def _grant(self, job: Job, to: Address) -> list[Effect]:
        job.to, job.tries = to, 0
        if job.is_rescue and job.after is not None:
            job.epoch = self._rescue(job.query.name, job.after, job.over)
        else:
            job.epoch = self.next_epoch(job.query.name, job.after)
        return self._send(job, to, job.epoch)

    def _send(self, job: Job, to: Address, epoch: Epoch) -> list[Effect]:
        job.tries += 1
        timer = SetTimer(("job", job.query.name), self._answer_within_us)
        return [Send(to, Grant(job.query, epoch, job.weight)), timer]


def _higher(known: Epoch | None, heard: Epoch) -> Epoch:
    return heard if known is None else max(known, heard)
