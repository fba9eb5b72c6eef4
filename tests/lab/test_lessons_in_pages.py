"""Boxes of the documentation that point to lessons of the lab."""

import subprocess
import sys
from pathlib import Path

import pytest

from maxmargin.lab.lessons import LESSONS

EXTENSIONS = Path(__file__).resolve().parents[2] / "docs" / "_ext"


@pytest.fixture
def build(tmp_path):
    """Build a page with Sphinx; return what it says and the page."""
    pytest.importorskip("sphinx", reason="sphinx is not installed")
    pytest.importorskip("myst_parser", reason="myst-parser is not installed")

    def made(text):
        source = tmp_path / "source"
        source.mkdir()
        (source / "index.md").write_text(text, encoding="utf-8")
        (source / "conf.py").write_text(
            f"import sys\nsys.path.insert(0, {str(EXTENSIONS)!r})\n"
            "extensions = ['myst_parser', 'lessons']\n"
        )
        command = [sys.executable, "-m", "sphinx", "-qW", source, tmp_path / "out"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        page = tmp_path / "out" / "index.html"
        return done, page.read_text(encoding="utf-8") if page.exists() else ""

    return made


def test_boxes_show_title_question_command_and_address(build):
    directives = "\n\n".join(f"```{{lesson}} {key}\n```" for key in LESSONS)
    done, page = build(f"# Page\n\n{directives}\n")
    assert done.returncode == 0, done.stderr
    for key, lesson in LESSONS.items():
        assert f"In the lab: {lesson.title}" in page
        assert lesson.question in page
        assert f"maxmargin lab --lesson {key}" in page.replace('</span> <span class="pre">', " ")
        assert f'href="http://127.0.0.1:5017/?lesson={key}"' in page


def test_unknown_lessons_end_the_build(build):
    done, _ = build("# Page\n\n```{lesson} no-such\n```\n")
    assert done.returncode != 0
    assert "index.md" in done.stderr
    assert "lesson must be one of six-points, perceptron, xor" in done.stderr


def test_the_list_of_lessons_needs_no_bokeh():
    program = "import maxmargin.lab.lessons, sys; sys.exit('bokeh' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
