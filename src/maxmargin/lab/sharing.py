"""A link that restores points and algorithms, and the code of a model."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

from .algorithms import ALGORITHMS
from .lessons import LESSONS, MOST_GOALS
from .points import SAMPLES, Points, checked
from .state import State

# Letters of a link that servers and browsers accept, letters of what a browser keeps instead, and
# bytes after decompression.
MOST_LETTERS = 16_000
MOST_KEPT = 400_000
MOST_UNPACKED = 400_000
MOST_STEPS = 1_000_000
BROKEN = (
    ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, zlib.error
)  # fmt: skip


def link_of(state: State) -> str:
    """Return a state as a query of the address."""
    text = packed(state)
    if len(text) > MOST_LETTERS:
        raise ValueError("Too many points for a link: download them as CSV instead.")
    return f"?lab={text}"


def packed(state: State) -> str:
    """Return a state as letters that need no quotes in an address."""
    points = state.points
    record = {
        "points": [[float(f"{v:.9g}") for v in row] for row in points.X.tolist()],
        "codes": points.codes.tolist(),
        "names": list(points.names),
        "axes": list(points.axes),
        "algorithms": [[key, dict(values)] for key, values in state.chosen],
        "compared": state.compared,
        **{name: value for name, value in _about_the_page(state).items() if value},
        **({} if state.step is None else {"step": state.step}),
        **({} if state.dark is None else {"dark": state.dark}),
    }
    content = zlib.compress(json.dumps(record, separators=(",", ":")).encode("utf-8"), 9)
    return base64.urlsafe_b64encode(content).decode("ascii").rstrip("=")


def _about_the_page(state: State) -> dict[str, Any]:
    return {
        "sample": state.sample,
        "lesson": state.lesson,
        "met": list(state.met),
        "done": list(state.done),
        "tab": state.tab,
        "subject": state.subject,
    }


def restored(text: str, most: int = MOST_LETTERS) -> State:
    """Return the contents of a link; raise ValueError, or use defaults, for invalid ones."""
    if len(text) > most:
        raise ValueError("The link is too long.")
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        unpacker = zlib.decompressobj()
        record = json.loads(unpacker.decompress(content, MOST_UNPACKED).decode("utf-8"))
        points = checked(record["points"], record["codes"], record["names"], record["axes"])
        chosen = tuple(
            (key, ALGORITHMS[key].settled(values)) for key, values in record["algorithms"][:2]
        )
        if not chosen:
            raise ValueError("it names no algorithm.")
        return State(points, chosen, **_page_of(record))
    except RecursionError:
        raise ValueError("The link cannot be read: it is nested too deeply.") from None
    except BROKEN as error:
        raise ValueError(f"The link cannot be read: {error}") from None


def _page_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a link says about the page; what is missing or invalid is left out."""
    met, done = record.get("met", []), record.get("done", [])
    tab, step, dark = record.get("tab"), record.get("step"), record.get("dark")
    return {
        # Links that do not say it name the algorithms that are shown.
        "compared": len(record["algorithms"]) > 1 and record.get("compared", True) is True,
        "sample": _one_of(SAMPLES, record.get("sample")),
        "lesson": _one_of(LESSONS, record.get("lesson")),
        "met": tuple(k for k in met if isinstance(k, int) and 0 <= k < MOST_GOALS),
        "done": tuple(key for key in LESSONS if key in done),
        "tab": tab if isinstance(tab, str) else "",
        "subject": int(record.get("subject") == 1),
        "step": step if isinstance(step, int) and 0 <= step < MOST_STEPS else None,
        "dark": dark if isinstance(dark, bool) else None,
    }


def _one_of(known: Mapping[str, Any], key: Any) -> str:
    return key if isinstance(key, str) and key in known else ""


def code_of(points: Points, key: str, values: Mapping[str, Any]) -> str:
    """Return a program that makes the same model of the same points.

    >>> import numpy as np
    >>> program = code_of(Points(np.eye(2), np.array([0, 1])), "svc", ALGORITHMS["svc"].defaults())
    >>> print(program.splitlines()[-2])
    model = mm.SVC(C=1.0, loss='hinge', kernel='linear', ...
    """
    algorithm = ALGORITHMS[key]
    X, y = points.training(algorithm.family)
    options = ", ".join(
        f"{name}={_written(value)}" for name, value in algorithm.parameters(values).items()
    )
    rows = "".join(f"    {json.dumps(row)},\n" for row in X.tolist())
    answers = "" if y is None else f"y = np.array({json.dumps(y.tolist(), ensure_ascii=False)})\n"
    return (
        "import numpy as np\n\nimport maxmargin as mm\n\n"
        f"X = np.array([\n{rows}])\n{answers}"
        f"model = mm.{algorithm.estimator}({options}).fit({'X' if y is None else 'X, y'})\n"
        "print(model.certificate_)\n"
    )


def _written(value: Any) -> str:
    if isinstance(value, float) and value == float("inf"):
        return 'float("inf")'
    text = repr(value)
    return f"mm.{text}" if text.startswith("Harmonic(") else text
