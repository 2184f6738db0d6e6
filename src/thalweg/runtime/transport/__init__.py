"""Messages between nodes over TCP: what a live driver's `Post` is."""

from thalweg.runtime.transport.addresses import BadAddress
from thalweg.runtime.transport.settings import TransportSettings
from thalweg.runtime.transport.tls import Tls
from thalweg.runtime.transport.transport import Transport

__all__ = ["BadAddress", "Tls", "Transport", "TransportSettings"]
