"""What a node knows about the others: one word per member, and which words are still news.

Words about a member are ordered: a higher incarnation is newer, and within one incarnation the
worse status is (alive < suspect < down < left). Only the member itself makes new incarnations, so
whatever order words come in, everybody ends with the same one (SWIM, section 4.2).
"""

from __future__ import annotations

import msgspec

from thalweg.overlay.generator import Generator
from thalweg.overlay.protocol import Address

ALIVE, SUSPECT, DOWN, LEFT = range(4)

# The incarnation of a member that is remembered, or was named by somebody, but never heard of.
UNHEARD = -1

WORDS_AT_ONCE = 6

# How likely a stranger replaces a member in a full view: one that is heard of, or one that speaks
# for itself. The latter more, so that nobody ends up in no view at all; low, as changes cost.
HEARD_OF, SPEAKING = 0.1, 0.3


class Word(msgspec.Struct, frozen=True, array_like=True, gc=False):
    address: Address
    incarnation: int
    status: int

    def overrides(self, other: Word) -> bool:
        return (self.incarnation, self.status) > (other.incarnation, other.status)


class View:
    """Members by address; at most `capacity` of them, so that a large network costs no more."""

    __slots__ = (
        "_capacity",
        "_generator",
        "_reserve",
        "_tellings",
        "_with",
        "changed",
        "gone",
        "words",
    )

    def __init__(self, capacity: int, generator: Generator) -> None:
        self.words: dict[Address, Word] = {}
        self.changed = False  # whether members came or went since the flag was lowered
        self._capacity = capacity
        self._generator = generator
        self._reserve = 0.0  # towards strangers: see _lets_in
        self._tellings: dict[Address, int] = {}  # how often this news was told
        self._with = [0, 0, 0, 0]  # how many members have each status
        self.gone = 0  # members that are down or left

    def is_up(self, address: Address) -> bool:
        word = self.words.get(address)
        return word is not None and word.status <= SUSPECT

    def up(self) -> list[Address]:
        """Members that are not known to be gone, in the order in which they were met."""
        return self._between(ALIVE, SUSPECT)

    def remembered(self) -> list[Address]:
        """Members that may be there, or come back."""
        return self._between(ALIVE, DOWN)

    def take(self, word: Word, chance: float = HEARD_OF) -> bool:
        """Believe a word if it is newer than what is known; it is then news to tell on."""
        known = self.words.get(word.address)
        if known is None:
            if len(self.words) >= self._capacity and not self._make_room(word, chance):
                return False
            self.changed = True
        elif word.overrides(known):
            self._with[known.status] -= 1
        else:
            return False
        self._with[word.status] += 1
        self.gone = self._with[DOWN] + self._with[LEFT]
        self.words[word.address] = word
        if word.incarnation != UNHEARD:
            self._tellings[word.address] = 0
        return True

    def news(self) -> list[Word]:
        """The words told least often; each is told a few times log n, then it is old."""
        if not self._tellings:
            return []
        enough = 3 * max(1, len(self.words).bit_length())
        chosen = sorted(self._tellings, key=self._tellings.__getitem__)[:WORDS_AT_ONCE]
        for address in chosen:
            self._tellings[address] += 1
            if self._tellings[address] >= enough:
                del self._tellings[address]
        return [self.words[a] for a in chosen]

    def _make_room(self, word: Word, chance: float) -> bool:
        """Those who left go first; otherwise chance decides, so that a view is a fair sample."""
        if self._with[LEFT]:
            candidates = self._between(LEFT, LEFT)
        elif word.status <= SUSPECT and self._lets_in(chance):
            # Half of the room is safe for members that are down: they may be the other half of a
            # partition, and nobody else might remember them.
            crowded = self._with[DOWN] > self._capacity // 2
            candidates = self._between(DOWN, DOWN) if crowded else self.up()
        else:
            return False
        victim = self._generator.choice(candidates)
        self._with[self.words.pop(victim).status] -= 1
        self._tellings.pop(victim, None)
        return True

    def _lets_in(self, chance: float) -> bool:
        """Each stranger wears the reserve down by its chance; who ends it is let in.

        A new one is drawn, 1 on average. So strangers come in as often as if each had had a draw of
        its own, at the price of one draw in ten: in a large network most words are about strangers.
        """
        self._reserve -= chance
        if self._reserve > 0 and chance < 1:
            return False
        self._reserve = 2 * self._generator.unit()
        return True

    def _between(self, best: int, worst: int) -> list[Address]:
        """Members whose status is one of these, in the order in which they were met."""
        if sum(self._with[best : worst + 1]) == len(self.words):
            return list(self.words)  # the rule, and no word need be looked at
        return [w.address for w in self.words.values() if best <= w.status <= worst]
