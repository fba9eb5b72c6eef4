"""Products of dense rows with panels of samples, compared with NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from maxmargin.engines.cpu.dense_panels import (
    CHUNK,
    PANEL_VECTORS,
    dense_products,
    lay_parts,
    lay_rows,
    roundings,
    take_rows,
)
from maxmargin.runtime.simd import aligned, count


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def dtype(request):
    return request.param


def laid(rows):
    width = PANEL_VECTORS * count(rows)
    panels = aligned((-(-len(rows) // width), rows.shape[1], width), rows.dtype)
    lay_rows(rows, panels)
    return panels


@pytest.mark.parametrize("n_rows", [1, 3, 4, 6, 9])
@pytest.mark.parametrize("n_features", [1, 7, CHUNK, CHUNK + 1, 3 * CHUNK - 1])
def test_dense_products(dtype, n_rows, n_features):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((n_rows, n_features)).astype(dtype)
    z = rng.standard_normal((70, n_features)).astype(dtype)
    panels = laid(z)
    out = np.full((n_rows, panels.shape[0] * panels.shape[2]), np.nan, dtype=dtype)
    dense_products(x, panels, out)
    exact = x.astype(np.longdouble) @ z.T.astype(np.longdouble)
    unit = 0.5 * np.finfo(dtype).eps * (roundings(n_features) + 1)
    assert (np.abs(out[:, :70] - exact) <= unit * (np.abs(x) @ np.abs(z).T)).all()
    assert not out[:, 70:].any()


def test_rows_are_laid_into_panels(dtype):
    rows = np.random.default_rng(1).standard_normal((77, 70)).astype(dtype)
    panels = laid(rows)
    width = panels.shape[2]
    assert panels[1, 5, 3] == rows[width + 3, 5]
    in_parts = np.zeros_like(panels)
    lay_parts(len(panels), rows, in_parts)
    np.testing.assert_array_equal(in_parts, panels)


def test_rows_are_taken_and_centred(dtype):
    rows = np.random.default_rng(1).standard_normal((77, 5))
    samples, centre = np.arange(70)[::-1] + 3, np.arange(5.0)
    out = np.empty((70, 5), dtype=dtype)
    take_rows(3, rows, samples, centre, out)
    np.testing.assert_array_equal(out, (rows[samples] - centre).astype(dtype))
