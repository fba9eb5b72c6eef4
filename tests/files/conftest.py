"""Fixtures that write data files."""

import pytest

from maxmargin.files import tabular


@pytest.fixture
def put(tmp_path):
    """Write a file, and return its path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


@pytest.fixture
def small_pieces(monkeypatch):
    monkeypatch.setattr(tabular, "PIECE_VALUES", 1)
