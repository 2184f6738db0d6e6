"""A post without sockets: drivers of one process hand their messages to each other."""

from collections import Counter


class Exchange:
    """Posts that know each other by address; `lost` addresses get nothing, what `mute` ones say is
    not heard."""

    def __init__(self):
        self.receivers = {}
        self.lost, self.mute = set(), set()
        self.on_send = None  # a test's own look at all that is said: sender, receiver, message
        self.sent = Counter()

    def post(self, address):
        return LocalPost(self, address)


class LocalPost:
    def __init__(self, exchange, address):
        self.address = address
        self.exchange = exchange
        self.on_send = None  # a test's own look at what leaves

    def start(self, stack, receive):
        self.exchange.receivers[self.address] = receive

    def send(self, to, protocol, message):
        if self.on_send is not None:
            self.on_send(to, protocol, message)
        exchange = self.exchange
        if exchange.on_send is not None:
            exchange.on_send(self.address, to, message)
        exchange.sent[type(message).__name__] += 1
        is_heard = to not in exchange.lost and self.address not in exchange.mute
        if to in exchange.receivers and is_heard:
            exchange.receivers[to](self.address, protocol, message)

    def close(self, flush_within_s=0.0):
        self.exchange.receivers.pop(self.address, None)
