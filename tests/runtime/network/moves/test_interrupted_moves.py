"""A sender that was interrupted between what its protocol knows and what its engine knows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.runtime.network.fragments.test_fragments import STREAMS, fragments_at, pushed
from tests.runtime.network.moves.test_moving import beside, placed, same
from tests.runtime.network.nodes import LiveNode, Shared
from tests.runtime.waiting import eventually

from thalweg.adapt.handover import Give
from thalweg.engine.site import WrongUse


@pytest.fixture
def nodes(tmp_path: Path) -> Iterator[dict[str, LiveNode]]:
    shared = Shared()
    made = {name: LiveNode(name, tmp_path, shared) for name in ("a", "b", "c", "d")}
    made["a"].cql(STREAMS)
    placed(made["c"])
    beside(made)
    pushed(made["a"], 1, 60)
    same(made, 55)
    yield made
    for node in made.values():
        node.close()


def test_what_was_decided_to_stay_goes_on_though_the_engine_was_not_told(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, _, d = nodes.values()
    moving = b.node.moving
    assert moving is not None

    def refuse(*_: object, **__: object) -> None:
        raise WrongUse("there is no room")

    d.node.moving._taker.stand = refuse  # type: ignore[union-attr, method-assign]
    moving._ended = lambda giving: None  # type: ignore[method-assign]
    (publication,) = fragments_at(b)
    record = moving.begin(publication, "d")
    eventually(lambda: publication in b.node.site.engine.frozen)
    eventually(lambda: record.move not in moving._giving())  # all that the protocol knew
    b.close()
    b.open()
    pushed(a, 60, 120)
    same(nodes, 115)
    told = b.node.moving.journal.find(record.move)  # type: ignore[union-attr]
    assert told is not None
    assert told.state == "failed"


def test_a_move_that_was_written_down_and_never_begun_has_failed_after_a_restart(
    nodes: dict[str, LiveNode],
) -> None:
    a, b, _, _ = nodes.values()
    moving = b.node.moving
    assert moving is not None
    call = moving._call
    moving._call = lambda request: None if isinstance(request, Give) else call(request)  # type: ignore[method-assign]
    (publication,) = fragments_at(b)
    record = moving.begin(publication, "d")
    b.close()
    b.open()
    told = b.node.moving.journal.find(record.move)  # type: ignore[union-attr]
    assert told is not None
    assert (told.state, told.error) == ("failed", "b was started again before it began")
    pushed(a, 60, 120)
    same(nodes, 115)
    assert fragments_at(b) == [publication]
