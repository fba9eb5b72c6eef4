"""A small table, files that hold it, and how to expect an error."""

import io

import numpy as np
import pytest

from maxmargin.files import DataFileError, read

ROWS = [(1.5, -2.0, "x"), (3.0, 4.25, "z"), (0.0, 1e-3, "x")]
X = np.array([row[:2] for row in ROWS])
Y = np.array([row[2] for row in ROWS])


def text(separator=",", header=True, end="\n"):
    lines = [["a", "b", "y"]] if header else []
    lines += [[repr(v) if isinstance(v, float) else v for v in row] for row in ROWS]
    return end.join(separator.join(line) for line in lines) + end


def packed_npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def parquet(frame):
    buffer = io.BytesIO()
    frame.write_parquet(buffer)
    return buffer.getvalue()


def refused(path, target="y", **options):
    """Return the message of the refusal, which names the file in one line."""
    with pytest.raises(DataFileError) as caught:
        read(path, target, **options)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message
