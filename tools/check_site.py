"""Check a built site without a network: ``python tools/check_site.py build/docs``.

Every link, picture, script and style sheet of every page is a file of the site or an address
elsewhere, every anchor exists, and nothing but links points elsewhere: a page loads nothing from a
network.
"""

import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# Where tags name what a browser loads by itself; of <a> it is where a reader goes.
LOADED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# <link rel=…> that is read by programs only.
NOT_LOADED = {"canonical", "next", "prev", "index", "search", "author"}

TEMPLATE = "webpack-macros.html"  # of the theme, among its scripts


class Page(HTMLParser):
    """The anchors, the links and what is loaded of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.anchors: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        """Note the names and the addresses of a tag."""
        values = {key: value for key, value in attributes if value}
        self.anchors.update(values[key] for key in ("id", "name") if key in values)
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if tag in LOADED and LOADED[tag] in values and values.get("rel") not in NOT_LOADED:
            self.loaded.append(values[LOADED[tag]])
        if "srcset" in values:
            self.loaded += [part.split()[0] for part in values["srcset"].split(",")]


def faults(site: Path) -> list[str]:
    """Return what is wrong, a line per fault."""
    files = (path.resolve() for path in sorted(site.rglob("*.html")) if path.name != TEMPLATE)
    pages = {path: Page(path) for path in files}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for address in page.loaded:
            if urlsplit(address).netloc:
                found.append(f"{name}: loads {address}")
        for address in [*page.links, *page.loaded]:
            reason = broken(address, path, pages)
            if reason:
                found.append(f"{name}: {address}: {reason}")
    return found


def broken(address: str, path: Path, pages: dict[Path, Page]) -> str | None:
    """Return why an address within the site leads nowhere, None if it leads somewhere."""
    parts = urlsplit(address)
    if parts.scheme or parts.netloc:
        return None
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if target.is_dir():
        target /= "index.html"
    if not target.is_file():
        return "no such file"
    anchor = unquote(parts.fragment)
    if anchor and target in pages and anchor not in pages[target].anchors:
        return "no such anchor"
    return None


def main() -> int:
    """Print the faults and return 1 if there are any."""
    site = Path(sys.argv[1])
    found = faults(site)
    print(*found, sep="\n", end="\n" if found else "")
    print(f"{site}: {len(list(site.rglob('*.html')))} pages, {len(found)} faults")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
