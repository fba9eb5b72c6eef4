"""Open a built site in Chromium: ``python tools/check_pages.py build/docs [PATTERN ...]``.

Every page (or those that match a pattern, such as ``course/*``) is opened from the file system, as
wide as a phone and as a laptop, in light and in dark. It must load nothing from elsewhere, raise no
error and not be wider than the window; and the search must find what it is asked. Needs playwright
and Chromium.
"""

import argparse
import shutil
import sys
from pathlib import Path

from playwright.sync_api import Browser, Page, sync_playwright

WIDTHS = {390: "dark", 1366: "light"}
QUERY, FOUND = "duality gap", "course/06-duality.html"
# How many pages of a folder are opened: those of names are made by one template.
MADE = {"reference/generated": 40}
# Pixels by which a page, or its text, which may scroll in it, is too wide once its equations are
# drawn. Code, tables and equations that are wider than the text scroll by themselves.
EXCESS = """async () => {
    await window.MathJax?.startup?.promise;
    const article = document.querySelector(".bd-article-container");
    return Math.max(
        document.scrollingElement.scrollWidth - innerWidth,
        article ? article.scrollWidth - article.clientWidth : 0,
    );
}"""
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]


def chosen(site: Path, patterns: list[str]) -> list[Path]:
    """Return the pages to open: of those that a template makes only some."""
    pages = [page.relative_to(site) for page in sorted(site.rglob("*.html"))]
    pages = [page for page in pages if page.parts[0] != "_static"]
    if patterns:
        return [page for page in pages if any(page.match(pattern) for pattern in patterns)]
    for folder, n in MADE.items():
        made = [page for page in pages if page.parent.as_posix() == folder]
        left_out = set(made) - set(made[:: max(1, len(made) // n)])
        pages = [page for page in pages if page not in left_out]
    return pages


def watch(page: Page, found: list[str]) -> None:
    """Note requests that leave the machine, and errors of scripts."""

    def request(asked) -> None:
        if not asked.url.startswith(("file:", "data:", "blob:", "about:")):
            found.append(f"asks for {asked.url}")

    page.on("request", request)
    page.on("pageerror", lambda error: found.append(f"error: {error}"))


def look_at(browser: Browser, site: Path, pages: list[Path]) -> list[str]:
    """Return what is wrong with the pages at every width."""
    faults = []
    for width, scheme in WIDTHS.items():
        window = browser.new_page(viewport={"width": width, "height": 844}, color_scheme=scheme)
        noted: list[str] = []
        watch(window, noted)
        for path in pages:
            window.goto((site / path).as_uri())
            wide = window.evaluate(EXCESS)
            if wide > 0:
                noted.append(f"is {wide} pixels too wide")
            faults += [f"{path} at {width}: {each}" for each in noted]
            noted.clear()
        window.close()
    return faults


def search(browser: Browser, site: Path) -> list[str]:
    """Return what is wrong with the search."""
    window = browser.new_page()
    noted: list[str] = []
    watch(window, noted)
    window.goto((site / "search.html").as_uri() + f"?q={QUERY.replace(' ', '+')}")
    answers = window.locator("#search-results li a")
    answers.first.wait_for(timeout=20_000)
    window.wait_for_timeout(1000)
    addresses = [answer.get_attribute("href") or "" for answer in answers.all()]
    if not any(FOUND in address for address in addresses):
        noted.append(f"{QUERY!r} does not find {FOUND}, but {addresses[:5]}")
    window.close()
    # Excerpts of the pages that are found cannot be read from the file system, only from a server.
    return [f"search: {each}" for each in noted if "Failed to fetch" not in each]


def main() -> int:
    """Print the faults and return 1 if there are any."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("site", type=Path)
    parser.add_argument("patterns", nargs="*")
    arguments = parser.parse_args()
    site = arguments.site.resolve()
    chromium = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
    if chromium is None:
        print("Chromium is not installed: pages were not opened.")
        return 0
    pages = chosen(site, arguments.patterns)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=chromium, args=FLAGS)
        faults = look_at(browser, site, pages)
        if not arguments.patterns:
            faults += search(browser, site)
        browser.close()
    print(*faults, sep="\n", end="\n" if faults else "")
    print(f"{len(pages)} pages opened at {len(WIDTHS)} widths, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
