"""The command ``lab``, without a server."""

import pytest
from click.shell_completion import ShellComplete

from maxmargin.cli.main import main
from maxmargin.lab.lessons import LESSONS
from tests.helpers.command_line import bad, call, good


@pytest.fixture
def served(monkeypatch):
    """Collect what would be served."""
    pytest.importorskip("bokeh", reason="bokeh is not installed")
    from maxmargin.lab import server

    calls = []
    monkeypatch.setattr(server, "serve", lambda *given, **named: calls.append((given, named)))
    return calls


@pytest.mark.parametrize("key", LESSONS)
def test_lessons_are_opened_by_their_keys(served, key):
    good(call("lab", "--lesson", key, "--no-browser"))
    assert served == [((5017, "127.0.0.1"), {"browser": False, "lesson": key})]


def test_unknown_lessons_are_refused_with_the_list(served):
    text = bad(call("lab", "--lesson", "no-such"), "'no-such' is not one of six-points", code=2)
    assert all(key in text for key in LESSONS)
    assert served == []


def test_the_help_names_every_lesson_and_shows_an_example():
    text = " ".join(good(call("lab", "--help")).split())
    assert "maxmargin lab --lesson xor" in text
    assert all(key in text.split("Lesson to open:")[1] for key in LESSONS)


def test_lessons_are_completed():
    complete = ShellComplete(main, {}, "maxmargin", "_MAXMARGIN_COMPLETE")
    found = complete.get_completions(["lab", "--lesson"], "")
    assert [item.value for item in found] == list(LESSONS)
    found = complete.get_completions(["lab", "--lesson"], "p")
    assert [item.value for item in found] == ["perceptron"]
