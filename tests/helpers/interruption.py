"""Ctrl-C in the middle of a fit, in another process."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import textwrap
import threading

# Seconds after which a process that says nothing is ended, on however slow a machine.
PATIENCE = 300.0

PROGRAM = textwrap.dedent("""
    import functools, json, signal, sys, threading, time, warnings
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
    import numpy as np, maxmargin as mm
    from scipy import sparse

    @functools.cache
    def many(n, d, n_classes=2):
        rng = np.random.default_rng(0)
        return rng.normal(size=(n, d)), rng.integers(0, n_classes, size=n)

    def modules():
        for frame in sys._current_frames().values():
            while frame is not None:
                yield frame.f_globals.get("__name__", "")
                frame = frame.f_back

    def announce(package):
        # Code that is compiled or loaded does not count: the work is to be interrupted.
        seen = 0
        while seen < 10:
            time.sleep(0.02)
            names = list(modules())
            loading = any(name.startswith(("numba", "llvmlite", "importlib")) for name in names)
            seen += not loading and any(name.startswith(package) for name in names)
        print("working", flush=True)

    small = many(50, 3)
    mm.Perceptron(max_iter=2).fit(*small)
    for line in sys.stdin:
        given, package, statement = json.loads(line)
        exec(given)
        threading.Thread(target=announce, args=[package], daemon=True).start()
        try:
            while True:  # however fast the machine is
                exec(statement)
        except KeyboardInterrupt:
            model = mm.Perceptron(max_iter=3).fit(*small)
            print("interrupted, usable", model.n_iter_, flush=True)
""")


class Interpreter:
    """A Python process that runs one statement after the other and survives Ctrl-C."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def interrupt(
        self, statement: str, given: str = "", package: str = "maxmargin.solvers"
    ) -> None:
        """Send SIGINT when ``statement``, repeated without end, is at work in ``package``.

        Parameters
        ----------
        statement : str
            What is interrupted.
        given : str
            What runs before, once.
        package : str
            Where the work is.
        """
        if self.process is None:
            self.process = subprocess.Popen(
                [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            )  # fmt: skip
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps([given, package, statement]) + "\n")
        self.process.stdin.flush()
        self._hear("working\n")
        self.process.send_signal(signal.SIGINT)
        self._hear("interrupted, usable 3\n")

    def _hear(self, expected: str) -> None:
        assert self.process is not None
        assert self.process.stdout is not None
        end = threading.Timer(PATIENCE, self.process.kill)
        end.start()
        answer = self.process.stdout.readline()
        end.cancel()
        if answer != expected:
            raise AssertionError(f"{answer!r} instead of {expected!r}: {self.close()}")

    def close(self) -> str:
        """End the process, and return what it wrote to standard error."""
        if self.process is None:
            return ""
        process, self.process = self.process, None
        process.kill()
        return process.communicate()[1]
