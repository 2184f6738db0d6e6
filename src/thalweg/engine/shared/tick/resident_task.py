"""A resident task: runs the ticks that come over its channel, until it is let go or idle for long.

Runs inside Spark's Python workers, and knows nothing of Spark.
"""

from __future__ import annotations

import os
import socket
import traceback
from contextlib import closing
from typing import NamedTuple

from thalweg.engine.failures import FAILURES
from thalweg.engine.shared.tick.resident_channel import (
    HANDSHAKE_S,
    Channel,
    Gone,
    Hello,
    Kind,
    Message,
)
from thalweg.engine.shared.tick.runner import let_go, run_share

SHARE_BYTES = 4  # at the start of a RUN


class Post(NamedTuple):
    """Where a resident reports for duty, and for how long it waits there for a tick."""

    address: tuple[str, int]
    secret: bytes
    number: int
    idle_s: float


def reside(post: Post, attempt: int) -> None:
    """Returns when the driver closes the channel, is gone, or has had nothing to do for long."""
    connected = socket.create_connection(post.address, HANDSHAKE_S)
    with closing(Channel(connected)) as channel:
        try:
            channel.introduce(post.secret, Hello(post.number, attempt, os.getpid()))
            while (message := channel.receive(post.idle_s)) is not None:
                answer = _answer(message)
                channel.send(answer)
                if answer.kind is Kind.DONE:
                    let_go(message.body[SHARE_BYTES:])
        except Gone:
            return  # nobody waits for it any more


def _answer(message: Message) -> Message:
    share, packed = message.body[:SHARE_BYTES], message.body[SHARE_BYTES:]
    try:
        report = run_share(packed, int.from_bytes(share))
    except FAILURES:
        return Message(Kind.FAILED, message.epoch, traceback.format_exc().encode())
    return Message(Kind.DONE, message.epoch, report)
