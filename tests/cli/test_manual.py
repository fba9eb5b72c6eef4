"""`completion` and `man`: what shells complete, and pages that man can show."""

import os
import re
import shutil
import subprocess
import sys

import pytest

from maxmargin.cli import main
from tests.helpers.command_line import bad, call, good

COMPLETING = "from maxmargin.cli import main; main(prog_name='maxmargin')"


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts(shell):
    text = good(call("completion", shell))
    assert f"_MAXMARGIN_COMPLETE={shell}_complete" in text
    if shell == "bash" and shutil.which("bash"):
        subprocess.run(["bash", "-n"], input=text, text=True, check=True, timeout=60)


def test_what_is_completed(tmp_path):
    def completed(*words):
        env = {
            **os.environ,
            "_MAXMARGIN_COMPLETE": "bash_complete",
            "COMP_WORDS": " ".join(["maxmargin", *words]),
            "COMP_CWORD": str(len(words)),
        }
        done = subprocess.run([sys.executable, "-c", COMPLETING], cwd=tmp_path, env=env,
                              capture_output=True, text=True, timeout=60)  # fmt: skip
        assert done.stderr == ""
        return done.stdout.split()

    assert completed("ev") == ["plain,evaluate"]
    assert completed("fit", "--model", "linear-sv") == ["plain,linear-svc", "plain,linear-svr"]
    assert "plain,--class-weight" in completed("fit", "--cl")
    assert [line.split(",")[0] for line in completed("fit", "fru")] == ["file"]


def test_completion_of_other_shells():
    bad(call("completion", "tcsh"), "tcsh", code=2)


def test_man_pages(tmp_path):
    text = good(call("man", "--out", tmp_path / "man1"))
    assert text == f"{len(main.commands) + 1} pages: {tmp_path / 'man1'}\n"
    pages = {path.name: path.read_text(encoding="utf-8") for path in (tmp_path / "man1").iterdir()}
    assert set(pages) == {"maxmargin.1", *(f"maxmargin-{name}.1" for name in main.commands)}
    assert good(call("man")) == pages["maxmargin.1"]
    assert good(call("man", "fit")) == pages["maxmargin-fit.1"]
    for name, command in main.commands.items():
        page = pages[f"maxmargin-{name}.1"]
        assert f"maxmargin\\-{name}" in pages["maxmargin.1"]
        for part in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES", "OPTIONS"):
            assert f".SH {part}\n" in page
        for param in command.params:
            if param.opts[0].startswith("--"):
                assert max(param.opts, key=len).replace("-", "\\-") in page
        assert not re.search(r"^[.'](?!TH |SH |PP$|B |BR |TP$|nf$|fi$)", page, re.M)
    bad(call("man", "fitt"), "COMMAND must be one of", code=2)
    bad(call("man", "fit", "--out", "man1"), "either COMMAND or --out", code=2)


@pytest.mark.skipif(shutil.which("groff") is None, reason="groff is not installed")
def test_man_shows_a_page():
    page = good(call("man", "predict"))
    done = subprocess.run(["groff", "-man", "-Tutf8", "-Kutf8", "-ww"], input=page.encode(),
                          capture_output=True, check=True, timeout=60)  # fmt: skip
    shown = re.sub(r"\x1b\[\d*m|.\x08", "", done.stdout.decode())
    assert "maxmargin predict fruit.mm new.csv --out labels.csv" in shown
    assert "--keep COL,…" in shown
    assert "error" not in done.stderr.decode()
