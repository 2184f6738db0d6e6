"""A fragment is made of streams, not of names: where a name has come to mean another stream, it is
not taken over."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from thalweg.cql import compile_script
from thalweg.overlay.succession import Follow, Need
from thalweg.plan.travelling import encode_plan
from thalweg.runtime.data.fragments import Fragment
from thalweg.runtime.network.directory import Defined, NodeInfo
from thalweg.runtime.network.fragments.succession import LiveSuccession

LOG = "CREATE STREAM Log (t BIGINT) TIMESTAMP BY t BIGINT"
SCRIPT = compile_script(f"{LOG}; CREATE QUERY q AS SELECT t FROM Log [Range 5]")
(STREAM,) = SCRIPT.catalog.streams()
FRAGMENT = Fragment(encode_plan(SCRIPT.queries[0].plan))


class Reader:
    """A node that reads a fragment of node `b`, over a stream that is at `a`."""

    def __init__(self) -> None:
        self.followed: dict[str, Follow] = {}
        self.lost: list[str] = []
        self.begun: list[str] = []
        self.entries = {"log": Defined("Log", "stream", LOG, "a")}
        nodes = [NodeInfo(n, f"{n}:1", "", "") for n in ("a", "b", "c", "me")]
        directory: Any = SimpleNamespace(
            me=nodes[-1], nodes=lambda: nodes, defined=lambda: self.entries
        )
        driver: Any = SimpleNamespace(read=lambda _: self.followed, call=self._call)
        self.succession = LiveSuccession(driver, directory)
        succession: Any = self.succession
        succession._site = SimpleNamespace(lost={})
        succession._mirrors = SimpleNamespace(
            needed=lambda _: "b",
            place=lambda _: None,
            has_ended=lambda _: False,
            lose=lambda _, why: self.lost.append(why),
        )
        succession._fragments = SimpleNamespace(
            read=lambda: [("key", (STREAM, FRAGMENT))],
            last_known=lambda _: 5,
            begin_again=lambda stream, _: self.begun.append(stream.name) or 5,
        )

    def _call(self, _: str, request: object) -> None:
        if isinstance(request, Follow):
            self.followed[request.key] = request


def test_homes_that_were_asked_to_keep_a_stream_stay_the_same() -> None:
    reader = Reader()
    reader.succession._follow("key", "b", FRAGMENT)
    assert reader.followed["key"].needs == (Need("a:1", "Log"),)
    reader.entries["log"] = Defined("Log", "stream", LOG, "c")
    reader.entries["log@a"] = Defined("Log@a", "stream", LOG, "a", "Log")
    reader.succession._follow("key", "b", FRAGMENT)
    assert reader.followed["key"].needs == (Need("a:1", "Log"),)


def test_a_fragment_whose_stream_lost_its_name_waits_and_is_lost_with_its_node() -> None:
    reader = Reader()
    reader.succession._follow("key", "b", FRAGMENT)
    reader.succession._take_over("key", is_gone=False)
    assert reader.begun == [STREAM.name], "as long as names mean what they meant"
    reader.entries["log"] = Defined("Log", "stream", LOG, "c")
    reader.succession._take_over("key", is_gone=False)
    assert (len(reader.begun), reader.lost) == (1, [])
    reader.succession._take_over("key", is_gone=True)
    assert len(reader.begun) == 1
    assert "lost its name" in reader.lost[0]
