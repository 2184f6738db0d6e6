"""A post without sockets: drivers of one process hand their messages to each other."""

from collections import Counter


class Exchange:
    """Posts that know each other by address; `lost` addresses get nothing."""

    def __init__(self):
        self.receivers = {}
        self.lost = set()
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
        self.exchange.sent[type(message).__name__] += 1
        if to in self.exchange.receivers and to not in self.exchange.lost:
            self.exchange.receivers[to](self.address, protocol, message)

    def close(self, flush_within_s=0.0):
        self.exchange.receivers.pop(self.address, None)
