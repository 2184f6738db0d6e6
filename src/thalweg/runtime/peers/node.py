"""A node among peers: the same statements, but streams have no home and peers compute the joins."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from thalweg.cql import Script, compile_script
from thalweg.cql.errors import DEFAULT_NAME
from thalweg.engine.site import WrongUse
from thalweg.engine.site.explanation import Explanation
from thalweg.engine.site.scripts import CompileEach, Text
from thalweg.plan.catalog import Catalog, QueryDef, StreamDef
from thalweg.runtime.data.server import DataServer
from thalweg.runtime.network.catalogued import Catalogued
from thalweg.runtime.network.definitions import network_catalog
from thalweg.runtime.network.mirrors.mirrors import Mirrors
from thalweg.runtime.network.node import Node
from thalweg.runtime.network.reserved import check_not_reserved
from thalweg.runtime.network.views import views_for
from thalweg.runtime.peers.definitions import (
    is_join,
    is_peers_stream,
    join_of,
    name_of,
)
from thalweg.runtime.peers.peers import Peers
from thalweg.runtime.peers.placing import PeerScripts
from thalweg.runtime.peers.scripts import Known, work_of
from thalweg.runtime.peers.site import PeerSite
from thalweg.runtime.peers.standing import Standing
from thalweg.runtime.peers.telling import explanation, planned, would


class PeerNode(Node):
    def __init__(
        self,
        site: PeerSite,
        directory: Catalogued,
        mirrors: Mirrors,
        data: DataServer,
        peers: Peers,
    ) -> None:
        self.peers = peers
        self._directory = directory  # which knows the addresses of nodes that are gone, too
        site.join(peers, self._all_streams, self.execute, self._explained, self._would, self.named)
        super().__init__(site, directory, mirrors, data)
        mirrors.dropped = self._dropped
        directory.on_gone(self._forget_peer)
        self._drop_unread()
        self._known_streams = Standing(peers)

    def is_answered_here(self, path: str) -> bool:
        """Tuples come in at any node, and every node plans alike."""
        if path == "/explain":
            return True
        kind, _, rest = path.removeprefix("/").partition("/")
        return kind == "streams" and "/" in rest

    # --- statements

    def _scripts(self) -> PeerScripts:
        return PeerScripts(self.directory, self.planning, self.own, self.catalog)

    def execute(
        self, text: str, *, name: str = "<cql>", folder: Path | None = None, eager: bool = False
    ) -> Script:
        with self._lock:
            elsewhere = self.own.elsewhere()
            catalog = network_catalog(elsewhere, self.site.catalog)
            script = compile_script(text, catalog, name=name)
            check_not_reserved(script)
            work = work_of(text, name, script, self._known(), eager=eager)
            views = list(views_for(self.site, [text], elsewhere))
            for id_ in work.ids:
                self.peers.create(id_)
            done = self.site.execute("; ".join([*views, *work.texts]), name=name, folder=folder)
            return self._told([(done, script)])[0]

    def execute_each(self, texts: Sequence[Text], compiler: CompileEach) -> list[Script]:
        raise NotImplementedError("peers take statements one by one")

    def follow_views(self) -> None:
        """Peers' queries are not replaced while they stand."""

    def _known(self) -> Known:
        return Known(self.address, self.peers.readers, self.peers.rate)

    @property
    def address(self) -> str:
        return self.directory.me.address

    # --- what is where

    def _all_streams(self) -> dict[str, StreamDef]:
        known: Catalog = network_catalog(self.directory.defined(), self.site.catalog)
        return {s.name.lower(): s for s in known.streams() if is_peers_stream(s)}

    def _explained(self, query: QueryDef) -> Explanation:
        streams = self._all_streams()
        site = self.site
        assert isinstance(site, PeerSite)
        told = site.lacking(query.name)
        joins = site.joins_of(query)
        return explanation(query, joins, self.peers, self._names(), streams, told)

    def _would(self, text: str) -> Explanation:
        """How the queries of a text would be computed. Raises CqlError."""
        script = compile_script(text, self.catalog())
        work = work_of(text, DEFAULT_NAME, script, self._known())
        streams = self._all_streams()
        return would([planned(name, join, streams) for name, join in work.joins])

    def _names(self) -> dict[str, str]:
        return {n.address: n.name for n in self.directory.nodes()}

    def named(self, address: str) -> str:
        """A node by its address, also one that is gone."""
        return next((n for n, a in self._directory.addresses.items() if a == address), address)

    # --- what goes

    def check_leaves(self) -> None:
        """As every node; its sources are passed on, if somebody has copies of what they sent."""
        sources = sorted({name_of(s.stream) for s in self.peers.sources()})
        if sources and not self.peers.copies:
            raise WrongUse(
                f"{self.name} is a source of {', '.join(sources)}, and nobody has copies: these "
                "streams would wait for it for ever"
            )
        super().check_leaves()

    def _dropped(self, mirror: str) -> None:
        """Nothing reads a join any more."""
        self.peers.drop(mirror.partition("/")[2])

    def _drop_unread(self) -> None:
        """After a crash between the end of a join's mirror and that of the join."""
        mirrors = [s for s in self.site.catalog.streams() if is_join(s)]
        kept = {join_of(m).id for m in mirrors}
        for query in self.peers.standing():
            if query not in kept:
                self.peers.drop(query)

    def _forget_peer(self, node: str) -> None:
        """A node that is gone for good asks for nothing, and nobody waits for its sources."""
        address = self._directory.addresses.get(node)
        if address is not None and address != self.address:
            self.peers.gone(address)
            self.peers.drop_of(address)
