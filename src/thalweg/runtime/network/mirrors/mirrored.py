"""What is known of a mirror: where it is from, which rows are wanted, by which route they come."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import structs

from thalweg.engine.shared.registering import Past
from thalweg.engine.site import SiteError
from thalweg.engine.site.publications import MIRRORS
from thalweg.plan.catalog import QueryDef, StreamDef, ViewDef
from thalweg.plan.windows import BEGINNING
from thalweg.runtime.data.messages import Opened
from thalweg.runtime.data.profiles import NOTHING, Profile, everything, profile_of
from thalweg.runtime.data.routes import Handed, Route
from thalweg.runtime.data.statements import reach_of

AGAIN = "fragment/again/"  # names of streams that are read from the past on begin like this
ALL_PEERS = "peers"  # not a node: all of them feed the mirror (`runtime/peers`)
ALL_SITES = "swap/"  # nor this: the nodes that take part in a join do (`runtime/swap`)


class NodeAway(SiteError):
    """A node that is needed now does not answer."""


@dataclass(frozen=True, slots=True)
class Mirrored:
    """Statements that make streams of others one's own, and how far those have come."""

    texts: list[str]
    pasts: dict[str, Past]
    opened: list[tuple[str, str]]  # home and publication


@dataclass
class Wanted:
    """Of one stream: which rows and columns are wanted, and how much of the past."""

    profile: Profile = NOTHING
    reach: int | None = 0

    def add(self, definition: QueryDef | ViewDef, stream: StreamDef) -> None:
        plan = definition.plan
        if self.profile != everything(stream):
            # Nobody knows what will be asked of a view.
            is_view = isinstance(definition, ViewDef)
            wanted = everything(stream) if is_view else profile_of(plan, stream)
            self.profile = self.profile.merged(stream, wanted)
        reach = reach_of(plan, stream.name)
        self.reach = None if reach is None or self.reach is None else max(self.reach, reach)


def home_of(mirror: StreamDef) -> str:
    assert mirror.source is not None
    return mirror.source.removeprefix(MIRRORS)


def first_of(mirror: StreamDef) -> int:
    """The instant of a mirror's first rows: those of the past, or a relation's content."""
    return int(dict(mirror.options).get("first", BEGINNING))


def publication_of(mirror: StreamDef) -> str:
    return dict(mirror.options)["publication"]


def first_route(answer: Opened, want: Wanted) -> Route:
    """By which a mirror is fed that begins with a publication."""
    where, columns = want.profile.where, want.profile.columns
    return Route(
        answer.publication,
        where,
        whole_from=answer.watermark,
        columns=columns,
        past=Handed(want.reach, answer.complete_from),
    )


def same_route(route: Route) -> Route:
    """By which the same comes once more."""
    return structs.replace(route, continues=False, whole_from=None, hands_over=False)


def route_instead(mirror: StreamDef, old: Route, answer: Opened, to: str, since: int) -> Route:
    """By which another node feeds a mirror from an instant on."""
    at = None if to == home_of(mirror) else to
    whole_from = min(since, old.has_rows_from)
    return structs.replace(
        same_route(old), publication=answer.publication, since=since, at=at, whole_from=whole_from
    )
