"""Ctrl-C in the middle of a fit."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time


def interrupt(statement: str, wait: float = 0.7) -> tuple[float, str, str]:
    """Send SIGINT to a process in the middle of ``statement``: return seconds, stdout, stderr."""
    program = textwrap.dedent(f"""
        import warnings; warnings.simplefilter("ignore")
        import numpy as np, maxmargin as mm
        from scipy import sparse
        def many(n, d, n_classes=2):
            rng = np.random.default_rng(0)
            return rng.normal(size=(n, d)), rng.integers(0, n_classes, size=n)
        small = many(50, 3)
        mm.Perceptron(max_iter=2).fit(*small)
        print("ready", flush=True)
        try:
            {statement}
        except KeyboardInterrupt:
            model = mm.Perceptron(max_iter=3).fit(*small)
            print("interrupted, usable", model.n_iter_, flush=True)
    """)
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        time.sleep(wait)
        assert process.poll() is None, "the fit was over before it could be interrupted"
        process.send_signal(signal.SIGINT)
        started = time.monotonic()
        out = process.stdout.readline()
        seconds = time.monotonic() - started
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    return seconds, out, err
