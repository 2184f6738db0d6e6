"""Which nodes `network up` starts, and how: as a file says it, as they were, or as its options do.

What was wanted is kept beside the nodes' data, so that `up` alone goes on as before: a node that
comes back in another mode, or without its neighbours' controller, would be another network.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec

from thalweg.cli.exits import BAD_INPUT, CommandFailed
from thalweg.cli.network.mode import Mode, usual_master
from thalweg.cli.network.running import Wanted
from thalweg.runtime.network.moves.controllers import Controller

KEPT = "wanted.json"
DEFAULT_NODES = 4
FIRST_PORT = 7341  # of the first node's service: where all commands look by themselves
BALANCE, REPLAN_EVERY_S = (0.25, 60.0), 30.0  # where a flag asks for a controller
_NUMBERED = re.compile(r"n\d+")


def remembered(folder: Path) -> list[Wanted]:
    """What was wanted last, in order."""
    try:
        return msgspec.json.decode((folder / KEPT).read_bytes(), type=list[Wanted])
    except FileNotFoundError:
        return []
    except (msgspec.MsgspecError, ValueError) as error:
        raise CommandFailed(f"{folder / KEPT} can't be read: {error}", BAD_INPUT) from None


def remember(folder: Path, wanted: Sequence[Wanted]) -> None:
    """Beside those of before that are not named now."""
    now = {w.name: w for w in wanted}
    before = {w.name: w for w in remembered(folder)}
    (folder / KEPT).write_bytes(msgspec.json.encode(list((before | now).values())))


def as_kept(folder: Path) -> bytes | None:
    """What is remembered, as it stands there."""
    return (folder / KEPT).read_bytes() if (folder / KEPT).exists() else None


def restore(folder: Path, kept: bytes | None) -> None:
    """Remember what was remembered before: what was wanted since did not start."""
    if kept is None:
        (folder / KEPT).unlink(missing_ok=True)
    else:
        (folder / KEPT).write_bytes(kept)


def names_of(wanted: int | None, known: Sequence[str]) -> list[str]:
    """n1, n2, …: as many as are wanted. Where nobody says, those that the folder has."""
    named = [name for name in known if not _NUMBERED.fullmatch(name)]
    if wanted is None and known:
        return list(known) if named else sorted(known, key=lambda name: int(name[1:]))
    if named:
        raise CommandFailed(
            f"the nodes here are {', '.join(known)}, as a file named them: leave out --nodes, "
            "or give another file",
            BAD_INPUT,
        )
    return [f"n{i + 1}" for i in range(wanted or DEFAULT_NODES)]


def as_before(
    names: Sequence[str],
    known: Sequence[Wanted],
    port: int,
    given: Mapping[str, Any],
    controller: Controller | None = None,
    partners: str | None = None,
) -> list[Wanted]:
    """Nodes as they were, and new ones like the first; options that are `given` change them."""
    options = {key: value for key, value in given.items() if value is not None}
    usual = usual_master(Mode(options.get("mode", Mode.homes)))
    there = {w.name: w for w in known}
    like = known[0] if known else Wanted("", master=usual)
    found = []
    for place, name in enumerate(names):
        base = there.get(name) or replace(like, name=name, port=0, balance=None, balance_by=None)
        if place == 0 and (name not in there or port != FIRST_PORT):
            base = replace(base, port=port)
        more = controlled(controller, partners, is_first=place == 0)
        found.append(replace(base, **options, **more))
    return found


def with_port(wanted: Sequence[Wanted], port: int) -> list[Wanted]:
    """The first node is where commands look, unless a file says ports."""
    if any(w.port for w in wanted):
        return list(wanted)
    first, *others = wanted
    return [replace(first, port=port), *others]


def controlled(
    controller: Controller | None, partners: str | None, *, is_first: bool
) -> dict[str, Any]:
    """What a node is told of who moves fragments."""
    if controller is not Controller.partners:
        if partners is not None:
            raise CommandFailed("--partners are for --controller partners", BAD_INPUT)
        if controller is Controller.manager:
            return {"controller": controller.value, "balance": BALANCE if is_first else None}
        if controller is Controller.replanning:
            return {"controller": controller.value, "replan_every_s": REPLAN_EVERY_S}
        return {}
    return {"controller": controller.value, "partners": partners or ""}
