"""Run the command line, in a process or in this one, and read what it prints."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from click.testing import CliRunner
from PIL import Image

import maxmargin as mm
from maxmargin.cli import main

FRUIT = Path(str(mm.datasets.fruit_file()))


def run(*args, cwd, stdin=None, env=None, timeout=600, **more):
    """Run the command line as a process of its own."""
    binary = isinstance(stdin, bytes)
    done = subprocess.run(
        [sys.executable, "-m", "maxmargin", *map(str, args)], cwd=cwd, capture_output=True,
        input=stdin if binary else (stdin or "").encode(), timeout=timeout,
        env={**os.environ, "PYTHONIOENCODING": "utf-8", **(env or {})}, **more,
    )  # fmt: skip
    return SimpleNamespace(
        code=done.returncode, out=done.stdout.decode(), err=done.stderr.decode(), args=args
    )


def on_terminal(*args, cwd, interrupted_at=None):
    """Run it with a terminal for its errors; press Ctrl-C once it has written some words there."""
    import pty

    master, slave = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "maxmargin", *map(str, args)], cwd=cwd, stdout=subprocess.PIPE,
        stderr=slave, text=True, env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    ) as process:  # fmt: skip
        os.close(slave)
        text = ""
        while part := _read_terminal(master):
            text += part
            if interrupted_at is not None and interrupted_at in text:
                process.send_signal(signal.SIGINT)
                interrupted_at = None
        out = process.stdout.read()
    os.close(master)
    return SimpleNamespace(code=process.returncode, out=out, err=text, args=args)


def _read_terminal(master):
    try:
        return os.read(master, 65536).decode(errors="replace")
    except OSError:  # the other side is closed
        return ""


def call(*args, stdin=None):
    """Run it in this process, in the current folder: where a process of its own adds nothing."""
    done = CliRunner().invoke(main, list(map(str, args)), input=stdin)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise AssertionError(f"a traceback: {done.exception!r}") from done.exception
    return SimpleNamespace(code=done.exit_code, out=done.stdout, err=done.stderr, args=args)


def good(done):
    assert done.code == 0, f"{done.args}: {done.code}\n{done.out}\n{done.err}"
    assert "Traceback" not in done.err
    return done.out


def bad(done, *said, code=1):
    """Assert a failure that is told in one line, and return it."""
    assert done.code == code, f"{done.args}: {done.code}\n{done.out}\n{done.err}"
    assert "Traceback" not in done.err + done.out
    lines = done.err.strip().splitlines()
    assert lines[-1].startswith("Error: "), done.err
    if code == 1:
        assert len(lines) == 1, done.err
    else:
        assert lines[0].startswith("Usage: ")
    for words in said:
        assert str(words) in lines[-1], f"{words!r} is not in {lines[-1]!r}"
    return lines[-1]


def records(text):
    return [json.loads(line) for line in text.splitlines()]


def table(text):
    return list(csv.DictReader(io.StringIO(text)))


def score_of(row):
    """Return the only score in a row of predictions."""
    (score,) = [value for name, value in row.items() if name.startswith("score")]
    return float(score)


def is_picture(path, form="PNG"):
    with Image.open(path) as image:
        assert image.format == form
        assert min(image.size) > 200
        assert len(image.convert("RGB").getcolors(1 << 24)) > 8  # something is drawn
        return image.size


def two_fruits():
    fruit = mm.datasets.load_fruit()
    y = fruit.target_names[fruit.target]
    chosen = np.isin(y, ("apple", "lemon"))
    return fruit.data[chosen], y[chosen]


def svmlight(X, y):
    lines = []
    for row, label in zip(X, y, strict=True):
        pairs = " ".join(f"{k}:{v!r}" for k, v in enumerate(row.tolist(), 1) if v)
        lines.append(f"{label} {pairs}\n")
    return "".join(lines).encode()
