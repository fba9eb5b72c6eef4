"""SVC and NuSVC: every answer by its certificate, then by scikit-learn's, then in everyday use.

The certificates here are made from the bare attributes of the fitted model (``support_``,
``dual_coef_``, ``intercept_``, read in LIBSVM's layout) and from a problem posed by hand.
"""

from __future__ import annotations

import pickle
import time
import warnings
from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.multiclass import OneVsRestClassifier

import maxmargin as mm
from maxmargin import persistence
from maxmargin.engines.cpu import dual_state, working_set
from maxmargin.kernels import RBF, Linear, Polynomial, Precomputed
from maxmargin.problems import DualProblem
from maxmargin.runtime import threads
from maxmargin.solution import Solution
from maxmargin.solvers.dual import decomposition
from tests.test_faults import interrupt

MODELS = [mm.SVC, mm.NuSVC]
# The default, and one at which support sets are those of the optimum.
TOL, TIGHT = 1e-3, 1e-9
# More samples than are solved in float64 and polished: what float32 does must show.
N = 300
# What dividing α by ρ and multiplying it again may take from one at its bound: an interior point
# knows Σα = ν to 1e-8.
SNAP = 1e-7
# Far above anything that these problems need: a solver that does not end fails instead.
SECONDS = 20.0


def cloud(n=N, d=3, n_classes=2, *, seed=0, gap=0.8):
    """Return X, y of classes that overlap, in an order that means nothing."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    centres = gap * rng.standard_normal((n_classes, d))
    return centres[y] + rng.standard_normal((n, d)), y


def signs(y):
    return np.where(y == np.max(y), 1.0, -1.0)


# The certificate from the attributes alone -----------------------------------------------------


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
    """Return a full certificate a machine of a fitted model, ours or scikit-learn's."""
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
    """The published certificate holds, and so does one that we make ourselves."""
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
    assert near < 0.1 * np.abs(expected).max()  # else the comparison says nothing
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


# Every solver, kernel and loss ------------------------------------------------------------------


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


@pytest.mark.parametrize("solver", ["auto", "decomposition", "smo", "active-set", "qp"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", KERNELS)
def test_certificate_holds(solver, loss, kernel):
    if solver == "qp":
        pytest.importorskip("piqp")
    X, y = cloud()
    X = rows_for(kernel, X)
    model = LOSSES[loss](solver=solver, time_limit=SECONDS, **KERNELS[kernel]).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("solver", ["auto", "decomposition", "coordinate-ascent", "active-set"])
@pytest.mark.parametrize("loss", ["hinge", "squared"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_certificate_holds_without_a_bias(solver, loss, kernel):
    X, y = cloud()
    X = rows_for(kernel, X)
    model = LOSSES[loss](
        solver=solver, fit_intercept=False, time_limit=SECONDS, **KERNELS[kernel]
    ).fit(X, y)
    assert_certified(model, X, y)
    assert model.intercept_ == 0.0


@pytest.mark.parametrize("tol", [1e-1, 1e-2, 1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("loss", LOSSES)
def test_certificate_holds_at_every_tolerance(tol, loss):
    X, y = cloud(500)
    model = LOSSES[loss](tol=tol, time_limit=SECONDS).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "precomputed", "callable"])
def test_certificate_holds_for_every_pair_or_class(multi_class, loss, kernel):
    X, y = cloud(n_classes=4)
    X = rows_for(kernel, X)
    model = LOSSES[loss](multi_class=multi_class, **KERNELS[kernel])
    if loss == "nu":
        model.set_params(nu=0.2)
    model.fit(X, y)
    assert len(model.certificates_) == (6 if multi_class == "ovo" else 4)
    assert_certified(model, X, y)


@pytest.mark.parametrize(
    ("solver", "fit_intercept"), [("coordinate-ascent", True), ("smo", False)]
)  # fmt: skip
def test_solvers_that_do_not_fit_the_bias_are_refused(solver, fit_intercept):
    with pytest.raises(ValueError, match=f"solver='{solver}'.*fit_intercept"):
        mm.SVC(solver=solver, fit_intercept=fit_intercept).fit(*cloud(20))


@pytest.mark.parametrize("solver", ["smo", "qp"])
def test_solvers_of_the_whole_matrix_refuse_what_does_not_fit(solver):
    with pytest.raises(ValueError, match=r"does not fit.*decomposition"):
        mm.SVC(solver=solver, cache_size=0.1).fit(*cloud())


# Agreement with scikit-learn --------------------------------------------------------------------


def thin(n=N, d=12, n_classes=2, seed=1):
    """Return X, mostly zeros and exact in float32, and y."""
    rng = np.random.default_rng(seed)
    X = np.round(4 * rng.standard_normal((n, d))) / 4 * (rng.random((n, d)) < 0.4)
    y = np.digitize(
        X[:, 0] + X[:, 1] + 0.5 * rng.standard_normal(n), [0, 1.0, 2.0][: n_classes - 1]
    )
    return X, y


def shuffled_entries(X):
    """Return X as CSR with the entries of every row in another order."""
    X = sparse.csr_matrix(X)
    for i in range(X.shape[0]):
        part = slice(X.indptr[i], X.indptr[i + 1])
        X.indices[part], X.data[part] = X.indices[part][::-1].copy(), X.data[part][::-1].copy()
    X.has_sorted_indices = X.has_canonical_format = False
    return X


def doubled_entries(X):
    """Return X as CSR with every entry in two halves."""
    X = sparse.csr_matrix(X)
    halves = sparse.csr_matrix(
        (np.repeat(X.data / 2, 2), np.repeat(X.indices, 2), 2 * X.indptr), shape=X.shape
    )
    assert not halves.has_canonical_format
    return halves


def explicit_zeros(X):
    n, d = X.shape
    return sparse.csr_matrix((X.ravel(), np.tile(np.arange(d), n), d * np.arange(n + 1)), X.shape)


def long_indices(X):
    X = sparse.csr_matrix(X)
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    return X


def read_only(X):
    X = X.copy()
    X.flags.writeable = False
    return X


DATA = {
    "float64": np.asarray,
    "float32": lambda X: X.astype(np.float32),
    "by columns": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "lists": lambda X: X.tolist(),
    "read only": read_only,
    "csr": sparse.csr_matrix,
    "csr array": sparse.csr_array,
    "csr float32": lambda X: sparse.csr_matrix(X.astype(np.float32)),
    "csr int64": long_indices,
    "csc": sparse.csc_matrix,
    "coo": sparse.coo_array,
    "unsorted": shuffled_entries,
    "duplicates": doubled_entries,
    "explicit zeros": explicit_zeros,
}


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("kind", DATA)
def test_data_of_every_kind_agree_with_scikit_learn(kind, kernel):
    X, y = thin()
    options = {**KERNELS[kernel], "C": 2.0, "tol": 1e-6}
    theirs = svm.SVC(**options).fit(X, y)
    given = DATA[kind](X)
    ours = mm.SVC(**options).fit(given, y)
    assert_certified(ours, X, y)
    assert_agrees(ours, theirs, X, y, given)
    assert sparse.issparse(ours.dual_coef_) == sparse.issparse(given)
    assert sparse.issparse(ours.support_vectors_) == sparse.issparse(given)
    vectors = ours.support_vectors_
    vectors = vectors.toarray() if sparse.issparse(vectors) else vectors
    np.testing.assert_array_equal(vectors, X[ours.support_])


def test_rows_to_predict_may_be_dense_or_sparse():
    X, y = thin()
    model = mm.SVC().fit(sparse.csr_matrix(X), y)
    expected = model.decision_function(sparse.csr_matrix(X))
    for other in DATA.values():
        np.testing.assert_allclose(model.decision_function(other(X)), expected, atol=1e-12)
    dense = mm.SVC().fit(X, y)
    np.testing.assert_allclose(dense.decision_function(X), expected, atol=10 * TOL)
    with pytest.raises(ValueError, match=r"sparse.*toarray"):  # as scikit-learn
        dense.predict(sparse.csr_matrix(X))


@pytest.mark.parametrize("default_tol", [False, True], ids=["tight", "default"])
@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_two_classes_agree_with_scikit_learn(C, default_tol):
    X, y = cloud()
    tol = TOL if default_tol else TIGHT
    ours = mm.SVC(C=C, tol=tol).fit(X, y)
    theirs = svm.SVC(C=C, tol=tol).fit(X, y)
    assert_certified(ours, X, y)
    if default_tol:  # the gap of one in a thousand allows more than one may ask
        near = 5 * tol * max(1.0, C)
        np.testing.assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), atol=near
        )
        return
    assert_agrees(ours, theirs, X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    np.testing.assert_array_equal(ours.support_vectors_, theirs.support_vectors_)
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=2e-4 * C)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=2e-4 * max(1.0, C))
    assert ours.shape_fit_ == theirs.shape_fit_
    for name in ("support_", "n_support_", "n_iter_", "dual_coef_", "intercept_"):
        mine, other = getattr(ours, name), getattr(theirs, name)
        assert (mine.dtype, mine.shape) == (other.dtype, other.shape), name


@pytest.mark.parametrize("kind", ["float64", "csr"])
@pytest.mark.parametrize("n_classes", [3, 4])
def test_many_classes_agree_with_scikit_learn(n_classes, kind):
    X, y = thin(n_classes=n_classes)
    y = np.array(["fig", "apple", "date", "pear"])[y]
    given = DATA[kind](X)
    ours = mm.SVC(tol=TIGHT, gamma=0.3).fit(given, y)
    theirs = svm.SVC(tol=TIGHT, gamma=0.3).fit(given, y)
    assert_certified(ours, X, y)
    np.testing.assert_array_equal(ours.classes_, theirs.classes_)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    np.testing.assert_array_equal(ours.n_support_, theirs.n_support_)
    assert ours.dual_coef_.shape == (n_classes - 1, ours.support_.size)
    # LIBSVM's float32 kernel values allow no better.
    np.testing.assert_allclose(dual_of(ours), dual_of(theirs), atol=5e-4)
    np.testing.assert_allclose(ours.intercept_, theirs.intercept_, atol=5e-4)
    assert type(ours.dual_coef_) is type(theirs.dual_coef_)
    assert ours.predict(given).dtype == y.dtype
    np.testing.assert_array_equal(ours.predict(given), theirs.predict(given))


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
@pytest.mark.parametrize("make", [mm.SVC, mm.NuSVC])
def test_decision_function_shapes(make, shape):
    X, y = cloud(n_classes=4)
    options = {"decision_function_shape": shape, "tol": 1e-6}
    ours = make(**options).fit(X, y)
    theirs = getattr(svm, make.__name__)(**options).fit(X, y)
    assert ours.decision_function(X).shape == (N, 4 if shape == "ovr" else 6)
    if make is mm.SVC:
        assert_agrees(ours, theirs, X, y)
    elif shape == "ovo":  # LIBSVM's tol is not relative to ρ
        near = 1e-3 * np.abs(theirs.decision_function(X)).max()
        np.testing.assert_allclose(
            ours.decision_function(X), theirs.decision_function(X), atol=near
        )
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_planes_of_a_linear_kernel(kind):
    X, y = thin(n_classes=3)
    given = DATA[kind](X)
    ours = mm.SVC(kernel="linear", tol=TIGHT).fit(given, y)
    theirs = svm.SVC(kernel="linear", tol=TIGHT).fit(given, y)
    mine, other = (model.coef_ for model in (ours, theirs))
    assert sparse.issparse(mine) == sparse.issparse(other)
    mine, other = (c.toarray() if sparse.issparse(c) else c for c in (mine, other))
    np.testing.assert_allclose(mine, other, atol=5e-4)
    scores = ours.set_params(decision_function_shape="ovo").decision_function(given)
    np.testing.assert_allclose(X @ mine.T + ours.intercept_, scores, atol=1e-10)
    with pytest.raises(ValueError, match="read-only"):
        (ours.coef_.data if kind == "csr" else ours.coef_)[:] = 0.0


def test_planes_are_of_linear_kernels_only():
    X, y = cloud()
    model = mm.SVC().fit(X, y)
    assert not hasattr(model, "coef_")
    with pytest.raises(AttributeError, match="linear kernel"):
        _ = model.coef_


@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_hyperplane_of_two_classes(kind):
    X, y = thin()
    model = mm.SVC(kernel="linear").fit(DATA[kind](X), y)
    np.testing.assert_allclose(
        model.hyperplane_.decision(X), model.decision_function(X), atol=1e-10
    )


@pytest.mark.parametrize("break_ties", [False, True])
@pytest.mark.parametrize("n_classes", [3, 5])
def test_equal_votes(break_ties, n_classes):
    X, y = cloud(n_classes=n_classes, d=2, seed=3)
    grid = np.random.default_rng(4).uniform(-4, 4, (2000, 2))
    options = {"gamma": 0.05, "tol": TIGHT, "break_ties": break_ties}
    ours, theirs = mm.SVC(**options).fit(X, y), svm.SVC(**options).fit(X, y)
    found, expected = ours.predict(grid), theirs.predict(grid)
    scores = theirs.set_params(decision_function_shape="ovo", break_ties=False)
    clear = np.abs(scores.decision_function(grid)).min(axis=1) > 1e-3
    np.testing.assert_array_equal(found[clear], expected[clear])
    if break_ties:
        np.testing.assert_array_equal(found, ours.decision_function(grid).argmax(axis=1))
    elif n_classes == 5:  # there are ties, and they are decided by the order of the classes
        ours.set_params(break_ties=True)
        assert (ours.predict(grid) != found).any()


def test_ties_of_pairwise_scores_cannot_be_broken():
    X, y = cloud(n_classes=3)
    model = mm.SVC(break_ties=True, decision_function_shape="ovo")
    with pytest.raises(ValueError, match="break_ties must be False"):
        model.fit(X, y).predict(X)


@pytest.mark.parametrize("loss", ["hinge", "nu"])
def test_one_against_the_rest(loss):
    X, y = cloud(n_classes=4)
    model = LOSSES[loss](multi_class="ovr", tol=1e-6)
    binary = LOSSES[loss](tol=1e-6)
    if loss == "nu":
        model.set_params(nu=0.3)
        binary.set_params(nu=0.3)
    model.fit(X, y)
    parts = OneVsRestClassifier(binary).fit(X, y)
    assert model.dual_coef_.shape == (4, model.support_.size)
    # Machines of the same problems, stopped at the same tolerance; scores are about 1 in size.
    np.testing.assert_allclose(model.decision_function(X), parts.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(model.predict(X), model.decision_function(X).argmax(axis=1))


@pytest.mark.parametrize(
    "labels",
    [
        np.array(["no", "yes"]),
        np.array([False, True]),
        np.array(["a", "b"], dtype=object),
        np.array([-1.0, 1.0]),
        np.array([900, 3], dtype=np.int16),
    ],
    ids=["str", "bool", "object", "float", "int16"],
)
def test_14_labels_of_any_type_come_back(labels):
    X, y = cloud()
    model = mm.SVC().fit(X, labels[y])
    expected = svm.SVC().fit(X, labels[y]).predict(X)
    predicted = model.predict(X)
    assert predicted.dtype == labels.dtype
    assert (predicted == expected).mean() > 0.99


# Weights ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 10.0}, {1: 0.2}, "balanced"])
def test_class_weights_agree_with_scikit_learn(class_weight):
    X, y = cloud()
    y = np.where(np.arange(N) % 5 == 0, y, 0)  # ten to one
    options = {"class_weight": class_weight, "tol": 1e-7, "gamma": 0.3}
    ours, theirs = mm.SVC(**options).fit(X, y), svm.SVC(**options).fit(X, y)
    np.testing.assert_allclose(ours.class_weight_, theirs.class_weight_)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("class_weight", [{0: 1.0, 1: 3.0}, "balanced"])
def test_class_weights_are_weights_of_samples(make, class_weight):
    X, y = cloud()
    y = np.where(np.arange(N) % 3 == 0, y, 0)  # five to one
    share = {0: N / (2 * (y == 0).sum()), 1: N / (2 * (y == 1).sum())}
    of_class = share if class_weight == "balanced" else class_weight
    model = make(0.2, gamma=0.3, class_weight=class_weight, tol=1e-8).fit(X, y)
    plain = make(0.2, gamma=0.3, tol=1e-8).fit(X, y, np.array([of_class[k] for k in y]))
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-5)


def test_weights_of_the_nu_machine_agree_with_scikit_learn():
    X, y = cloud()
    weights = np.random.default_rng(5).uniform(0.2, 3.0, N)
    ours = mm.NuSVC(0.4, tol=1e-8, gamma=0.3).fit(X, y, weights)
    theirs = svm.NuSVC(nu=0.4, tol=1e-8, gamma=0.3).fit(X, y, weights)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_weights_are_costs():
    X, y = cloud()
    weights = np.random.default_rng(5).uniform(0.2, 3.0, N)
    model = mm.SVC(C=2.0, gamma=0.3, class_weight={0: 1.0, 1: 2.0}).fit(X, y, weights)
    upper = 2.0 * weights * np.where(y == 1, 2.0, 1.0)
    problem = DualProblem.hinge(RBF(gamma=0.3), X, signs(y), upper)
    (_, _, beta, b), = machines(model, y)  # fmt: skip
    assert certified(problem, beta * signs(y), b).holds(TOL)
    theirs = svm.SVC(C=2.0, gamma=0.3, class_weight={0: 1.0, 1: 2.0}).fit(X, y, weights)
    np.testing.assert_allclose(
        model.decision_function(X), theirs.decision_function(X), atol=10 * TOL
    )


@pytest.mark.parametrize("gamma", ["scale", 0.3])
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("n_classes", [2, 3])
def test_8_weight_2_is_the_same_sample_twice(loss, n_classes, gamma):
    X, y = cloud(n_classes=n_classes)
    twice = np.arange(N) % 3 == 0
    model = LOSSES[loss](gamma=gamma, tol=1e-8).fit(X, y, np.where(twice, 2.0, 1.0))
    copies = clone(model).fit(np.vstack([X, X[twice]]), np.append(y, y[twice]))
    np.testing.assert_allclose(copies.decision_function(X), model.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("name", ["SVC", "NuSVC"])
def test_negative_weights_are_no_samples(name):
    """As scikit-learn has it; all other estimators refuse them."""
    X, y = cloud()
    weights = np.where(np.arange(N) % 4 == 1, -1.0, 1.0)
    model = getattr(mm, name)(gamma=0.3, tol=1e-7).fit(X, y, weights)
    theirs = getattr(svm, name)(gamma=0.3, tol=1e-7).fit(X, y, weights)
    assert (weights[model.support_] > 0).all()
    np.testing.assert_allclose(model.decision_function(X), theirs.decision_function(X), atol=1e-3)


@pytest.mark.parametrize("gamma", ["scale", 0.3])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed"])
@pytest.mark.parametrize("loss", LOSSES)
def test_weight_0_is_no_sample(loss, kernel, gamma):
    X, y = cloud(n_classes=3)
    absent = np.arange(N) % 4 == 1
    labels = np.where(absent, 77, y)  # not even their class is seen
    model = LOSSES[loss](kernel=kernel, gamma=gamma, tol=1e-8)
    rest, n_rest = np.flatnonzero(~absent), (~absent).sum()
    if kernel == "precomputed":
        K = RBF(gamma=0.3)(X)
        model.fit(K, labels, (~absent).astype(float))
        without = clone(model).fit(K[np.ix_(rest, rest)], y[rest])
        found, expected = model.decision_function(K), without.decision_function(K[:, rest])
    else:
        model.fit(X, labels, (~absent).astype(float))
        without = clone(model).fit(X[rest], y[rest])
        found, expected = model.decision_function(X), without.decision_function(X)
    np.testing.assert_array_equal(model.classes_, [0, 1, 2])
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert not absent[model.support_].any()
    assert without.shape_fit_[0] == n_rest


# Kernels ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:The precomputed kernel")
@pytest.mark.parametrize("n_classes", [2, 3])
def test_one_kernel_in_four_spellings(n_classes):
    X, y = cloud(n_classes=n_classes)
    new = cloud(seed=9)[0]
    kernel = Polynomial(2, gamma=1.0, coef0=1.0)
    options = {"tol": 1e-7}
    named = mm.SVC(kernel="poly", degree=2, gamma=1.0, coef0=1.0, **options).fit(X, y)
    expected = named.decision_function(new)
    for model, train, rows in [
        (mm.SVC(kernel=kernel, **options), X, new),
        (mm.SVC(kernel=plain_kernel, **options), X, new),
        (mm.SVC(kernel="precomputed", **options), kernel(X), kernel(new, X)),
        (mm.SVC(kernel=Precomputed(), **options), kernel(X).astype(np.float32), kernel(new, X)),
    ]:
        model.fit(train, y)
        scale = np.abs(expected).max()
        np.testing.assert_allclose(model.decision_function(rows), expected, atol=1e-4 * scale)
    assert named.kernel_ == kernel


def test_precomputed_models_hold_no_rows():
    X, y = cloud()
    K = RBF(gamma=0.3)(X)
    model = mm.SVC(kernel="precomputed").fit(K, y)
    assert model.support_vectors_.shape[0] == 0
    assert model.__sklearn_tags__().input_tags.pairwise
    with pytest.raises(ValueError, match="features"):
        model.predict(K[:, :-1])


@pytest.mark.parametrize("gamma", ["scale", "auto", 0.7])
@pytest.mark.parametrize("kernel", ["rbf", "poly", "sigmoid"])
def test_gamma_is_scikit_learns(kernel, gamma):
    X, y = cloud()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = mm.SVC(kernel=kernel, gamma=gamma, coef0=0.5, max_iter=1).fit(X, y)
        theirs = svm.SVC(kernel=kernel, gamma=gamma, coef0=0.5, max_iter=1).fit(X, y)
    assert model.kernel_.gamma == pytest.approx(theirs._gamma, rel=1e-12)


# The ν-machine ----------------------------------------------------------------------------------


@pytest.mark.parametrize("nu", [0.2, 0.5, 0.9])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_nu_bounds_margin_errors_and_support_vectors(nu, kernel):
    X, y = cloud()
    model = mm.NuSVC(nu=nu, kernel=kernel, tol=1e-6).fit(X, y)
    assert_certified(model, X, y)
    margins = signs(y) * model.decision_function(X)
    assert (margins < 1.0 - 1e-5).mean() <= nu
    assert model.support_.size / N >= nu


def test_nu_machine_is_the_machine_of_some_cost():
    X, y = cloud()
    nu = mm.NuSVC(nu=0.4, tol=1e-8).fit(X, y)
    C = np.abs(nu.dual_coef_).max()  # 1/(nρ), for some α is at its bound
    soft = mm.SVC(C=C, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(nu.decision_function(X), soft.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("nu", [0.3, 0.6])
def test_nu_machine_agrees_with_scikit_learn(nu):
    X, y = cloud()
    ours = mm.NuSVC(nu=nu, tol=TIGHT).fit(X, y)
    theirs = svm.NuSVC(nu=nu, tol=TIGHT).fit(X, y)
    np.testing.assert_array_equal(ours.support_, theirs.support_)
    scale = np.abs(theirs.dual_coef_).max()
    np.testing.assert_allclose(ours.dual_coef_, theirs.dual_coef_, atol=1e-3 * scale)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)


def test_17_infeasible_nu():
    X, y = cloud(100)
    y = np.where(np.arange(100) < 20, 1, 0)
    with pytest.raises(ValueError, match=r"nu=0\.5.*at most 0\.4") as caught:
        mm.NuSVC(nu=0.5).fit(X, y)
    assert "infeasible" in str(caught.value)  # scikit-learn's word
    model = mm.NuSVC(nu=0.4).fit(X, y)  # the largest there is
    assert model.certificate_.holds(TOL)
    assert set(model.support_) >= set(np.flatnonzero(y == 1))
    with pytest.raises(ValueError, match=r"at most 0\.2"):
        mm.NuSVC(nu=0.4).fit(X, y, np.where(y == 1, 4 / 9, 1.0))
    names = np.array(["fig", "pear", "plum"])[np.minimum(np.arange(100) // 5, 2)]
    with pytest.raises(ValueError, match="plum"):
        mm.NuSVC(nu=0.5).fit(X, names)


# The hard margin --------------------------------------------------------------------------------

HARD_SOLVERS = ["auto", "active-set", "decomposition", "smo"]


@pytest.mark.parametrize("solver", HARD_SOLVERS)
def test_six_points(solver):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    model = mm.SVC(C=np.inf, kernel="linear", solver=solver, tol=1e-10).fit(X, y)
    np.testing.assert_allclose(model.coef_, [[-1 / 3, 1 / 5]], atol=1e-10)
    assert model.intercept_[0] == pytest.approx(2 / 15, abs=1e-10)
    np.testing.assert_array_equal(np.sort(model.support_), [0, 2, 4])
    np.testing.assert_array_equal(model.support_, [4, 0, 2])  # class by class
    np.testing.assert_allclose(model.dual_coef_, [[-17 / 225, 8 / 225, 1 / 25]], atol=1e-10)
    assert model.certificate_.holds(1e-10)
    assert model.hyperplane_.margin_width() == pytest.approx(5.144957554, rel=1e-9)


@pytest.mark.parametrize("solver", HARD_SOLVERS)
@pytest.mark.parametrize("sign", [1, -1])
def test_xor_in_feature_space(solver, sign):
    X, y = mm.datasets.load_xor(return_X_y=True)
    kernel = Polynomial(2, coef0=1.0)
    model = mm.SVC(C=np.inf, kernel=kernel, solver=solver, tol=1e-10).fit(X, sign * y)
    np.testing.assert_allclose(np.abs(model.dual_coef_), 1 / 8, atol=1e-10)
    assert model.certificate_.dual == pytest.approx(1 / 4, abs=1e-10)
    some = np.random.default_rng(0).uniform(-2, 2, (50, 2))
    np.testing.assert_array_equal(y, X[:, 0] * X[:, 1])
    np.testing.assert_allclose(
        model.decision_function(some), sign * some[:, 0] * some[:, 1], atol=1e-9
    )
    assert model.score(X, sign * y) == 1.0


def inseparable(n):
    """Yield hard margins of n samples that do not exist."""
    X, y = cloud(n, 2)
    yield "linear", {"kernel": "linear"}, X, y
    twins = np.vstack([X, X[:1]]), np.append(y, 1 - y[0])
    yield "twins", {"gamma": 2.0}, *twins


@pytest.mark.parametrize("solver", HARD_SOLVERS)
@pytest.mark.parametrize("case", list(inseparable(60)), ids=lambda case: case[0])
def test_9_no_plane_is_an_error_with_its_proof(solver, case):
    _, options, X, y = case
    model = mm.SVC(C=np.inf, solver=solver, time_limit=SECONDS, **options)
    with pytest.raises(mm.NotSeparableError, match="finite C") as caught:
        model.fit(X, y)
    u = caught.value.proof.multipliers
    assert u.min() >= 0.0
    assert u.sum() == pytest.approx(1.0)
    assert signs(y) @ u == pytest.approx(0.0, abs=1e-12)
    kernel = Linear() if options.get("kernel") else RBF(gamma=2.0)
    K = kernel(X)
    beta = signs(y) * u
    assert np.sqrt(abs(beta @ K @ beta) / K.max()) < 1e-7  # √ of rounding
    assert caught.value.proof.distance < 1e-7
    assert not hasattr(model, "classes_")
    soft = mm.SVC(C=10.0, **options).fit(X, y)
    assert soft.certificate_.holds(TOL)


def test_9_xor_has_no_plane():
    X, y = mm.datasets.load_xor(return_X_y=True)
    with pytest.raises(mm.NotSeparableError) as caught:
        mm.SVC(C=np.inf, kernel="linear").fit(X, y)
    u = caught.value.proof.multipliers
    np.testing.assert_allclose((u * y) @ X, 0.0, atol=1e-14)


@pytest.mark.parametrize("case", list(inseparable(2500)), ids=lambda case: case[0])
def test_9_many_samples_without_a_plane(case):
    _, options, X, y = case
    with pytest.raises(mm.NotSeparableError):
        mm.SVC(C=np.inf, time_limit=60.0, **options).fit(X, y)


def test_hard_margin_of_many_classes():
    X, y = cloud(150, n_classes=3, seed=2)
    model = mm.SVC(C=np.inf, gamma=5.0).fit(X, y)
    assert_certified(model, X, y)
    assert model.score(X, y) == 1.0


def test_6_two_samples_are_bisected():
    X = np.array([[1.0, 2.0], [4.0, -2.0]])
    for C in (np.inf, 100.0):
        model = mm.SVC(C=C, kernel="linear").fit(X, [0, 1])
        assert model.hyperplane_.same_plane(mm.Hyperplane([3.0, -4.0], -7.5), tol=1e-9)
        np.testing.assert_allclose(model.decision_function(X), [-1.0, 1.0], atol=1e-9)
    nu = mm.NuSVC(nu=1.0, kernel="linear").fit(X, [0, 1])
    assert nu.hyperplane_.same_plane(mm.Hyperplane([3.0, -4.0], -7.5), tol=1e-9)


# Warm starts ------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_a_path_of_costs(loss, n_classes):
    X, y = cloud(400, n_classes=n_classes)
    warm = LOSSES[loss](warm_start=True)
    warm_steps = cold_steps = 0
    for C in (1.0, 1.3, 1.6, 2.0, 2.5, 2.0, 1.0):
        cold = LOSSES[loss]().set_params(C=C).fit(X, y)
        warm.set_params(C=C).fit(X, y)
        assert_certified(warm, X, y)
        near = sum(distance_bound(model, X, y, warm.kernel_) for model in (warm, cold))
        if n_classes == 2:
            np.testing.assert_allclose(
                warm.decision_function(X), cold.decision_function(X), atol=near
            )
        if C != 1.0:
            warm_steps += warm.n_iter_.sum()
            cold_steps += cold.n_iter_.sum()
    assert warm_steps < cold_steps


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("solver", ["auto", "smo", "active-set"])
def test_the_same_fit_again_takes_no_steps(loss, solver):
    X, y = cloud(400)
    model = LOSSES[loss](warm_start=True, solver=solver).fit(X, y)
    first, steps = model.decision_function(X), model.n_iter_[0]
    model.fit(X, y)
    assert model.n_iter_[0] <= max(3, 0.05 * steps)
    assert_certified(model, X, y)
    near = 2 * distance_bound(model, X, y, model.kernel_)
    np.testing.assert_allclose(model.decision_function(X), first, atol=near)


def test_a_warm_start_from_a_cold_fit():
    X, y = cloud()
    model = mm.SVC().fit(X, y)
    model.set_params(warm_start=True, C=2.0).fit(X, y)
    assert_certified(model, X, y)


def test_other_samples_are_refused():
    X, y = cloud(n_classes=3)
    model = mm.SVC(warm_start=True).fit(X, y)
    with pytest.raises(ValueError, match=r"warm_start.*samples"):
        model.fit(X[1:], y[1:])
    with pytest.raises(ValueError, match=r"warm_start.*classes"):
        model.fit(X, y + 1)
    with pytest.raises(ValueError, match=r"warm_start.*multi_class"):
        model.set_params(multi_class="ovr").fit(X, y)


@pytest.mark.parametrize("change", ["labels", "weights"])
def test_a_start_for_other_tasks_is_refused_or_made_to_fit(change):
    X, y = cloud(n_classes=3)
    model = mm.SVC(warm_start=True).fit(X, y)
    weights = np.ones(N)
    if change == "labels":
        y = np.where(np.arange(N) < 10, 0, y)
    else:
        weights[:10] = 0.0
    message = ""
    try:
        model.fit(X, y, weights)
    except ValueError as error:
        message = str(error)
    if message:
        assert "warm_start" in message
    else:
        rows = weights > 0
        fresh = mm.SVC().fit(X, y, weights)
        assert (model.predict(X[rows]) == fresh.predict(X[rows])).mean() > 0.99


@pytest.mark.parametrize("change", ["gamma", "all rows", "one row"])
def test_a_start_from_another_problem_is_only_a_start(change):
    """What the last scores say of a changed sample is no longer true."""
    X, y = cloud(6000, 4)
    model = mm.SVC(warm_start=True, gamma=0.3).fit(X, y)
    X = X.copy()
    if change == "gamma":
        model.set_params(gamma=0.3001)
    elif change == "all rows":
        X += 1e-3
    else:
        # A sample far on its side, of no consequence so far, goes deep into the other class.
        margins = signs(y) * model.decision_function(X)
        watched = np.linspace(0, len(y) - 1, dual_state.TUNING.n_checked_claims).astype(int)
        margins[np.append(watched, model.support_)] = -np.inf
        moved = np.argmax(margins)
        others = np.flatnonzero(y != y[moved])
        X[moved] = X[others[np.argmax(margins[others])]]
    model.fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("limit", [{"max_iter": 20}, {"time_limit": 1e-9}])
def test_a_fit_that_was_cut_short_goes_on(limit, n_classes):
    X, y = cloud(n_classes=n_classes)
    model = mm.SVC(warm_start=True, **limit)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    before = model.certificate_.gap
    model.set_params(max_iter=-1, time_limit=None).fit(X, y)
    assert_certified(model, X, y)
    assert model.certificate_.gap < before


def test_a_fit_cut_short_again_and_again_ends():
    X, y = cloud()
    model = mm.SVC(C=100.0, warm_start=True, max_iter=100)
    gaps = []
    for _ in range(200):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            model.fit(X, y)
        gaps.append(model.certificate_.gap)
        if model.status_ is mm.Status.CONVERGED:
            break
    assert_certified(model, X, y)
    assert 1 < len(gaps) < 200
    assert gaps[-1] < gaps[0]


# Limits, callbacks, progress --------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["auto", "smo", "active-set", "decomposition"])
@pytest.mark.parametrize("loss", LOSSES)
def test_25_iteration_limit(loss, solver):
    X, y = cloud()
    model = LOSSES[loss](max_iter=5, solver=solver)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    message = str(caught[0].message)
    for told in ("max_iter=5", f"{model.certificate_.relative_gap:.1e}", "StandardScaler",
                 "times as far as the narrowest"):  # fmt: skip
        assert told in message
    assert model.status_ is mm.Status.ITERATION_LIMIT
    assert model.n_iter_[0] <= 5
    assert model.fit_status_ == 1
    assert not model.certificate_.holds(TOL)
    assert model.predict(X).shape == y.shape
    assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_25_the_warning_points_at_the_callers_line(n_classes):
    X, y = cloud(n_classes=n_classes)
    with pytest.warns(ConvergenceWarning) as caught:
        mm.SVC(max_iter=5).fit(X, y)
    assert caught[0].filename == __file__


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("make", [mm.SVC, lambda **options: mm.NuSVC(0.3, **options)])
def test_24_time_limit(make, n_classes):
    X, y = cloud(n_classes=n_classes)
    model = make(time_limit=1e-9)
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model.fit(X, y)
    assert model.status_ is mm.Status.TIME_LIMIT
    assert not model.certificate_.holds(TOL)
    assert model.certificate_.gap > 0
    assert set(model.predict(X)) <= set(range(n_classes))


def test_24_time_limit_is_kept():
    """In the middle of a problem that takes much longer."""
    X, y = cloud(4500, seed=1)
    started = time.perf_counter()
    with pytest.warns(ConvergenceWarning, match="relative gap"):
        model = mm.SVC(C=1e5, gamma=1.0, time_limit=0.5).fit(X, y)
    assert time.perf_counter() - started < 2.0  # with compiled code to load, on a busy machine
    assert model.score(X, y) > 0.5
    assert 0 < model.certificate_.gap < np.inf


def test_24_no_time_is_left_for_the_last_classes():
    X, y = cloud(4500, n_classes=3)
    with pytest.warns(ConvergenceWarning):
        model = mm.SVC(C=1e4, gamma=1.0, multi_class="ovr", time_limit=0.3).fit(X, y)
    assert set(model.statuses_) <= {mm.Status.CONVERGED, mm.Status.TIME_LIMIT}
    assert len(model.certificates_) == 3


@pytest.mark.parametrize("largest", [0, 1])
def test_scores_without_any_rounding(largest):
    """Every α is C, a power of 2, and every product a whole number."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(-largest, largest + 1, (4500, 3)).astype(float), np.arange(4500) % 2
    model = mm.SVC(C=2.0**-10, kernel="linear").fit(X, y)
    assert_certified(model, X, y)


def test_no_step_at_all():
    X, y = cloud()
    with pytest.warns(ConvergenceWarning):
        model = mm.SVC(max_iter=0).fit(X, y)
    assert model.n_iter_[0] == 0
    assert model.support_.size == 0
    assert model.certificate_.dual == pytest.approx(0.0, abs=1e-9)  # rounded down
    assert model.predict(X).shape == y.shape


def test_a_callback_sees_every_round_and_stops():
    X, y = cloud(4500, seed=1)
    seen = []

    def watch(step):
        seen.append((step.iteration, step.objective, step.violation))
        return len(seen) == 3

    model = mm.SVC(C=100.0, callback=watch).fit(X, y)
    assert model.status_ is mm.Status.STOPPED
    assert [iteration for iteration, _, _ in seen] == [1, 2, 3]
    assert (np.diff([objective for _, objective, _ in seen]) < 0).all()
    assert model.trace_.objective.tolist() == [objective for _, objective, _ in seen]
    # The model is that of the last step, and says itself how good it is.
    assert -model.certificate_.dual == pytest.approx(seen[-1][1], rel=1e-5)
    assert not model.certificate_.holds(TOL)


def test_a_recorder_keeps_what_was():
    X, y = cloud()
    recorder = mm.Recorder()
    model = mm.SVC(callback=recorder, solver="smo", tol=1e-6).fit(X, y)
    problem = DualProblem.hinge(model.kernel_, X, signs(y), 1.0)
    assert len(recorder.steps) == len(model.trace_) > 0
    for step in recorder.steps:
        solution = step.snapshot()
        certificate = mm.certify(problem, solution)
        assert certificate.dual == pytest.approx(-step.objective, rel=1e-8)
        # Of a pair; each is within half of it of some b.
        assert certificate.violation <= step.violation + 1e-9
        scores = model.kernel_(X) @ (solution.alpha * signs(y)) + solution.b
        assert step.errors == (signs(y) * scores <= 0).sum()
    last = recorder.steps[-1].snapshot()
    np.testing.assert_allclose(last.alpha[model.support_], np.abs(model.dual_coef_[0]), atol=1e-12)


def test_a_recorder_of_many_classes():
    X, y = cloud(n_classes=3)
    recorder = mm.Recorder()
    model = mm.SVC(callback=recorder).fit(X, y)
    assert {step.task for step in recorder.steps} == {0, 1, 2}
    assert sum(len(trace) for trace in model.traces_) == len(recorder.steps)
    assert_certified(model, X, y)


def test_verbose_prints_a_line_a_round(capsys):
    X, y = cloud(n_classes=3)
    model = mm.SVC(verbose=True).fit(X, y)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == sum(len(trace) for trace in model.traces_)
    for name in ("[0 against 1]", "[0 against 2]", "[1 against 2]"):
        assert any(line.startswith(name) and "objective" in line for line in lines)
    mm.SVC().fit(X, y)
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("max_iter", [-1, 10_000])
def test_progress_bars_of_scikit_learn(n_classes, max_iter, capsys):
    callback = pytest.importorskip("sklearn.callback")
    X, y = cloud(n_classes=n_classes)
    model = mm.SVC(max_iter=max_iter).set_callbacks(callback.ProgressBar()).fit(X, y)
    assert "SVC" in capsys.readouterr().out
    assert_certified(model, X, y)


@pytest.mark.parametrize(("n", "solver"), [(3000, "auto"), (4500, "auto"), (4500, "smo")])
def test_23_slices_of_work_are_short(n, solver, monkeypatch):
    """A step reads some n numbers: 3·10⁸ of them take some tenths of a second."""
    sizes = []

    def solve(self, stop, max_steps):
        sizes.append(max_steps * self.members.size)
        return plain(self, stop, max_steps)

    plain = working_set.WorkingSet.solve
    monkeypatch.setattr(working_set.WorkingSet, "solve", solve)
    mm.SVC(solver=solver).fit(*cloud(n))
    assert max(sizes) <= 3e8


LONG_FITS = {
    "decomposition": "mm.SVC(C=1e6, gamma=1.0, tol=1e-9).fit(*many(20_000, 5))",
    "many classes": "mm.SVC(C=1e6, gamma=1.0, tol=1e-9).fit(*many(9_000, 5, 6))",
    "predict": "model = mm.SVC(gamma=1.0, max_iter=5000).fit(*many(4000, 5)); "
    "model.predict(many(3_000_000, 5)[0])",
}


@pytest.mark.parametrize("name", LONG_FITS)
def test_23_ctrl_c_stops_a_long_fit(name):
    seconds, out, err = interrupt("mm.SVC().fit(*small); " + LONG_FITS[name], wait=1.5)
    assert out == "interrupted, usable 3\n", err
    assert seconds < 1.0  # the promise is 0.5 s, on a machine that does nothing else


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        "solver='smo'",
        "solver='qp'",
        "solver='active-set'",
        "solver='coordinate-ascent', fit_intercept=False",
    ],
)
def test_23_ctrl_c_stops_other_solvers(options):
    statement = f"mm.SVC(C=1e6, gamma=1.0, tol=1e-9, {options}).fit(*many(5_000, 5))"
    seconds, out, err = interrupt("mm.SVC().fit(*small); " + statement, wait=3.0)
    assert out == "interrupted, usable 3\n", err
    assert seconds < 1.0


# Everyday use -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("n", "n_classes"), [(N, 2), (1500, 5), (6000, 2)], ids=["small", "classes", "large"]
)
def test_the_same_bits_twice_and_on_any_number_of_cores(n, n_classes):
    X, y = cloud(n, 6, n_classes)
    models = [mm.SVC(C=3.0, n_jobs=n_jobs).fit(X, y) for n_jobs in (None, 1, 2, 2)]
    for model in models[1:]:
        np.testing.assert_array_equal(model.support_, models[0].support_)
        np.testing.assert_array_equal(model.dual_coef_, models[0].dual_coef_)
        np.testing.assert_array_equal(model.intercept_, models[0].intercept_)


@pytest.fixture
def pools(monkeypatch):
    """Threads that were started, on a machine of two cores."""
    made, start = [], threads.start_new_thread

    def started(work, arguments):
        made.append(work)
        return start(work, arguments)

    monkeypatch.setattr(threads, "start_new_thread", started)
    monkeypatch.setattr(threads, "_available", lambda: 2)
    return made


@pytest.mark.parametrize(("n", "n_classes"), [(4500, 2), (900, 3)])
def test_one_job_is_one_thread(pools, n, n_classes):
    X, y = cloud(n, n_classes=n_classes)
    mm.SVC(n_jobs=1).fit(X, y)
    assert not pools
    mm.SVC(n_jobs=2).fit(X, y)
    assert pools  # the test sees what it is about


def test_one_job_is_one_thread_in_prediction(pools):
    X, y = cloud(2000)
    model = mm.SVC(n_jobs=1).fit(X, y)
    model.predict(X)
    assert not pools


@pytest.mark.parametrize("kind", DATA)
def test_nothing_of_the_callers_is_changed(kind):
    X, y = thin()
    given, labels, weights = DATA[kind](X), y.copy(), np.ones(N)
    parts = {"labels": labels, "weights": weights}
    if sparse.issparse(given):
        names = ["data", "row", "col"] if given.format == "coo" else ["data", "indices", "indptr"]
        parts |= {name: getattr(given, name) for name in names}
    elif isinstance(given, np.ndarray):
        parts["X"] = given
    copies = {name: part.copy() for name, part in parts.items()}
    for part in parts.values():
        part.flags.writeable = False
    model = mm.SVC().fit(given, labels, weights)
    model.predict(given)
    mm.NuSVC(0.2, kernel="linear").fit(given, labels)
    for name, part in parts.items():
        np.testing.assert_array_equal(part, copies[name])
        assert part.dtype == copies[name].dtype


def test_a_precomputed_matrix_is_not_changed():
    X, y = cloud(n_classes=3)
    K = RBF(gamma=0.3)(X)
    before = K.copy()
    K.flags.writeable = False
    for options in ({}, {"loss": "squared_hinge"}, {"solver": "smo"}, {"solver": "active-set"}):
        mm.SVC(kernel="precomputed", **options).fit(K, y)
        np.testing.assert_array_equal(K, before)


@pytest.mark.parametrize("make", [mm.SVC, mm.NuSVC])
@pytest.mark.parametrize("warm_start", [False, True])
def test_pickles_and_clones(make, warm_start):
    X, y = cloud(n_classes=3)
    model = make(kernel=RBF(gamma=0.4), warm_start=warm_start).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate_ == model.certificate_
    assert again.get_params() == model.get_params()
    bare = clone(model)
    assert bare.get_params() == model.get_params()
    assert not hasattr(bare, "classes_")
    if warm_start:
        assert again.fit(X, y).n_iter_.max() <= 3


def test_a_model_is_no_larger_than_its_support_vectors():
    X, y = cloud(2000)
    model = mm.SVC().fit(X, y)
    # Rows, coefficients, a trace: not the Gram matrix, not X.
    assert len(pickle.dumps(model)) < 2 * X[model.support_].nbytes + 20_000


def test_parameters_are_left_alone():
    X, y = cloud()
    model = mm.SVC(gamma="scale", C=2, kernel="rbf", tol=1e-2)
    before = model.get_params()
    model.fit(X, y)
    assert model.get_params() == before


def test_frames_have_names():
    pandas = pytest.importorskip("pandas")
    X, y = cloud()
    frame = pandas.DataFrame(X, columns=["mass", "width", "height"])
    labels = pandas.Series(np.where(y == 1, "apple", "pear"))
    model = mm.SVC().fit(frame, labels, pandas.Series(np.ones(N)))
    assert model.feature_names_in_.tolist() == ["mass", "width", "height"]
    assert model.n_features_in_ == 3
    plain = mm.SVC().fit(X, labels.to_numpy())
    np.testing.assert_allclose(  # a frame lies in memory column by column
        model.decision_function(frame), plain.decision_function(X), atol=1e-12
    )
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["width", "mass", "height"]])
    with pytest.raises(ValueError, match="2 features"):
        plain.predict(X[:, :2])


@pytest.mark.parametrize("kernel", ["rbf", "linear", "callable", "precomputed"])
@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_rows_together_are_rows_one_by_one(kernel, kind):
    X, y = thin(700, n_classes=3)
    if kernel == "precomputed" and kind == "csr":
        pytest.skip("a Gram matrix is dense")
    options = KERNELS[kernel]
    given = DATA[kind](rows_for(kernel, X))
    model = mm.SVC(decision_function_shape="ovo", **options).fit(given, y)
    together = model.decision_function(given)
    alone = np.vstack([model.decision_function(given[[i]]) for i in range(0, 700, 70)])
    # Sums of α K in another order: α is at most C, and there are fewer than 700.
    largest = 700 * model.kernel_.diagonal(given).max()
    near = np.finfo(float).eps * largest * 10
    np.testing.assert_allclose(alone, together[::70], atol=near)
    np.testing.assert_array_equal(
        [model.predict(given[[i]])[0] for i in range(0, 700, 70)], model.predict(given)[::70]
    )


def rotation(d):
    return np.linalg.qr(np.random.default_rng(12).standard_normal((d, d)))[0]


@pytest.mark.parametrize("loss", LOSSES)
def test_what_the_answer_does_not_depend_on(loss):
    X, y = cloud(d=4)
    order, turn = np.random.default_rng(13).permutation(N), rotation(4)
    model = LOSSES[loss](gamma=0.3, tol=1e-8).fit(X, y)
    expected = model.decision_function(X)
    shuffled = clone(model).fit(X[order], y[order])
    flipped = clone(model).fit(X, 1 - y)
    turned = clone(model).fit(X @ turn, y)
    moved = clone(model).fit(X + 10.0, y)
    scaled = clone(model).set_params(gamma=0.3 / 4).fit(2.0 * X, y)
    near = 1e-6 * np.abs(expected).max()
    np.testing.assert_allclose(shuffled.decision_function(X), expected, atol=near)
    np.testing.assert_allclose(-flipped.decision_function(X), expected, atol=near)
    np.testing.assert_allclose(turned.decision_function(X @ turn), expected, atol=near)
    np.testing.assert_allclose(moved.decision_function(X + 10.0), expected, atol=near)
    np.testing.assert_allclose(scaled.decision_function(2.0 * X), expected, atol=near)
    if loss != "nu":  # C K is what counts
        dearer = clone(model).set_params(kernel=0.5 * RBF(gamma=0.3), C=4.0).fit(X, y)
        np.testing.assert_allclose(dearer.decision_function(X), expected, atol=near)


# Large, tight on memory, hard -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("loss", "kind"),
    [("hinge", "float64"), ("hinge", "csr"), ("squared", "float64"), ("nu", "float64")],
)
def test_the_size_of_the_cache_does_not_matter(loss, kind):
    X, y = thin(3100)
    given = DATA[kind](X)
    small, large = (LOSSES[loss](cache_size=size).fit(given, y) for size in (0.01, "auto"))
    near = sum(distance_bound(model, X, y, model.kernel_) for model in (small, large))
    for model in (small, large):
        assert_certified(model, X, y)
    np.testing.assert_allclose(
        small.decision_function(given), large.decision_function(given), atol=near
    )


def test_shrinking_does_not_change_the_answer(monkeypatch):
    focused = []
    plain = decomposition._Descent.focus

    def focus(self, rows, part):
        focused.append(rows.size)
        return plain(self, rows, part)

    monkeypatch.setattr(decomposition._Descent, "focus", focus)
    X, y = cloud(5000)
    shrunk = mm.SVC(C=10.0, gamma=0.5, tol=1e-5).fit(X, y)
    assert focused  # the test sees what it is about
    assert max(focused) <= decomposition.Tuning().restricted_share * 5000
    focused.clear()
    whole = mm.SVC(C=10.0, gamma=0.5, tol=1e-5, shrinking=False).fit(X, y)
    assert not focused
    near = sum(distance_bound(m, X, y, m.kernel_) for m in (shrunk, whole))
    for model in (shrunk, whole):
        assert_certified(model, X, y)
    np.testing.assert_allclose(shrunk.decision_function(X), whole.decision_function(X), atol=near)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_many_samples(loss, fit_intercept):
    """More than a working set, so that it is renewed."""
    if loss == "nu" and not fit_intercept:
        pytest.skip("the ν-machine has a bias")
    X, y = cloud(2 * decomposition.WORKING_SET + 100)
    model = LOSSES[loss](**({} if loss == "nu" else {"fit_intercept": fit_intercept})).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize(
    ("n", "kernel"), [(400, "rbf"), (400, "poly"), (400, "linear"), (1000, "rbf")]
)
def test_large_costs_of_float32_rows(n, kernel):
    X, y = cloud(n)
    X = X.astype(np.float32)
    model = mm.SVC(C=1e4, time_limit=SECONDS, **KERNELS[kernel]).fit(X, y)
    assert_certified(model, X, y)


@pytest.mark.parametrize(
    "C",
    [1e3, 1e5],
)
def test_the_gap_is_twice_tol_at_most(C):
    """As documented; a slack of 1e-6 counts where its cost is 1e5."""
    X, y = cloud(400, gap=1.5)
    model = mm.SVC(C=C, time_limit=SECONDS).fit(X, y)
    assert model.certificate_.holds(TOL)
    assert model.certificate_.relative_gap <= 2 * TOL


@pytest.mark.slow
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_twenty_thousand_rows(C):
    X, y = cloud(20_000, 10)
    model = mm.SVC(C=C).fit(X, y)
    assert_certified(model, X, y)
    X, y = thin(20_000, 50)
    model = mm.SVC(C=C).fit(sparse.csr_matrix(X), y)
    assert_certified(model, sparse.csr_matrix(X), y)


# Badly scaled data ------------------------------------------------------------------------------


def far_from_the_origin():
    """Yield data whose products are large against the differences that matter."""
    rng = np.random.default_rng(6)
    X, y = cloud(600)
    for offset in (1e2, 1e4):
        yield pytest.param(X + offset, y, {"gamma": 0.5}, id=f"offset {offset:g}")
        yield pytest.param(X + offset, y, {"kernel": "linear"}, id=f"linear, offset {offset:g}")
        clusters = X.copy()
        clusters[:, 0] += offset * rng.choice([-1.0, 1.0], len(X))
        yield pytest.param(clusters, y, {"gamma": 0.5}, id=f"clusters, offset {offset:g}")
        zeros = np.column_stack([X[:, :1] + offset, X[:, 1:], np.zeros((len(X), 10))])
        for C in (1.0, 100.0):
            name = f"zeros, C={C:g}, offset {offset:g}"
            yield pytest.param(zeros, y, {"gamma": 0.5, "C": C}, id=name)
    X = X * np.array([1e-8, 1.0, 1e8])
    yield pytest.param(X, y, {}, id="scales")
    yield pytest.param(X, y, {"gamma": 1.0}, id="scales, gamma")
    yield pytest.param(X, y, {"kernel": "linear"}, id="scales, linear")
    yield pytest.param(X, y, {"kernel": "poly"}, id="scales, poly")


@pytest.mark.parametrize(("X", "y", "options"), list(far_from_the_origin()))
def test_3_bad_scales_converge_or_are_warned_of(X, y, options):
    """Never a wrong answer that calls itself converged, and never without an end."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = mm.SVC(time_limit=1.0, **options).fit(X, y)
    warned = [w for w in caught if issubclass(w.category, ConvergenceWarning)]
    if model.status_ is mm.Status.CONVERGED:
        assert_certified(model, X, y)
    else:
        assert model.status_ is not mm.Status.TIME_LIMIT
        assert len(warned) == 1
        assert "StandardScaler" in str(warned[0].message)


@pytest.mark.parametrize(
    ("kernel", "scale"),
    [
        (kernel, scale)
        for kernel in ("linear", "rbf", "poly")
        for scale in (1e10, 1e30, 1e60, 1e155, 1e300)
    ],
)
def test_2_values_that_overflow(kernel, scale):
    X, y = cloud()
    model, message = mm.SVC(kernel=kernel, time_limit=0.5), ""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model.fit(X * scale, y)
        except ValueError as error:
            message = str(error)
    if message:
        assert "rescale" in message
    else:
        assert np.isfinite(model.decision_function(X * scale)).all()
        assert model.status_ is not mm.Status.CONVERGED or model.certificate_.holds(TOL)


def test_2_large_float32():
    X, y = cloud()
    X = (X * 1e30).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = mm.SVC(time_limit=2.0).fit(X, y)
    assert_certified(model, X.astype(float), y)


# Faults -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("kind", ["float64", "csr"])
def test_1_not_finite(make, value, kind):
    X, y = thin(40)
    model = make(0.2).fit(X, y)
    X[7, 2] = value
    for use in (lambda: make(0.2).fit(DATA[kind](X), y), lambda: model.predict(DATA[kind](X))):
        with pytest.raises(ValueError, match="row 7, column 2"):
            use()


@pytest.mark.parametrize("make", MODELS)
def test_4_a_constant_feature_has_no_say(make):
    X, y = cloud()
    widened = np.column_stack([X, np.full(N, 3.0)])
    model = make(0.3, kernel="linear", tol=1e-8).fit(widened, y)
    plain = make(0.3, kernel="linear", tol=1e-8).fit(X, y)
    assert abs(model.coef_[0, 3]) < 1e-6  # Σαy times 3
    np.testing.assert_allclose(model.decision_function(widened), plain.decision_function(X),
                               atol=1e-4)  # fmt: skip


@pytest.mark.parametrize("make", MODELS)
def test_5_6_7_too_little(make):
    X, y = cloud(20)
    with pytest.raises(ValueError, match="1 class"):
        make().fit(X, np.zeros(20))
    with pytest.raises(ValueError, match="1 class"):
        make().fit(X, y, (y == 0).astype(float))
    with pytest.raises(ValueError, match=r"1 class|1 sample"):
        make().fit(X[:1], y[:1])
    with pytest.raises(ValueError, match="0 feature"):
        make().fit(np.empty((4, 0)), [0, 1, 0, 1])
    model = make().fit(X, y)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(np.empty((0, 3)))


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("kind", ["n < d", "rank 1", "zero column", "all zero", "all equal"])
def test_11_rank_deficient(make, kind):
    rng = np.random.default_rng(11)
    X = {
        "n < d": rng.normal(size=(6, 30)),
        "rank 1": np.outer(rng.normal(size=6), rng.normal(size=3)),
        "zero column": np.column_stack([rng.normal(size=6), np.zeros(6)]),
        "all zero": np.zeros((6, 2)),
        "all equal": np.full((6, 2), 7.0),
    }[kind]
    y = np.array([0, 1, 0, 1, 0, 1])
    for kernel in ("linear", "rbf"):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", ".*leaves no margin")
            model = make(kernel=kernel).fit(X, y)
        assert model.certificate_.holds(TOL)
        assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("storage", [np.asarray, sparse.csr_matrix])
@pytest.mark.parametrize("kernel", ["linear", "poly", "rbf"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_nu_without_a_margin_is_w_0(n_classes, kernel, storage, tmp_path):
    """Every point is in every class, and every format gives the documented label."""
    X = np.repeat(np.random.default_rng(0).normal(size=(15, 2)), n_classes, axis=0)
    y = np.tile(np.arange(n_classes), 15) + 5
    model = mm.NuSVC(nu=0.5, kernel=kernel, gamma=1.0, degree=2)
    with pytest.warns(UserWarning, match="nu=0.5 leaves no margin.*Raise nu") as caught:
        model.fit(storage(X), y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert model.certificate_.holds(TOL)
    assert model.status_ is mm.Status.CONVERGED
    assert model.n_support_.sum() == 0
    assert not model.intercept_.any()
    new = storage(np.random.default_rng(1).normal(size=(20, 2)))
    assert (model.predict(new) == y.max()).all()
    if n_classes == 2:
        assert not model.decision_function(new).any()
    persistence.save(model, tmp_path / "a.safetensors")
    persistence.save_libsvm(model, tmp_path / "a.model")
    others = [
        persistence.load(tmp_path / "a.safetensors"),
        persistence.load_libsvm(tmp_path / "a.model", n_features=2),
    ]
    for other in others:
        rows = new if sparse.issparse(other.support_vectors_) else np.asarray(new @ np.eye(2))
        assert (other.predict(rows) == y.max()).all()


def test_nu_at_the_edge_of_a_margin():
    """Labels that mean nothing: a small nu has no margin, a large one has; P decides."""
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2
    margins = []
    for nu in np.linspace(0.05, 1.0, 20):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = mm.NuSVC(nu=nu, kernel="linear").fit(X, y)
        found = model.certificate_.primal < -1e-12
        margins.append(found)
        assert bool(model.coef_.any()) == found
        assert bool(caught) != found
    assert margins == sorted(margins)
    assert set(margins) == {False, True}


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize(
    ("labels", "told"),
    [
        (np.linspace(0, 1, 20), "(?i)label|continuous"),
        (np.array([np.nan, *np.ones(10), *np.zeros(9)]), "NaN"),
        (np.array(["a", 1] * 10, dtype=object), "type"),
        (np.column_stack([np.arange(20) % 2] * 2), "1d|y "),
        (np.arange(19) % 2, "inconsistent"),
    ],
    ids=["continuous", "nan", "mixed", "two columns", "too few"],
)
def test_13_bad_labels(make, labels, told):
    with pytest.raises(ValueError, match=told):
        make().fit(cloud(20)[0], labels)


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize(
    ("weight", "told"),
    [
        (np.zeros(20), "zero"),
        (np.where(np.arange(20) == 2, np.nan, 1.0), "NaN"),
        (np.where(np.arange(20) == 2, np.inf, 1.0), "inf"),
        (np.ones(19), "19"),
        (np.ones((20, 2)), "1D"),
    ],
    ids=["zero", "nan", "inf", "short", "2-D"],
)
def test_15_bad_weights(make, weight, told):
    with pytest.raises(ValueError, match=r"(?i)weight") as caught:
        make().fit(*cloud(20), weight)
    assert told.lower() in str(caught.value).lower()


BAD_PARAMETERS = [
    *((mm.SVC, {"C": v}) for v in (0, 0.0, -1.0, np.nan, "1", None)),
    *((mm.NuSVC, {"nu": v}) for v in (0.0, -0.1, 1.5, np.nan, "1")),
    *((make, {"tol": v}) for make in MODELS for v in (0.0, -1.0, np.nan, "1")),
    *((mm.SVC, {"max_iter": v}) for v in (-2, 1.5, "1")),
    *((mm.SVC, {"time_limit": v}) for v in (0.0, -1.0, "1")),
    *((mm.SVC, {"cache_size": v}) for v in (0, -1, "all")),
    *((mm.SVC, {"gamma": v}) for v in (-1.0, np.nan, "wide")),
    (mm.SVC, {"kernel": "laplace"}),
    (mm.SVC, {"loss": "logistic"}),
    (mm.SVC, {"solver": "libsvm"}),
    (mm.SVC, {"degree": -1, "kernel": "poly"}),
    (mm.SVC, {"coef0": np.nan, "kernel": "poly"}),
    (mm.SVC, {"multi_class": "kesler"}),
    (mm.SVC, {"decision_function_shape": "votes"}),
    (mm.SVC, {"callback": 3}),
    (mm.SVC, {"class_weight": "heavy"}),
    (mm.SVC, {"class_weight": {0: -1.0}}),
    (mm.SVC, {"n_jobs": 0}),
    (mm.SVC, {"n_jobs": 1.5}),
]


@pytest.mark.parametrize(
    ("make", "options"), BAD_PARAMETERS, ids=lambda v: v.__name__ if callable(v) else str(v)
)
def test_16_bad_parameters_are_named(make, options):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=name) as caught:
        make(**options).fit(*cloud(20))
    assert repr(value) in str(caught.value)


@pytest.mark.parametrize("make", MODELS)
def test_18_precomputed_kernels(make):
    X, y = cloud(40)
    K = X @ X.T
    model = make(0.3, kernel="precomputed")
    with pytest.raises(ValueError, match=r"square.*\(40, 39\)"):
        model.fit(K[:, :-1], y)
    lopsided = K.copy()
    lopsided[3, 4] += 1.0
    with pytest.raises(ValueError, match=r"not symmetric.*1"):
        model.fit(lopsided, y)
    linear = make(0.3, kernel="linear", tol=1e-8).fit(X, y)
    model.set_params(tol=1e-8).fit(K, y)
    np.testing.assert_allclose(model.decision_function(K), linear.decision_function(X), atol=1e-5)


def indefinite(kind):
    X, y = cloud(80, seed=7)
    if kind == "sigmoid":
        kernel = {"kernel": "sigmoid", "gamma": 2.0, "coef0": -1.0}
        return X, y, kernel, np.linalg.eigvalsh(np.tanh(2.0 * X @ X.T - 1.0))[0]
    K = X @ X.T
    K -= (5.0 if kind == "shifted" else 1000.0) * np.eye(80)
    return K, y, {"kernel": "precomputed"}, np.linalg.eigvalsh(K)[0]


@pytest.mark.parametrize(
    ("loss", "kind", "solver"),
    [
        (loss, kind, solver)
        for loss in LOSSES
        for kind in ("sigmoid", "shifted", "negative")
        for solver in ("auto", "smo", "active-set")
    ],
)  # fmt: skip
def test_18_20_indefinite_kernels_end_and_are_warned_of(loss, kind, solver):
    X, y, kernel, smallest = indefinite(kind)
    assert smallest < -0.1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        with pytest.warns(UserWarning, match="eigenvalue") as caught:
            model = LOSSES[loss](solver=solver, time_limit=SECONDS, **kernel).fit(X, y)
    told = [str(w.message) for w in caught if "eigenvalue" in str(w.message)]
    assert len(told) == 1
    assert f"{smallest:.3g}" in told[0]
    # Without an upper bound on α an indefinite problem has no least value.
    endless = {mm.Status.DIVERGED} if loss == "squared" else set()
    assert model.status_ in {mm.Status.CONVERGED, mm.Status.PATIENCE} | endless
    assert np.isfinite(model.decision_function(X)).all()
    if model.status_ is mm.Status.CONVERGED:
        assert model.certificate_.holds(TOL)  # a point that satisfies the KKT conditions


def test_18_the_warning_points_at_the_callers_line():
    X, y, kernel, _ = indefinite("sigmoid")
    with pytest.warns(UserWarning, match="eigenvalue") as caught:
        mm.SVC(**kernel).fit(X, y)
    assert caught[0].filename == __file__


def test_a_positive_definite_kernel_is_not_warned_of():
    X, y = cloud(80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = mm.SVC(kernel="precomputed").fit(RBF(gamma=0.3)(X), y)
        own = mm.SVC(kernel=plain_kernel).fit(X, y)
    assert given.certificate_.holds(TOL)
    assert own.certificate_.holds(TOL)


@pytest.mark.parametrize("kernel", [RBF(gamma=0.3), Linear()], ids=["rbf", "linear"])
def test_rounding_is_not_warned_of(kernel):
    X, y = cloud()
    K = kernel(X).astype(np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = mm.SVC(kernel="precomputed").fit(np.maximum(K, K.T), y)
    assert model.certificate_.holds(TOL)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda A, B: np.full((len(A), len(B)), np.nan),
        lambda A, B: np.ones((len(A), len(B) + 1)),
        lambda A, B: np.ones(len(A)),
        lambda A, B: "kernel",
    ],
    ids=["nan", "wide", "flat", "text"],
)
@pytest.mark.parametrize("n", [20, N])
def test_19_bad_callable_kernels(kernel, n):
    with pytest.raises(ValueError, match=r"(?i)lambda|shape|nan"):
        mm.SVC(kernel=kernel).fit(*cloud(n))


def test_19_a_callable_kernel_that_fails():
    def broken(A, B):
        raise ZeroDivisionError("mine")

    model = mm.SVC(kernel=broken)
    with pytest.raises(ZeroDivisionError, match="mine"):
        model.fit(*cloud(20))
    assert not hasattr(model, "classes_")


def test_22_what_does_not_fit_is_computed_again():
    """A Gram matrix of 3500² values in ten kilobytes, and a refusal where all of it is needed."""
    X, y = cloud(3500)
    model = mm.SVC(cache_size=0.01).fit(X, y)
    assert_certified(model, X, y)
    with pytest.raises(ValueError, match="cache_size"):
        mm.SVC(cache_size=0.01, solver="smo").fit(X, y)


def test_a_failed_fit_leaves_the_last_model_whole():
    X, y = cloud()
    model = mm.SVC().fit(X, y)
    before = model.decision_function(X)

    def failing(step):
        raise ZeroDivisionError

    model.set_params(callback=failing)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, np.where(y == 1, "b", "a"))
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert set(model.predict(X)) == {0, 1}


@pytest.mark.parametrize("solver", ["smo", "decomposition"])
def test_a_recorder_of_every_update_sees_pair_after_pair(solver):
    X, y = mm.datasets.load_six_points(return_X_y=True)
    X, y = np.vstack([X, X + np.array([3.0, -2.0])]), np.concatenate([y, y])
    recorder = mm.Recorder(every_update=True)
    watched = mm.SVC(solver=solver, C=2.0, callback=recorder).fit(X, y)
    assert len(recorder.steps) == watched.n_iter_.max() > 3
    alphas = [step.alpha() for step in recorder.steps]
    moved = [np.count_nonzero(b - a) for a, b in pairwise(alphas)]
    assert max(moved) <= 2
    alone = mm.SVC(solver=solver, C=2.0).fit(X, y)
    np.testing.assert_allclose(watched.decision_function(X), alone.decision_function(X), atol=1e-2)


def test_steps_say_which_rows_their_task_is_about():
    X, y = mm.datasets.load_fruit(return_X_y=True)
    recorder = mm.Recorder()
    model = mm.SVC(C=10.0, callback=recorder).fit(X, y)
    last = {step.task: step for step in recorder.steps}
    assert len(last) == 10
    for task, (i, j) in enumerate(combinations(range(5), 2)):
        step = last[task]
        assert set(y[step.rows]) == {i, j}
        assert (step.labels == np.where(y[step.rows] == i, 1.0, -1.0)).all()
        K = model.kernel_(X, X[step.rows])
        g = K @ (step.alpha() * step.labels) + step.snapshot().b[0]
        pairs = mm.SVC(C=10.0, gamma=model.kernel_.gamma).fit(X[step.rows], y[step.rows] == i)
        np.testing.assert_allclose(g, pairs.decision_function(X), atol=0.05)
