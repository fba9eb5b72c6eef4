"""Ctrl-C in the middle of a fit, in another process."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time

PROGRAM = textwrap.dedent("""
    import signal, sys, warnings; warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    import numpy as np, maxmargin as mm
    from scipy import sparse
    def many(n, d, n_classes=2):
        rng = np.random.default_rng(0)
        return rng.normal(size=(n, d)), rng.integers(0, n_classes, size=n)
    small = many(50, 3)
    mm.Perceptron(max_iter=2).fit(*small)
    for statement in sys.stdin:
        try:
            print("ready", flush=True)
            exec(statement)
            print("ended", flush=True)
        except KeyboardInterrupt:
            model = mm.Perceptron(max_iter=3).fit(*small)
            print("interrupted, usable", model.n_iter_, flush=True)
""")


class Interpreter:
    """A Python process that runs one statement after the other and survives Ctrl-C."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def interrupt(self, statement: str, wait: float = 0.7) -> float:
        """Send SIGINT in the middle of ``statement``, and return the seconds until it has ended."""
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        stdin, stdout = self.process.stdin, self.process.stdout
        assert stdin is not None
        assert stdout is not None
        stdin.write(statement + "\n")
        stdin.flush()
        assert stdout.readline() == "ready\n"
        time.sleep(wait)
        self.process.send_signal(signal.SIGINT)
        started = time.monotonic()
        answer = stdout.readline()
        seconds = time.monotonic() - started
        if answer != "interrupted, usable 3\n":
            raise AssertionError(f"{answer!r} instead of an interruption: {self.close()}")
        return seconds

    def close(self) -> str:
        """End the process, and return what it wrote to standard error."""
        if self.process is None:
            return ""
        process, self.process = self.process, None
        process.kill()
        return process.communicate()[1]
