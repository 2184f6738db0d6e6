"""Chord: a ring of nodes in the order of their identifiers, each key owned by the next node.

Source: Chord (Stoica et al., 2001) as corrected by Zave (*Reasoning about identifier spaces: how to
make Chord correct*, 2017). The published rules lose the ring under failures. The corrected ones:

- A node joins with the whole successor list of the node before it, found by a lookup.
- Stabilise: take over the successor's list behind the successor. If the successor's predecessor
  lies between, it becomes the successor, but only once it has answered.
- Rectify (on Notify): a nearer predecessor replaces the known one; a farther one only if the known
  one is gone.

Who is gone, membership says; Chord only tells it whom to doubt. Beyond Zave, who has no partitions:
a node now and then looks up *itself* through any member it knows. The answer names the node that
should be before it, and those that should come after: so rings that were parted, or a node that
fell out of the ring, grow together. Joining is the same search by a node that has no ring yet. A
ring can also stop before its newcomers are in it. So a node that has found none for long begins one
if all that it knows to run say that they are in none either, and come after it by name; the others
then join it.

Promise: as long as nobody loses all r successors at once, there is one ring among the live, in
order, and every member leads into it. Once quiet: each node has exactly the next r as successors,
the one before it as predecessor, and every lookup ends at the owner after O(log n) hops.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from thalweg.overlay.chord.lookup import Search
from thalweg.overlay.chord.messages import (
    MESSAGES,
    AskNeighbours,
    Create,
    FindOwner,
    Found,
    Introduce,
    Joined,
    Leaving,
    Lookup,
    Neighbours,
    NotFound,
    Notify,
    Route,
)
from thalweg.overlay.chord.searching import Searches
from thalweg.overlay.chord.settings import Settings
from thalweg.overlay.chord.table import Table
from thalweg.overlay.generator import Generator
from thalweg.overlay.membership import Doubt, Down, Membership, Up
from thalweg.overlay.protocol import (
    Address,
    Call,
    CancelTimer,
    Deliver,
    Effect,
    Event,
    Heard,
    Init,
    Leave,
    Message,
    Persist,
    Receive,
    Send,
    SetTimer,
    Tell,
    TimerFired,
)
from thalweg.overlay.questions import Questions
from thalweg.overlay.ring import distance_to_limit, ring_parts
from thalweg.overlay.routing import ID_BITS, IDS, Part, Scope

# Searches on Chord's own account; the application's tags come wrapped in a tuple.
_SELF, _FINGER = "self", "finger"

# So many at most does a newcomer ask for a ring in one search.
_ASKED_BY_A_NEWCOMER = 8


class Chord:
    __slots__ = (
        "_asked",
        "_busy_with",
        "_finger",
        "_generator",
        "_membership",
        "_outsiders",
        "_quiet_periods",
        "_searches",
        "_was_joined",
        "joined",
        "settings",
        "table",
    )
    name = "chord"
    messages = MESSAGES
    listens_to = ("membership",)

    def __init__(self, membership: Membership, settings: Settings | None = None) -> None:
        self.settings = settings or Settings()
        self.joined = False
        self._membership = membership
        self._generator = Generator(0)
        self._asked: Questions[Address] = Questions("neighbours", self.settings.answer_within_us)
        self._reset("")
        self._finger = 0
        self._busy_with: set[str] = set()  # own searches under way
        self._quiet_periods = 0  # since the predecessor was heard from
        self._was_joined = False  # in an earlier life
        # Those that said to be in no ring, since anybody last knew of one; while this node is not.
        self._outsiders: set[Address] = set()

    def _reset(self, address: Address) -> None:
        self.table = Table(address, self.settings.successors)
        self._searches = Searches(
            self.table, self._membership, self.settings, self._found, self._give_up
        )

    # --- what other protocols may read (overlay.routing.Routing) ---

    def next_hop(self, key: int) -> Address | None:
        if not self.table.successors or self.table.owns(key):
            return None
        nearer = self.table.nearer(key, self._membership.is_down)
        # The successor, where it is the owner, and where nobody better is known to be alive.
        return nearer[0] if nearer else self.table.successors[0]

    def neighbours(self) -> list[Address]:
        return self.table.routes()

    def parts(self, scope: Scope | None) -> list[Part]:
        own = self.table.own_id
        fingers = [((own + self.table.position(a)) % IDS, a) for a in self.table.routes()]
        return ring_parts(own, fingers, scope)

    def covers(self, wide: Scope | None, narrow: Scope) -> bool:
        own = self.table.own_id
        return distance_to_limit(own, wide) >= distance_to_limit(own, narrow)

    # --- events ---

    def step(self, now_us: int, event: Event) -> list[Effect]:
        # The busy kinds first, by their type: a pattern that does not match costs more than a step.
        if type(event) is Receive:
            return self._receive(event.sender, event.message)
        if type(event) is TimerFired:
            return self._due(event.key)
        match event:
            case Heard(_, Up(address)):
                return self._greet(address)
            case Heard(_, Down(address)):
                self.table.drop(address)
            case Call(Lookup() as lookup):
                return self._look_up(lookup)
            case Call(Create()):
                return [] if self.joined else self._enter()
            case Init(address, seed, persisted):
                return self._init(address, seed, "joined" in persisted)
            case Leave():
                return self._leave()
        return []

    def _due(self, timer: Hashable) -> list[Effect]:
        match timer:
            case "stabilise":
                again = SetTimer("stabilise", self.settings.stabilise_every_us)
                return [again, *self._stabilise()]
            case "finger":
                again = SetTimer("finger", self.settings.fix_finger_every_us)
                return [again, *self._fix_finger()]
            case "self":
                again = SetTimer("self", self.settings.find_self_every_us)
                return [again, *self._find_self()]
            case "alone":
                return self._begin_anew()
            case ("route", int(token)):
                return self._searches.unanswered(token)
            case ("neighbours", int(token)):
                return [Tell("membership", Doubt(self._asked.unanswered(token)))]
            case ("again", int(token)):
                return self._searches.again(token)
        return []

    def _init(self, address: Address, seed: int, was_joined: bool) -> list[Effect]:
        self._generator = Generator(seed)
        self._reset(address)
        self._was_joined = was_joined
        return [
            # At a random point of the period, so that nodes don't move in step.
            SetTimer("stabilise", self._generator.below(self.settings.stabilise_every_us)),
            SetTimer("finger", self._generator.below(self.settings.fix_finger_every_us)),
            SetTimer("self", self._generator.below(self.settings.find_self_every_us)),
            SetTimer("alone", self.settings.alone_after_us),
        ]

    def _begin_anew(self) -> list[Effect]:
        """No ring was found for long: be one, unless there may be one to find.

        Who was in a ring before need not ask: rings that were parted merge. A newcomer must not
        make a second ring for having asked the wrong ones, nor because all newcomers at once find
        that there is none.
        """
        if self.joined:
            return []
        members = self._membership.up()
        nobody_is_in_one = bool(members) and self._outsiders.issuperset(members)
        if self._was_joined or (nobody_is_in_one and self.table.address < min(members)):
            return self._enter()
        return [SetTimer("alone", self.settings.alone_after_us)]

    def _enter(self) -> list[Effect]:
        self.joined = True
        self._outsiders.clear()
        return [Persist("joined", b""), CancelTimer("alone"), Deliver(Joined())]

    def _hear_of_a_ring(self, sender: Address, route: Route) -> None:
        if route.owners or route.nearer:
            self._outsiders.clear()
        else:
            self._outsiders.add(sender)

    def _leave(self) -> list[Effect]:
        """Say to the neighbours what a failure would make them find out."""
        table = self.table
        self.joined = False
        message = Leaving(table.predecessor, table.successors)
        told = {a: None for a in (table.predecessor, *table.successors[:1]) if a is not None}
        return [Persist("joined", None), *(Send(a, message) for a in told)]

    # --- the ring ---

    def _stabilise(self) -> list[Effect]:
        if not self.joined:
            return self._find_self()
        table = self.table
        for address in (table.predecessor, *table.successors):
            # Known to be down before it became a neighbour, by a message that was long under way.
            if address is not None and self._membership.is_down(address):
                table.drop(address)
        if not table.successors:
            # All of them are gone at once, or there never were any; the one before is better.
            return [] if table.predecessor is None else self._ask(table.predecessor)
        self._quiet_periods += 1
        effects = self._ask(table.successors[0])
        if table.predecessor is not None and self._quiet_periods > 3:
            effects.append(Tell("membership", Doubt(table.predecessor)))
        return effects

    def _neighbours(self, of: Address, message: Neighbours) -> list[Effect]:
        """An answer: from the successor, or from one that may be nearer."""
        table = self.table
        if not message.joined:
            table.drop(of)
            return []
        if not self.joined:
            return []
        if of in table.successors[:1]:
            table.follow(self._alive((of, *message.successors)))
            between = message.predecessor
            if between is not None and table.is_nearer_successor(between):
                return [] if self._membership.is_down(between) else self._ask(between)
        elif table.is_nearer_successor(of):
            # Its list and the old one together: it may come from another ring.
            table.follow(self._alive((of, *message.successors, *table.successors)))
        else:
            return []
        return [Send(a, Notify(table.successors)) for a in table.successors[:1]]

    def _notified(self, sender: Address, successors: tuple[Address, ...]) -> list[Effect]:
        """Rectify; and where the one before knows somebody nearer after us, look at them."""
        table = self.table
        if not self.joined:
            return []
        if table.is_nearer_predecessor(sender):
            table.predecessor = sender
        if table.predecessor == sender:
            self._quiet_periods = 0
        candidates = [sender] if not table.successors else []
        candidates += [a for a in successors if table.is_nearer_successor(a)]
        candidates = [a for a in candidates if not self._membership.is_down(a)]
        return self._ask(min(candidates, key=table.position)) if candidates else []

    def _greet(self, address: Address) -> list[Effect]:
        """A member has turned up; it may be from a ring that was parted from ours."""
        if not self.joined:
            return self._find_self()
        return self._ask(address) if self.table.is_nearer_successor(address) else []

    def _goodbye(self, sender: Address, message: Leaving) -> list[Effect]:
        table = self.table
        was_before = table.predecessor == sender
        table.drop(sender)
        if not self.joined:
            return []
        heirs = self._alive((*table.successors, *message.successors))
        table.follow(a for a in heirs if a != sender)
        before = message.predecessor
        if was_before and before not in (None, table.address):
            table.predecessor = None if self._membership.is_down(before) else before
        return []

    def _find_self(self) -> list[Effect]:
        """Through anybody: which node is before me, and who comes after it?"""
        members = self._membership.up()
        if not members or _SELF in self._busy_with:
            return []
        self._busy_with.add(_SELF)
        if self.joined:
            through = [self._generator.choice(members)]
        else:
            not_heard = [a for a in members if a not in self._outsiders]
            through = self._generator.sample(not_heard or members, _ASKED_BY_A_NEWCOMER)
        return self._searches.begin_through(through, self.table.own_id, _SELF)

    def _found_self(self, before: Address, owners: tuple[Address, ...]) -> list[Effect]:
        table = self.table
        if not self.joined:
            table.follow(self._alive((*owners, before)))
            table.predecessor = before
            entered = self._enter()
            return [*entered, *(Send(a, Notify(table.successors)) for a in table.successors[:1])]
        effects: list[Effect] = []
        if owners[0] != table.address and before != table.address:
            effects.append(Send(before, Introduce()))
        if table.is_nearer_successor(owners[0]):
            effects += self._ask(owners[0])
        return effects

    def _alive(self, addresses: Iterable[Address]) -> list[Address]:
        return [a for a in addresses if not self._membership.is_down(a)]

    # --- lookups ---

    def _look_up(self, lookup: Lookup) -> list[Effect]:
        if not self.joined:
            return [Deliver(NotFound(lookup.tag, lookup.key))]
        return self._searches.begin(lookup.key, (lookup.tag,), self.settings.attempts)

    def _fix_finger(self) -> list[Effect]:
        """One finger at a time, from the nearest to the farthest and round again."""
        if not self.joined or not self.table.successors or _FINGER in self._busy_with:
            return []
        self._finger = self.table.finger_after(self._finger)
        if self._finger >= ID_BITS:
            self._finger = self.table.finger_after(0)
        if self._finger >= ID_BITS:
            return []  # the successor is more than half the ring away: it is every finger
        self._busy_with.add(_FINGER)
        key = self.table.finger_key(self._finger)
        return self._searches.begin(key, _FINGER, self.settings.attempts)

    def _found(self, search: Search, before: Address, owners: tuple[Address, ...]) -> list[Effect]:
        if search.tag == _SELF:
            self._busy_with.discard(_SELF)
            return self._found_self(before, owners)
        if search.tag == _FINGER:
            self._busy_with.discard(_FINGER)
            self._finger = self.table.set_finger(self._finger, owners[0])
            return []
        assert isinstance(search.tag, tuple)
        return [Deliver(Found(search.tag[0], search.key, owners, search.hops))]

    def _give_up(self, search: Search) -> list[Effect]:
        if isinstance(search.tag, str):
            self._busy_with.discard(search.tag)
            return []
        assert isinstance(search.tag, tuple)
        return [Deliver(NotFound(search.tag[0], search.key))]

    # --- messages ---

    def _ask(self, address: Address) -> list[Effect]:
        token, timer = self._asked.ask(address)
        return [Send(address, AskNeighbours(token)), timer]

    def _receive(self, sender: Address, message: Message) -> list[Effect]:
        table = self.table
        if type(message) is FindOwner:
            token, key = message.token, message.key
            owners = table.owners(key) if self.joined else ()
            down = self._membership.is_down
            nearer = table.nearer(key, down) if self.joined and not owners else ()
            return [Send(sender, Route(token, owners, nearer))]
        if type(message) is Route:
            if not self.joined:
                self._hear_of_a_ring(sender, message)
            return self._searches.routed(message)
        if type(message) is AskNeighbours:
            token = message.token
            found = Neighbours(token, self.joined, table.predecessor, table.successors)
            return [Send(sender, found)]
        if type(message) is Neighbours:
            asked = self._asked.answered(message.token)
            return [] if asked is None else [asked[1], *self._neighbours(asked[0], message)]
        if type(message) is Notify:
            return self._notified(sender, message.successors)
        if type(message) is Introduce:
            may_be = self.joined and table.is_nearer_successor(sender)
            return self._ask(sender) if may_be else []
        if type(message) is Leaving:
            return self._goodbye(sender, message)
        return []
