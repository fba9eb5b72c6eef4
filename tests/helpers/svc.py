"""Data, kernels, losses and certificates for the tests of SVC and NuSVC.

The certificates are made from the bare attributes of the fitted model (``support_``,
``dual_coef_``, ``intercept_``, read in LIBSVM's layout) and from a problem posed by hand.
"""

from __future__ import annotations

import pickle
from itertools import combinations

import numpy as np
from scipy import sparse
from sklearn import svm
from sklearn.base import clone

import maxmargin as mm
from maxmargin.kernels import RBF, Linear, Polynomial
from maxmargin.problems import DualProblem
from maxmargin.solution import Solution

MODELS = [mm.SVC, mm.NuSVC]

# The default, and one at which support sets are those of the optimum.
TOL, TIGHT = 1e-3, 1e-9

# More samples than are solved in float64 and polished: what float32 does must show.
N = 300

# Dividing α by ρ and multiplying it again may move it away from its bound by so much: an interior
# point method knows Σα = ν to 1e-8.
SNAP = 1e-7

# Far more than these problems need: a solver that does not end fails instead.
SECONDS = 20.0


def cloud(n=N, d=3, n_classes=2, *, seed=0, gap=0.8):
    """Return X, y of overlapping classes, in random order."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    centres = gap * rng.standard_normal((n_classes, d))
    return centres[y] + rng.standard_normal((n, d)), y


def signs(y):
    return np.where(y == np.max(y), 1.0, -1.0)


def certified(problem, alpha, b):
    return mm.certify(problem, Solution(np.empty((0, 0)), np.array([b]), mm.Status.CONVERGED,
                                        alpha=alpha))  # fmt: skip


def dual_of(model):
    coef = model.dual_coef_
    return coef.toarray() if sparse.issparse(coef) else np.asarray(coef)


def machines(model, y):
    """Yield rows, ±1, α and b of every binary machine, by LIBSVM's layout of ``dual_coef_``."""
    codes = np.searchsorted(model.classes_, y)
    n_classes = len(model.classes_)
    if n_classes == 2 or getattr(model, "multi_class", "ovo") == "ovr":
        for k, (row, b) in enumerate(zip(dual_of(model), model.intercept_, strict=True)):
            beta = np.zeros(len(y))
            beta[model.support_] = row
            yield np.arange(len(y)), np.where(codes == max(k, n_classes == 2), 1.0, -1.0), beta, b
        return
    owner = codes[model.support_]
    for (i, j), b in zip(combinations(range(n_classes), 2), model.intercept_, strict=True):
        beta = np.zeros(len(y))
        dual = dual_of(model)
        beta[model.support_[owner == i]] = dual[j - 1, owner == i]
        beta[model.support_[owner == j]] = dual[i, owner == j]
        rows = np.flatnonzero((codes == i) | (codes == j))
        yield rows, np.where(codes[rows] == i, 1.0, -1.0), beta[rows], b


def posed(kernel, X, labels, rows, model):
    """Pose the problem of ``model`` for some rows by hand, with one cost for all samples."""
    n = rows.size
    if isinstance(model, (mm.NuSVC, svm.NuSVC)):
        return DualProblem.nu(kernel, X, labels, model.nu, index=rows)
    upper, ridge = np.full(n, model.C), np.zeros(n)
    if getattr(model, "loss", "hinge") == "squared_hinge":
        upper, ridge = np.full(n, np.inf), np.full(n, 0.5 / model.C)
    bias = getattr(model, "fit_intercept", True)
    return DualProblem.classification(kernel, X, labels, upper, ridge, index=rows, bias=bias)


def certificates(model, X, y, kernel=None):
    """Return one full certificate per machine of a fitted model, ours or scikit-learn's."""
    found = []
    for rows, labels, beta, b in machines(model, y):
        problem = posed(kernel or model.kernel_, X, labels, rows, model)
        alpha = beta * labels
        assert (alpha >= 0).all()  # the sign of dual_coef_ is that of the label
        if problem.total and not alpha.any():  # no margin: w = 0, of which there is no α to check
            assert b == 0.0
            continue
        if problem.total:  # the model is divided by ρ
            rho = problem.total / alpha.sum()
            alpha, b = alpha * rho, b * rho
            alpha = np.where(alpha > (1.0 - SNAP) * problem.upper, problem.upper, alpha)
        found.append(certified(problem, alpha, b))
    return found


def assert_certified(model, X, y, tol=None, kernel=None):
    """The published certificate holds, and so does one made here."""
    tol = model.tol if tol is None else tol
    assert set(model.statuses_) == {mm.Status.CONVERGED}
    assert model.fit_status_ == 0
    assert model.certificate_.holds(tol), str(model.certificate_)
    for certificate in certificates(model, X, y, kernel):
        assert certificate.holds(tol), str(certificate)
        # Twice tol, as documented; 0 is what relative gaps of the smallest margins round to.
        assert certificate.relative_gap <= 2 * tol or certificate.gap <= 1e-12


def distance_bound(model, X, y, kernel):
    """Return by how much |g| of a model may be off, from its own certificate.

    P grows by ½‖w − w*‖² at least, so ‖w − w*‖ ≤ √(2 gap); b follows a sample on the margin, which
    is known to the worst violation. Kernel values that were float32 know it no better than that.
    """
    largest, total = kernel.diagonal(X).max(), np.abs(dual_of(model)).sum()
    nu = isinstance(model, (mm.NuSVC, svm.NuSVC))
    unit = total / model.nu if nu else 1.0  # 1/ρ, by which the ν-machine was multiplied
    return np.finfo(np.float32).eps * largest * total + max(
        2.0 * unit * np.sqrt(2.0 * max(c.gap, 0.0) * largest) + c.violation
        for c in certificates(model, X, y, kernel)
    )


def assert_agrees(ours, theirs, X, y, X_ours=None):
    """Decision values differ by no more than the gaps of both allow, and so do predictions."""
    X_ours = X if X_ours is None else X_ours
    near = sum(distance_bound(model, X, y, ours.kernel_) for model in (ours, theirs))
    expected = theirs.decision_function(X)
    assert near < 0.1 * np.abs(expected).max()  # otherwise the comparison is meaningless
    found = ours.decision_function(X_ours)
    if expected.ndim == 1 or ours.decision_function_shape == "ovo":
        np.testing.assert_allclose(found, expected, rtol=0, atol=near)
        clear = np.abs(expected.reshape(len(X), -1)).min(axis=1) > near
    else:
        # Confidences are votes plus s/(3(|s| + 1)), s the sum of c − 1 scores.
        scores = clone(theirs).set_params(decision_function_shape="ovo").fit(X, y)
        clear = np.abs(scores.decision_function(X)).min(axis=1) > near
        atol = near * (len(ours.classes_) - 1) / 3
        np.testing.assert_allclose(found[clear], expected[clear], rtol=0, atol=atol)
    assert clear.mean() > 0.9
    np.testing.assert_array_equal(ours.predict(X_ours)[clear], theirs.predict(X)[clear])


def plain_kernel(X, Z):
    """(1 + ⟨x,z⟩)² as a caller would write it."""
    X, Z = (rows.toarray() if sparse.issparse(rows) else rows for rows in (X, Z))
    return (1.0 + X @ Z.T) ** 2


KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "coef0": 1.0, "degree": 2},
    "rbf": {"kernel": "rbf"},
    "precomputed": {"kernel": "precomputed"},
    "callable": {"kernel": plain_kernel},
    "object": {"kernel": RBF(sigma=1.5)},
    "sum": {"kernel": RBF(gamma=0.5) + 0.1 * Linear()},
    "product": {"kernel": RBF(gamma=0.1) * Polynomial(2, gamma=0.1, coef0=1.0)},
}

LOSSES = {
    "hinge": lambda **options: mm.SVC(C=2.0, **options),
    "squared": lambda **options: mm.SVC(C=2.0, loss="squared_hinge", **options),
    "nu": lambda **options: mm.NuSVC(nu=0.4, **options),
}


def rows_for(name, X):
    """Return what is fitted: the rows, or their Gram matrix."""
    return RBF(gamma=0.3)(X) if name == "precomputed" else X


def assert_pickles_and_clones(model, X):
    """Return a copy by pickle, which is the same; a clone has the parameters only."""
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate_ == model.certificate_
    assert again.get_params() == model.get_params()
    bare = clone(model)
    assert bare.get_params() == model.get_params()
    assert not hasattr(bare, "classes_")
    return again
