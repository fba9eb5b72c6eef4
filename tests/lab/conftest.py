"""A server of the lab and pages in a browser, for tests that need them."""

import signal

import pytest

from tests.helpers.lab_page import Page, ended, start_lab


@pytest.fixture(scope="module")
def log(tmp_path_factory):
    """What the server complains of."""
    return tmp_path_factory.mktemp("lab") / "log"


@pytest.fixture(scope="module")
def server(log):
    with log.open("w") as out:
        process, port = start_lab(out)
        yield process, port
        ended(process, signal.SIGTERM)


@pytest.fixture(scope="module")
def address(server):
    return f"http://127.0.0.1:{server[1]}/"


@pytest.fixture
def opened(browser, address, log):
    """Open pages; in the end, neither they nor the server may have complained."""
    pages = []
    known = log.stat().st_size

    def open_page(**options):
        pages.append(Page(browser, address, **options))
        return pages[-1]

    yield open_page
    for page in pages:
        page.context.close()
    for page in pages:
        _assert_content(page)
    assert "Traceback" not in log.read_text()[known:]


@pytest.fixture(scope="module")
def kept():
    """The page that tests hand on to each other."""
    pages = []
    yield pages
    for page in pages:
        page.context.close()


@pytest.fixture
def lab(browser, address, log, kept, request):
    """A page with six points, and no complaints in the end."""
    known = log.stat().st_size
    if kept:
        page = kept.pop()
        page.begin_anew()
    else:
        page = Page(browser, address)
    yield page
    if request.node.get_closest_marker("xfail") or page.errors or request.session.testsfailed:
        page.context.close()
    else:
        kept.append(page)
    _assert_content(page)
    assert "Traceback" not in log.read_text()[known:]


def _assert_content(page):
    assert page.errors == []
    assert page.dialogs == []
    assert page.foreign == []
