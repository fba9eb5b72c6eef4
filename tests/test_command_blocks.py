"""Commands in pages of the documentation are run and shown with their output."""

import subprocess
import sys
from pathlib import Path

import pytest

EXTENSIONS = Path(__file__).resolve().parents[1] / "docs" / "_ext"


@pytest.fixture
def build(tmp_path):
    """Build a page as text with Sphinx; return what it says and the page."""
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    pytest.importorskip("myst_parser", reason="myst-parser is not installed")

    def made(body):
        source = tmp_path / "source"
        source.mkdir()
        (source / "index.md").write_text(f"# Page\n\n```{{command}}\n{body}\n```\n")
        (source / "conf.py").write_text(
            f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})\n"
            "extensions = ['myst_parser', 'commands']\n"
        )
        command = [sys.executable, "-m", "sphinx", "-qW", "-b", "text", source, tmp_path / "out"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        page = tmp_path / "out" / "index.txt"
        return done, page.read_text(encoding="utf-8") if page.exists() else ""

    return made


def test_commands_share_a_folder_and_show_neither_times_nor_dates(build):
    done, page = build(
        "maxmargin fit fruit.csv --target fruit --out fruit.mm\nmaxmargin inspect fruit.mm"
    )
    assert done.returncode == 0, done.stderr
    assert "$ maxmargin inspect fruit.mm" in page
    assert page.count("certificate      optimal to a relative gap") == 2
    labels = [line.split()[0] for line in page.splitlines() if line.strip()]
    assert "classes" in labels
    assert "time" not in labels
    assert "date" not in labels
    assert max(map(len, page.splitlines())) <= 80 + 3  # the indent of a block


def test_output_is_cut_to_a_number_of_lines(build):
    done, page = build(":lines: 2\n\nmaxmargin predict --help")
    assert done.returncode == 0, done.stderr
    shown = page.split("$ maxmargin predict --help")[1].strip().splitlines()
    assert shown[0].startswith("Usage:")
    assert shown[-1].strip() == "…"
    assert len(shown) == 3


def test_a_command_that_fails_ends_the_build(build):
    done, _ = build("maxmargin inspect missing.mm")
    assert done.returncode != 0
    assert "ended with 1" in done.stderr
    assert "missing.mm" in done.stderr
