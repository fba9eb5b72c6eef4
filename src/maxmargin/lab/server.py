"""The server of the page, by default for this computer only."""

from __future__ import annotations

import errno
import logging
import re
import signal
import socket
import webbrowser
from typing import Any

from .points import MOST_BYTES

LOCAL = ("127.0.0.1", "localhost", "::1")
EVERYWHERE = ("0.0.0.0", "::")
# No other page may show this one in a frame, and no answer is taken for another type.
HEADERS = {
    "Content-Security-Policy": "frame-ancestors 'none'",
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


def serve(
    port: int = 5017, host: str = "127.0.0.1", *, browser: bool = True, lesson: str | None = None
) -> None:
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
    lesson : str, optional
        The key of the lesson that is opened.
    """
    server = make_server(port, host)
    signal.signal(signal.SIGTERM, lambda *_: server.io_loop.add_callback_from_signal(_stop, server))
    try:
        address = address_of(server, host) + (f"?lesson={lesson}" if lesson else "")
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
    """Return a running server that answers requests for its own names, of its own origin, only."""
    try:
        from bokeh.application import Application
        from bokeh.application.handlers import FunctionHandler
        from bokeh.server.server import Server
    except ImportError:
        raise ImportError(
            'The lab needs bokeh, which is not installed: pip install "maxmargin[lab]", or in a '
            'clone of the repository pip install ".[lab]"'
        ) from None
    from .document import open_page

    # Messages to a closed tab are not errors.
    logging.getLogger("bokeh.server.views.ws").setLevel(logging.ERROR)
    port = port or _free_port(host)
    _check_free(host, port)
    server = Server(
        {"/": Application(FunctionHandler(open_page))},
        port=port,
        address=host,
        # Larger messages end the connection; too large files must get an error message instead.
        websocket_max_message_size=32 * MOST_BYTES,
        unused_session_lifetime_milliseconds=10_000,
        check_unused_sessions_milliseconds=3_000,
        session_token_expiration=3600,
    )
    _guard(server, host, port)
    server.start()
    return server


def _guard(server: Any, host: str, port: int) -> None:
    """Refuse requests for other names, and let no other page frame this one.

    A foreign name that was made to lead to this address (DNS rebinding) would be an origin of its
    own, whose scripts could read the page.
    """
    from tornado.web import OutputTransform, RequestHandler

    class Refused(RequestHandler):  # type: ignore[misc]
        """403 for any method."""

        def prepare(self) -> None:
            self.set_status(403)
            self.finish("The lab is not known by this name.")

    class Headers(OutputTransform):  # type: ignore[misc]
        """Add the headers of all answers."""

        def transform_first_chunk(
            self, status_code: int, headers: Any, chunk: bytes, finishing: bool
        ) -> tuple[int, Any, bytes]:
            for name, value in HEADERS.items():
                headers[name] = value
            return status_code, headers, chunk

    known = "|".join(re.escape(_bracketed(name).lower()) for name in _names(host))
    application = server._tornado
    application.add_handlers(rf"(?!(?:{known})$).*", [(r".*", Refused)])
    application.add_transform(Headers)
    # The option of the server does not take addresses of IPv6.
    application.websocket_origins.clear()
    application.websocket_origins.update(_origins(host, port))


def address_of(server: Any, host: str) -> str:
    """Return the address of the page."""
    return f"http://{_bracketed(host)}:{server.port}/"


def _free_port(host: str) -> int:
    """Return a free port: the origin of the page includes it."""
    with socket.socket(_family(host)) as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _check_free(host: str, port: int) -> None:
    """Raise OSError with a remedy where the port is in use."""
    with socket.socket(_family(host)) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                raise OSError(f"Port {port} is in use: choose another, or 0 for any.") from None
            raise


def _family(host: str) -> socket.AddressFamily:
    """Return the family of addresses of a host: IPv6 where it has a colon."""
    return socket.AF_INET6 if ":" in host else socket.AF_INET


def _bracketed(host: str) -> str:
    """Return a host as addresses contain it."""
    return f"[{host}]" if ":" in host else host


def _names(host: str) -> set[str]:
    """Return the names and addresses by which a browser may reach the server."""
    if host in LOCAL:
        return {host, *LOCAL[:2]}
    if host not in EVERYWHERE:
        return {host}
    own, family = socket.gethostname(), _family(host)
    infos = [*socket.getaddrinfo(own, None, socket.AF_INET)]
    if family == socket.AF_INET6:
        infos += socket.getaddrinfo(own, None, family)
    addresses = {str(info[4][0]).partition("%")[0] for info in infos}
    return {own, socket.getfqdn(), *LOCAL} | addresses


def _origins(host: str, port: int) -> list[str]:
    """Return the hosts and ports of pages that may connect."""
    return sorted(f"{_bracketed(name)}:{port}" for name in _names(host))


def _stop(server: Any) -> None:
    server.io_loop.stop()
