"""A report as a reader sees it: its text, tables, headings and explanations."""

import base64
import re
from html.parser import HTMLParser


class Page(HTMLParser):
    """The tags of a page, the cells of its tables, its headings, explanations and other text."""

    VOID = ("meta", "img", "br", "link", "hr", "input")

    def __init__(self, text):
        super().__init__()
        self.tags, self.attributes, self.open, self.cells, self.words = [], [], [], [[]], []
        self.headings, self.tips, self.in_tip = [], [], False
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "tr":
            self.cells.append([])
        if tag in ("td", "th"):
            self.cells[-1].append("")
        if tag in ("h1", "h2", "h3"):
            self.headings.append("")
        if dict(attrs).get("class") == "tip":
            self.in_tip = True
            self.tips.append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag
        self.in_tip = self.in_tip and tag != "span"

    def handle_data(self, data):
        if self.in_tip:
            self.tips[-1] += data
            return
        self.words.append(data)
        if {"td", "th"} & set(self.open):
            self.cells[-1][-1] += data
        if {"h1", "h2", "h3"} & set(self.open):
            self.headings[-1] += data

    @property
    def text(self):
        return " ".join(" ".join(self.words).split())

    @property
    def pictures(self):
        return [value for tag, name, value in self.attributes if (tag, name) == ("img", "src")]


def check_page(text):
    """Assert that a page stands alone, and return it."""
    page = Page(text)
    assert text.lstrip().lower().startswith("<!doctype html>")
    assert not {"script", "iframe", "link", "object", "embed", "base", "form"} & set(page.tags)
    for tag, name, value in page.attributes:
        assert not name.startswith("on"), f"{tag} has {name}"
        if name in ("src", "href", "action", "data"):
            assert value.startswith("data:image/png;base64,"), value[:50]
    assert not re.search(r"https?://|@import|url\(", text)
    for picture in page.pictures:
        content = base64.b64decode(picture.split(",", 1)[1], validate=True)
        assert content.startswith(b"\x89PNG")
        assert len(content) > 5000
    return page
