"""The server of the lab: pages apart, origins, addresses, signals and ports."""

import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.helpers.lab_page import CHROMIUM, PATIENCE, Page, ended, start_lab

pytest.importorskip("bokeh", reason="bokeh is not installed")
pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
if CHROMIUM is None:
    pytest.skip("no Chromium or Chrome is installed", allow_module_level=True)


@pytest.mark.slow
def test_two_pages_do_not_see_each_other(opened):
    one, other = opened(), opened()
    one.sample("moons")
    one.algorithm("Perceptron")
    assert len(one.points()[0]) == 120
    other.settle()
    assert len(other.points()[0]) == 6
    assert other.model("algorithm-A", "value") == "svc"
    other.sample("AND")
    assert len(one.points()[0]) == 120
    assert one.model("algorithm-A", "value") == "perceptron"


def _threads(process):
    return len(list(Path(f"/proc/{process.pid}/task").iterdir()))


@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="needs /proc")
@pytest.mark.slow
def test_closing_a_page_frees_its_session(browser):
    """Every page has a thread of its own, which ends with it."""
    process, port = start_lab()
    try:
        address = f"http://127.0.0.1:{port}/"
        first = Page(browser, address)
        alone = _threads(process)
        pages = [Page(browser, address) for _ in range(2)]
        many = _threads(process)
        assert many >= alone + 2
        for page in pages:
            page.context.close()
        assert _wait(lambda: _threads(process) <= many - 2), (alone, many, _threads(process))
        first.sample("moons")  # and the page that is still open goes on
        first.context.close()
    finally:
        ended(process, signal.SIGTERM)


def _wait(condition):
    end = time.perf_counter() + PATIENCE
    while time.perf_counter() < end:
        if condition():
            return True
        time.sleep(0.3)
    return False


@pytest.mark.parametrize(
    ("origin", "code"),
    [
        ("http://evil.example", 403),
        ("http://evil.example:{port}", 403),
        ("https://127.0.0.1.evil.example:{port}", 403),
        ("null", 403),
    ],
)
def test_other_origins_are_refused(server, origin, code):
    answer = _handshake(server[1], origin.format(port=server[1]))
    assert answer == code


def test_a_page_of_another_local_server_is_refused(server):
    """A notebook or a shop on another port of this machine is another origin."""
    assert _handshake(server[1], "http://127.0.0.1:1") == 403


def _handshake(port, origin):
    """Ask for a websocket as a page of an origin would; return the status."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", "/")
    page = connection.getresponse().read().decode()
    token = re.search(r'"token":"([^"]+)"', page)[1]
    connection.request(
        "GET", "/ws",
        headers={
            "Connection": "Upgrade", "Upgrade": "websocket", "Origin": origin,
            "Sec-WebSocket-Version": "13", "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Protocol": f"bokeh, {token}",
        },
    )  # fmt: skip
    status = connection.getresponse().status
    connection.close()
    return status


def _answer(port, host, path="/"):
    """Ask as a browser that reaches the server by a name; return status and headers."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    connection.request("GET", path, headers={"Host": host})
    answer = connection.getresponse()
    connection.close()
    return answer.status, answer.headers


@pytest.mark.parametrize("path", ["/", "/ws", "/metadata", "/static/js/bokeh.min.js"])
def test_other_names_of_the_host_are_refused(server, path):
    """A name that was made to lead here could otherwise read the page (DNS rebinding)."""
    for host in ("evil.example", "127.0.0.1.evil.example", "evil.example:{port}", ""):
        assert _answer(server[1], host.format(port=server[1]), path)[0] == 403
    for host in ("127.0.0.1:{port}", "localhost:{port}", "LOCALHOST:{port}"):
        assert _answer(server[1], host.format(port=server[1]), path)[0] != 403


def test_no_page_may_frame_the_lab(server):
    for path in ("/", "/static/js/bokeh.min.js"):
        headers = _answer(server[1], "localhost", path)[1]
        assert headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_the_page_itself_may_connect(server):
    assert _handshake(server[1], f"http://127.0.0.1:{server[1]}") == 101


@pytest.mark.skipif(not Path("/proc/net/tcp").exists(), reason="needs /proc")
def test_it_listens_at_this_machine_only(server):
    listening = []
    for name in ("tcp", "tcp6"):
        path = Path("/proc/net") / name
        for line in path.read_text().splitlines()[1:] if path.exists() else ():
            local, state = line.split()[1], line.split()[3]
            if state == "0A" and int(local.split(":")[1], 16) == server[1]:
                listening.append(local.split(":")[0])
    assert listening == ["0100007F"]
    for address in socket.gethostbyname_ex(socket.gethostname())[2]:
        if not address.startswith("127."):
            with pytest.raises(OSError, match=r"refused|timed out"):
                socket.create_connection((address, server[1]), timeout=2)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGINT])
def test_signals_end_it(how):
    process, _ = start_lab()
    assert ended(process, how) == 0


@pytest.mark.slow
def test_a_signal_ends_it_while_a_fit_is_at_work(browser):
    process, port = start_lab()
    page = Page(browser, f"http://127.0.0.1:{port}/")
    page.page.get_by_label("data set").select_option(label="blobs, 2,000")
    page.page.wait_for_timeout(500)
    assert ended(process, signal.SIGINT) == 0
    page.context.close()


@pytest.mark.slow
def test_a_free_port_is_taken():
    """And nothing is printed but the address."""
    command = [sys.executable, "-m", "maxmargin", "lab", "--port", "0", "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        line = process.stdout.readline().decode()
        process.terminate()
        assert re.match(r"maxmargin lab: http://127\.0\.0\.1:[1-9]\d*/ ", line), line


def _has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as probe:
            probe.bind(("::1", 0))
    except OSError:
        return False
    return True


@pytest.mark.slow
@pytest.mark.skipif(not _has_ipv6(), reason="needs IPv6")
def test_an_address_of_ipv6_is_served(browser):
    command = [sys.executable, "-m", "maxmargin", "lab", "--host", "::1", "--port", "0"]
    with subprocess.Popen([*command, "--no-browser"], stdout=subprocess.PIPE) as process:
        address = process.stdout.readline().decode().split()[2]
        assert re.fullmatch(r"http://\[::1\]:[1-9]\d*/", address)
        page = Page(browser, address)
        assert "of 6 points" in page.proof()
        page.context.close()
        process.terminate()


@pytest.mark.slow
def test_a_port_in_use_is_told_in_one_line(server):
    command = [sys.executable, "-m", "maxmargin", "lab", "--port", str(server[1]), "--no-browser"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, env=os.environ)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1
    assert f"Port {server[1]} is in use" in done.stderr
