"""A planned query on its way to the node where it will stand."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from pathlib import Path

import msgspec

from thalweg.api.problems import BadRequest
from thalweg.cql import Script
from thalweg.engine.site import WrongUse
from thalweg.runtime.data.fragments import Fragment
from thalweg.runtime.network.measuring import Task
from thalweg.runtime.network.node import Node


class _Placement(msgspec.Struct, frozen=True, array_like=True):
    fragment: Fragment
    task: Task


def encode_placement(fragment: Fragment, task: Task) -> str:
    return base64.b64encode(msgspec.msgpack.encode(_Placement(fragment, task))).decode()


@dataclass(frozen=True, slots=True)
class Placing:
    """Executes a text with one query as it was planned."""

    node: Node | None
    placement: str

    def execute(self, text: str, *, name: str, folder: Path | None) -> Script:
        if self.node is None:
            raise WrongUse("this service is not a node of a network: nothing is placed here")
        try:
            data = base64.b64decode(self.placement, validate=True)
            found = msgspec.msgpack.decode(data, type=_Placement)
        except (ValueError, msgspec.MsgspecError) as error:
            raise BadRequest(f"a placement that this version does not know: {error}") from None
        return self.node.place(text, found.fragment, found.task, name=name, folder=folder)
