"""The server of the page, by default for this computer only."""

from __future__ import annotations

import errno
import logging
import signal
import socket
import webbrowser
from typing import Any

from .points import MOST_BYTES

LOCAL = ("127.0.0.1", "localhost")


def serve(port: int = 5017, host: str = "127.0.0.1", *, browser: bool = True) -> None:
    """Serve the lab until Ctrl-C.

    Parameters
    ----------
    port : int, default=5017
        The port; 0 takes a free one.
    host : str, default="127.0.0.1"
        The address to listen at. Any other one makes the lab, and the processor of this computer,
        available to all who reach it: there are no passwords.
    browser : bool, default=True
        Whether to open a browser.
    """
    server = make_server(port, host)
    signal.signal(signal.SIGTERM, lambda *_: server.io_loop.add_callback_from_signal(_stop, server))
    try:
        address = address_of(server, host)
        print(f"maxmargin lab: {address} (Ctrl-C ends it)", flush=True)
        if host not in LOCAL:
            print(
                f"warning: all who reach {host} can use the lab: there are no passwords.",
                flush=True,
            )
        if browser:
            server.io_loop.add_callback(webbrowser.open, address)
        server.io_loop.start()
    except KeyboardInterrupt:
        print("bye")
    finally:
        server.stop(wait=False)


def make_server(port: int = 0, host: str = "127.0.0.1") -> Any:
    """Return a running server that accepts connections of its own origin only."""
    try:
        from bokeh.application import Application
        from bokeh.application.handlers import FunctionHandler
        from bokeh.server.server import Server
    except ImportError:
        raise ImportError(
            'The lab needs bokeh, which is not installed: pip install "maxmargin[lab]", or in a '
            'clone of the repository pip install ".[lab]"'
        ) from None
    from .page import open_page

    # Messages to a closed tab are not errors.
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)
    port = port or _free_port(host)
    _check_free(host, port)
    server = Server(
        {"/": Application(FunctionHandler(open_page))},
        port=port,
        address=host,
        allow_websocket_origin=_origins(host, port),
        # Larger messages end the connection; too large files must get an error message instead.
        websocket_max_message_size=32 * MOST_BYTES,
        unused_session_lifetime_milliseconds=10_000,
        check_unused_sessions_milliseconds=3_000,
        session_token_expiration=3600,
    )
    server.start()
    return server


def address_of(server: Any, host: str) -> str:
    """Return the address of the page."""
    return f"http://{host}:{server.port}/"


def _free_port(host: str) -> int:
    """Return a free port: the origin of the page includes it."""
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _check_free(host: str, port: int) -> None:
    """Raise OSError with a remedy where the port is in use."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise OSError(f"Port {port} is in use: choose another, or 0 for any.") from None
            raise


def _origins(host: str, port: int) -> list[str]:
    """Return the addresses by which a browser may reach the page."""
    names = {host}
    if host in LOCAL:
        names = set(LOCAL)
    elif host == "0.0.0.0":
        own = socket.gethostname()
        addresses = {str(info[4][0]) for info in socket.getaddrinfo(own, None, socket.AF_INET)}
        names = {own, socket.getfqdn(), *LOCAL} | addresses
    return sorted(f"{name}:{port}" for name in names)


def _stop(server: Any) -> None:
    server.io_loop.stop()
