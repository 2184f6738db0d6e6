"""All searches that a node has under way.

A search ends with a call of `found` (the node before the key, and the key's owner and those after
it) or of `given_up`; what these return is done at once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable

from thalweg.overlay.chord.lookup import Search
from thalweg.overlay.chord.messages import FindOwner, Route
from thalweg.overlay.chord.settings import Settings
from thalweg.overlay.chord.table import Table
from thalweg.overlay.membership import Doubt, Membership
from thalweg.overlay.protocol import Address, Effect, Send, Tell
from thalweg.overlay.questions import Questions

Found = Callable[[Search, Address, tuple[Address, ...]], list[Effect]]
GivenUp = Callable[[Search], list[Effect]]


class Searches:
    __slots__ = (
        "_asked",
        "_found",
        "_given_up",
        "_membership",
        "_resting",
        "_settings",
        "_table",
    )

    def __init__(
        self,
        table: Table,
        membership: Membership,
        settings: Settings,
        found: Found,
        given_up: GivenUp,
    ) -> None:
        self._table = table
        self._membership = membership
        self._settings = settings
        self._found = found
        self._given_up = given_up
        self._asked: Questions[tuple[Address, Search]] = Questions(
            "route", settings.answer_within_us
        )
        self._resting: Questions[Search] = Questions("again", settings.answer_within_us)

    def begin(self, key: int, tag: Hashable, attempts: int) -> list[Effect]:
        """From here: what this node knows, then what others know."""
        return self._from_here(Search(key, tag, attempts))

    def begin_through(self, members: Iterable[Address], key: int, tag: Hashable) -> list[Effect]:
        """As if this node knew nobody else; one attempt."""
        search = Search(key, tag, 1)
        search.learn(members)
        return self._go_on(search)

    def again(self, token: int) -> list[Effect]:
        """The ring may have changed while the search rested."""
        search = self._resting.unanswered(token)
        return self._from_here(Search(search.key, search.tag, search.attempts_left - 1))

    def routed(self, message: Route) -> list[Effect]:
        answered = self._asked.answered(message.token)
        if answered is None:
            return []
        (of, search), cancel = answered
        search.answered(of, message.nearer)
        if message.owners:
            return [cancel, *self._found(search, of, message.owners)]
        return [cancel, *self._go_on(search)]

    def unanswered(self, token: int) -> list[Effect]:
        of, search = self._asked.unanswered(token)
        return [Tell("membership", Doubt(of)), *self._go_on(search)]

    def _from_here(self, search: Search) -> list[Effect]:
        owners = self._table.owners(search.key)
        if owners:
            return self._found(search, self._table.address, owners)
        search.learn(self._table.nearer(search.key, self._membership.is_down))
        return self._go_on(search)

    def _go_on(self, search: Search) -> list[Effect]:
        address = search.next(self._table.address)
        if address is not None:
            token, timer = self._asked.ask((address, search))
            return [Send(address, FindOwner(token, search.key)), timer]
        if search.attempts_left == 1:
            return self._given_up(search)
        _, timer = self._resting.ask(search)
        return [timer]
