"""A port for a server that cannot be told to choose one itself."""

from __future__ import annotations

import random
import socket
from contextlib import suppress

_BELOW_THOSE_OF_CLIENTS = range(20_000, 32_000)


def free_port() -> int:
    """One that the system gives nobody who connects: it is still free when the server comes, and whoever tries it
    before that is not connected to itself.
    """
    while True:
        with suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", random.SystemRandom().choice(_BELOW_THOSE_OF_CLIENTS)))
            return int(probe.getsockname()[1])
