"""Data, certificates and comparisons for the tests of SVR, NuSVR and OneClassSVM."""

from __future__ import annotations

import pickle

import numpy as np
from scipy import sparse
from sklearn.base import clone

import maxmargin as mm
from maxmargin.kernels import Linear, Precomputed
from maxmargin.problems import DualProblem
from maxmargin.solution import Solution

# More samples than are solved in float64 and polished: what float32 does must show.
N = 300
# Far more than these problems need: a solver that does not end fails instead.
SECONDS = 20.0


def targets(n=N, d=3, seed=0):
    """Return X and noisy targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, 3.0 * np.sin(X[:, 0]) + X[:, 1] + 0.3 * rng.standard_normal(n)


def weights_for(n=N, seed=1):
    """Return weights of which some are 0 and some are negative."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.2, 2.0, n)
    weights[::7] = 0.0
    weights[3::11] = -1.0
    return weights


def product_kernel(X, Z):
    """Return ⟨x, z⟩ as a kernel that the caller wrote."""
    product = X @ Z.T
    return product.toarray() if sparse.issparse(product) else product


KERNELS = {
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "coef0": 1.0, "gamma": 0.3},
    "rbf": {"kernel": "rbf", "gamma": 0.3},
    "sigmoid": {"kernel": "sigmoid", "gamma": 0.01},
    "callable": {"kernel": product_kernel},
    "precomputed": {"kernel": "precomputed"},
}

STORAGE = {
    "dense": lambda X: X,
    "csr": sparse.csr_matrix,
    "float32": lambda X: X.astype(np.float32),
}


def rows_for(kernel, storage, X):
    """Return what is fitted, None where no such fit exists."""
    if kernel == "precomputed":
        return X @ X.T if storage == "dense" else None
    return STORAGE[storage](X)


def dual_of(model):
    """Return the coefficients of the support vectors."""
    coef = model.dual_coef_
    return (coef.toarray() if sparse.issparse(coef) else coef)[0]


def coefficients(model, n):
    """Return the coefficients of all rows."""
    beta = np.zeros(n)
    beta[model.support_] = dual_of(model)
    return beta


def certified(problem, alpha, b):
    """Certify α and b of a problem that was posed by hand."""
    solution = Solution(np.empty((0, 0)), np.array([float(b)]), mm.Status.CONVERGED, alpha=alpha)
    return mm.certify(problem, solution)


def proof(model, X, y, weights=None):
    """Return the certificate of the bare attributes of a fitted model."""
    kept = np.arange(X.shape[0]) if weights is None else np.flatnonzero(weights > 0)
    w = np.ones(kept.size) if weights is None else weights[kept]
    beta = coefficients(model, X.shape[0])
    assert not np.delete(beta, kept).any()
    beta, kernel, rows = beta[kept], model.kernel_, X[kept]
    if isinstance(kernel, Precomputed):
        rows = rows[:, kept]
    if isinstance(model, mm.OneClassSVM):
        problem = DualProblem.one_class(kernel, rows, model.nu, w)
        return certified(problem, beta, model.intercept_[0])
    alpha = np.concatenate([np.maximum(beta, 0.0), np.maximum(-beta, 0.0)])
    if isinstance(model, mm.NuSVR):
        problem = DualProblem.nu_regression(kernel, rows, y[kept], model.C * w, model.nu)
    else:
        squared = model.loss == "squared_epsilon_insensitive"
        problem = DualProblem.regression(
            kernel, rows, y[kept], model.C * w, model.epsilon, squared=squared,
            bias=model.fit_intercept,
        )  # fmt: skip
    return certified(problem, alpha, model.intercept_[0])


def output(model, X):
    """Return what the model says of X: predictions, or scores of the one-class machine."""
    return model.decision_function(X) if isinstance_of_one_class(model) else model.predict(X)


def isinstance_of_one_class(model):
    """Whether a model, ours or scikit-learn's, is about one class."""
    return hasattr(model, "score_samples")


def assert_agrees(ours, theirs, X, rtol=1e-3):
    """Compare all that scikit-learn's model has with ours; zero weights move its support_."""
    expected, scale = output(theirs, X), np.abs(output(theirs, X)).max()
    np.testing.assert_allclose(output(ours, X), expected, atol=rtol * scale)
    assert ours.intercept_.shape == theirs.intercept_.shape == (1,)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, rtol=rtol, atol=rtol * scale)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    assert ours.n_support_.dtype == theirs.n_support_.dtype == ours.support_.dtype
    assert ours.dual_coef_.shape == theirs.dual_coef_.shape
    assert sparse.issparse(ours.dual_coef_) == sparse.issparse(theirs.dual_coef_)
    largest = np.abs(dual_of(theirs)).max()
    np.testing.assert_allclose(dual_of(ours), dual_of(theirs), atol=rtol * largest)
    assert ours.shape_fit_ == theirs.shape_fit_
    assert isinstance(ours.n_iter_, int)
    assert ours.fit_status_ == 0
    if isinstance(ours.kernel_, Linear):
        np.testing.assert_allclose(
            _dense(ours.coef_), _dense(theirs.coef_), atol=rtol * np.abs(_dense(theirs.coef_)).max()
        )


def _dense(matrix):
    return matrix.toarray() if sparse.issparse(matrix) else matrix


def assert_pickles_and_clones(model, X):
    """A copy by pickle is the same; a clone has the parameters only."""
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(output(again, X), output(model, X))
    assert again.certificate_ == model.certificate_
    assert again.get_params() == model.get_params()
    bare = clone(model)
    assert bare.get_params() == model.get_params()
    assert not hasattr(bare, "intercept_")
