"""Every message of every protocol can travel between processes."""

from typing import Union

import msgspec
import pytest

from thalweg.overlay.protocol import Message
from thalweg.sim.run import run
from thalweg.sim.scenarios.registry import SCENARIOS
from thalweg.sim.world import World


@pytest.mark.parametrize("name", SCENARIOS)
def test_messages_are_the_same_after_a_journey_as_bytes(name, monkeypatch):
    """Each is encoded and decoded by the types that its protocol lists; nothing may change."""
    untouched = run(SCENARIOS[name], 1)
    send, decoders = World.send, {}

    def send_as_bytes(world, host, protocol, to, message):
        if protocol not in decoders:
            kinds = host.stack[protocol].messages
            assert all(issubclass(kind, Message) for kind in kinds)
            decoders[protocol] = msgspec.msgpack.Decoder(Union[kinds])  # noqa: UP007
        arrived = decoders[protocol].decode(msgspec.msgpack.encode(message))
        assert arrived == message
        send(world, host, protocol, to, arrived)

    monkeypatch.setattr(World, "send", send_as_bytes)
    outcome = run(SCENARIOS[name], 1)
    assert outcome.problem is None
    assert outcome.digest == untouched.digest
    assert decoders
