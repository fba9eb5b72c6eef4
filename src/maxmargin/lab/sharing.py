"""A link that restores points and algorithms, and the code of a model."""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from typing import Any

from .algorithms import ALGORITHMS
from .points import Points, checked

# Letters of a link that servers and browsers accept, and bytes after decompression.
MOST_LETTERS = 16_000
MOST_UNPACKED = 400_000
BROKEN = (
    ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError, zlib.error
)  # fmt: skip


def link_of(points: Points, chosen: list[tuple[str, Mapping[str, Any]]]) -> str:
    """Return points and algorithms with their settings as a query of the address."""
    record = {
        "points": [[float(f"{v:.9g}") for v in row] for row in points.X.tolist()],
        "codes": points.codes.tolist(),
        "names": list(points.names),
        "axes": list(points.axes),
        "algorithms": [[key, dict(values)] for key, values in chosen],
    }
    packed = zlib.compress(json.dumps(record, separators=(",", ":")).encode("utf-8"), 9)
    text = base64.urlsafe_b64encode(packed).decode("ascii").rstrip("=")
    if len(text) > MOST_LETTERS:
        raise ValueError("Too many points for a link: download them as CSV instead.")
    return f"?lab={text}"


def restored(text: str) -> tuple[Points, list[tuple[str, dict[str, Any]]]]:
    """Return the contents of a link; raise ValueError, or use defaults, for invalid ones."""
    if len(text) > MOST_LETTERS:
        raise ValueError("The link is too long.")
    try:
        packed = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        unpacker = zlib.decompressobj()
        record = json.loads(unpacker.decompress(packed, MOST_UNPACKED).decode("utf-8"))
        points = checked(record["points"], record["codes"], record["names"], record["axes"])
        chosen = [
            (key, ALGORITHMS[key].settled(values)) for key, values in record["algorithms"][:2]
        ]
    except RecursionError:
        raise ValueError("The link cannot be read: it is nested too deeply.") from None
    except BROKEN as error:
        raise ValueError(f"The link cannot be read: {error}") from None
    if not chosen:
        raise ValueError("The link names no algorithm.")
    return points, chosen


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
