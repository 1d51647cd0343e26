"""Which network interfaces the processes of a run use, and whether others can reach them."""

import ipaddress
import socket


def is_loopback(host: str) -> bool:
    """Whether a name or address means this machine only; False for one that doesn't resolve."""
    try:
        return ipaddress.ip_address(socket.gethostbyname(host)).is_loopback
    except OSError:
        return False


def bind_address(coordinator: str) -> str | None:
    """Where the coordinator listens: on loopback if its "host:port" says so, else everywhere.

    None leaves it to JAX, which listens on all interfaces.
    """
    return coordinator if is_loopback(coordinator.rpartition(":")[0]) else None


def note(coordinator: str) -> str | None:
    """A line to print if gloo, which connects CPU devices, will listen where it should not.

    Gloo takes the address that the machine's own name resolves to; JAX has no option for it.
    """
    name = socket.gethostname()
    try:
        address = socket.gethostbyname(name)
    except OSError:
        return f"note: this machine's name, {name}, does not resolve: gloo may not connect."
    local = bind_address(coordinator) is not None
    if local == is_loopback(address):
        return None
    if local:
        return f"note: gloo will listen on {address}, which {name} resolves to: not on loopback."
    return f"note: {name} resolves to {address}: gloo can't be reached from other machines."
