"""Relaxation."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from tests.helpers.algorithms import blobs, cloud, materialised


def test_full_relaxation_lands_on_the_margin():
    X, y = cloud(20, 3, seed=20)
    recorder = mm.Recorder(every_update=True)
    with pytest.warns(ConvergenceWarning):
        mm.Relaxation(margin=2.0, max_iter=3, callback=recorder).fit(X, y)
    Z = materialised(X, y)
    steps = [step for step in recorder.steps if step.sample is not None]
    landed = [Z[step.sample] @ np.append(*step.planes()) for step in steps]
    np.testing.assert_allclose(landed, 2.0, rtol=1e-9)


@pytest.mark.parametrize("beta", [0.0, 2.0, -0.5, 2.5, np.nan])
@pytest.mark.parametrize("update", ["single", "batch"])
def test_relaxation_factor_outside_0_2_is_refused(beta, update):
    with pytest.raises(ValueError, match="relaxation"):
        mm.Relaxation(relaxation=beta, update=update).fit(*blobs(10, 2))


@pytest.mark.parametrize("update", ["single", "batch"])
def test_relaxation_ends_beyond_its_margin(update):
    X, y = blobs(40, 3, seed=21)
    model = mm.Relaxation(margin=3.0, tol=0.01, update=update, max_iter=10_000).fit(X, y)
    assert model.status_ is mm.Status.CONVERGED
    assert model.certificate_.margin > 0.99 * 3.0
