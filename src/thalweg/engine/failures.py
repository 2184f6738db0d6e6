"""Failures of work, as opposed to a wish to stop.

A panic of Polars is one, although it is no Exception for Python: whoever catches failures and goes
on catches these.
"""

from __future__ import annotations

import errno

from polars.exceptions import PanicException

FAILURES: tuple[type[BaseException], ...] = (Exception, PanicException)


class Unavailable(Exception):
    """Somebody else's service does not answer, or not as it should; it may do so later."""


# Of a file or a connection: what may be otherwise in a while, without anybody changing a setting.
_PASSING = frozenset(
    {
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EIO,
        errno.EAGAIN,
        errno.EINTR,
        errno.EBUSY,
        errno.ENOMEM,
        errno.EMFILE,
        errno.ENFILE,
        errno.ESTALE,
        errno.ENETDOWN,
        errno.ENETUNREACH,
        errno.EHOSTUNREACH,
        errno.ETIMEDOUT,
    }
)


def will_pass(error: BaseException) -> bool:
    """Whether a failure is worth waiting for: a full disk, a server that does not answer."""
    if isinstance(error, ConnectionError | TimeoutError | MemoryError | Unavailable):
        return True
    return isinstance(error, OSError) and error.errno in _PASSING
