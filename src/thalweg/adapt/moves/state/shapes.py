"""Plan shapes of one join: binary trees, MJoin, and mixtures.

A shape is a tree over the join's inputs. Inner nodes but the root keep what they make, as an extra
state: `((A B) C)` keeps A⋈B, as D-CAPE's plans do; `(A B C)` is an MJoin and keeps windows only;
`((A B) C D)` is a mixture. Each bucket range of each node may have another shape.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

Inputs = tuple[int, ...]  # which inputs of the join a state's rows consist of: what it holds


@dataclass(frozen=True, slots=True)
class Shape:
    """A leaf (`leaf` is an input's number), or a join of its children."""

    leaf: int = -1
    children: tuple[Shape, ...] = ()

    def __post_init__(self) -> None:
        if (self.leaf < 0) != (len(self.children) >= 2):
            raise ValueError("a shape is an input, or a join of two or more")
        inputs = [i for child in self.children for i in child.inputs]
        if len(set(inputs)) != len(inputs):
            raise ValueError(f"an input stands twice in a shape: {sorted(inputs)}")

    @property
    def inputs(self) -> Inputs:
        if not self.children:
            return (self.leaf,)
        return tuple(sorted(i for child in self.children for i in child.inputs))

    def nodes(self) -> Iterator[Shape]:
        """From the leaves to the root."""
        for child in self.children:
            yield from child.nodes()
        yield self

    def states(self) -> list[Inputs]:
        """What is kept: windows, and every intermediate; from the bottom to the top."""
        return [n.inputs for n in self.nodes() if n is not self]

    def text(self, names: Sequence[str]) -> str:
        if not self.children:
            return names[self.leaf]
        return "(" + " ".join(child.text(names) for child in self.children) + ")"


def leaf(number: int) -> Shape:
    return Shape(number)


def join(*children: Shape) -> Shape:
    return Shape(-1, children)


def mjoin(count: int) -> Shape:
    return join(*[leaf(i) for i in range(count)])


def left_deep(order: Sequence[int]) -> Shape:
    """D-CAPE's plans: `order` 0, 1, 2 joins A with B, then C."""
    shape = leaf(order[0])
    for number in order[1:]:
        shape = join(shape, leaf(number))
    return shape


def parse(text: str, names: Sequence[str]) -> Shape:
    """`((A B) C)`; the inverse of `Shape.text`."""
    words = text.replace("(", " ( ").replace(")", " ) ").split()
    shape, rest = _parsed(words, names, text)
    if rest or set(shape.inputs) != set(range(len(names))):
        raise ValueError(f"{text!r} is no shape of {' '.join(names)}: write ((A B) C), each once")
    return shape


def _parsed(words: list[str], names: Sequence[str], text: str) -> tuple[Shape, list[str]]:
    if not words:
        raise ValueError(f"{text!r} ends too early")
    word, rest = words[0], words[1:]
    if word != "(":
        if word not in names:
            raise ValueError(f"{text!r}: {word} is none of {', '.join(names)}")
        return leaf(list(names).index(word)), rest
    children = []
    while rest and rest[0] != ")":
        child, rest = _parsed(rest, names, text)
        children.append(child)
    if not rest:
        raise ValueError(f"{text!r} misses a bracket")
    return join(*children), rest[1:]


def all_shapes(count: int) -> list[Shape]:
    """Every tree over so many inputs: 1, 4, 26 for two, three and four."""
    return _shapes(tuple(range(count)))


def _shapes(inputs: Inputs) -> list[Shape]:
    if len(inputs) == 1:
        return [leaf(inputs[0])]
    return [join(*kids) for blocks in _partitions(inputs) for kids in _choices(blocks)]


def _choices(blocks: Sequence[Inputs]) -> Iterator[tuple[Shape, ...]]:
    if not blocks:
        yield ()
        return
    for first in _shapes(blocks[0]):
        for rest in _choices(blocks[1:]):
            yield (first, *rest)


def _partitions(inputs: Inputs) -> Iterator[list[Inputs]]:
    """Into two or more blocks; the first input's block first, so that each comes once."""

    def cut(rest: Inputs) -> Iterator[list[Inputs]]:
        if not rest:
            yield []
            return
        first, others = rest[0], rest[1:]
        for size in range(len(others) + 1):
            for chosen in combinations(others, size):
                left = tuple(i for i in others if i not in chosen)
                for blocks in cut(left):
                    yield [(first, *chosen), *blocks]

    return (blocks for blocks in cut(inputs) if len(blocks) > 1)
