"""Property tests draw the same examples in every run; failed assertions of helpers show values.

A browser for tests of pages.
"""

import pytest
from hypothesis import HealthCheck, settings

pytest.register_assert_rewrite("tests.helpers")

# How long an example takes says nothing: code may have to be compiled, and machines are busy.
settings.register_profile(
    "steady", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("steady")

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip


@pytest.fixture(scope="module")
def browser():
    """Chromium, for tests of the lab and of reports; they are skipped without it."""
    from tests.helpers.lab_page import CHROMIUM

    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    if CHROMIUM is None:
        pytest.skip("no Chromium or Chrome is installed")
    with playwright.sync_playwright() as driver:
        chromium = driver.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield chromium
        chromium.close()
