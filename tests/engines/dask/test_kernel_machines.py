"""Kernel machines of Dask collections: the answers and proofs of the same data in memory."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.engines.dask import dual_part, dual_state
from maxmargin.estimators import formulation
from maxmargin.kernels import RBF
from maxmargin.solvers.dual import partitioned as first_guess

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

N, D = 900, 4
MACHINES = {
    "SVC": mm.SVC(C=2.0),
    "NuSVC": mm.NuSVC(nu=0.6),
    "SVR": mm.SVR(C=2.0),
    "NuSVR": mm.NuSVR(nu=0.4),
    "OneClassSVM": mm.OneClassSVM(nu=0.2),
}


@pytest.fixture(autouse=True)
def _in_partitions(monkeypatch):
    """Solve tasks of some hundred rows as if they were too many for the client."""
    few = replace(formulation.TUNING, gathered_rows=300)
    monkeypatch.setattr(formulation, "TUNING", few)
    monkeypatch.setattr(first_guess, "TUNING", replace(first_guess.TUNING, sample_rows=200))


def data(n=N, classes=2, seed=0):
    """Return rows of overlapping classes that no plane divides well, and targets."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D)) * (rng.random((n, D)) < 0.7)
    level = X[:, 0] + X[:, 1] + 0.5 * np.sin(3.0 * X[:, 2]) + 0.3 * rng.standard_normal(n)
    y = np.digitize(level, np.quantile(level, np.arange(1, classes) / classes))
    return X, y, 3.0 + 2.0 * level


def blocks(X, rows=500, kind="dense"):
    """Return rows as a Dask array, of CSR blocks if wanted."""
    whole = da.from_array(X, chunks=(rows, -1))
    return whole.map_blocks(sparse.csr_matrix) if kind == "csr" else whole


def fits(model, X, y, kind="dense", weights=None, rows=500):
    """Return the fits to the same data in partitions and in memory."""
    memory = sparse.csr_matrix(X) if kind == "csr" else X
    given = {} if weights is None else {"sample_weight": weights}
    parts = {name: da.from_array(each, chunks=rows) for name, each in given.items()}
    if isinstance(model, mm.OneClassSVM):
        other = clone(model).fit(memory, **given)
        return clone(model).fit(blocks(X, rows, kind), **parts), other
    other = clone(model).fit(memory, y, **given)
    return clone(model).fit(blocks(X, rows, kind), da.from_array(y, chunks=rows), **parts), other


def scores(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


def check_same(model, other, X, tol):
    """Assert that two fits have the same function, value and proof."""
    for proof, reference in zip(model.certificates_, other.certificates_, strict=True):
        assert proof.holds(tol)
        assert proof.coverage in ("complete", "bounded")
        assert proof.primal == pytest.approx(reference.primal, rel=20.0 * tol)
    expected = scores(other, X)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(scores(model, X), expected, atol=30.0 * tol * scale)


@pytest.mark.parametrize("kernel", ["rbf", "poly", "linear"])
@pytest.mark.parametrize("name", list(MACHINES))
def test_same_function_and_proof_as_in_memory(name, kernel):
    check_machine(name, kernel, "dense")


@pytest.mark.parametrize(
    ("name", "kernel"), [*((name, "rbf") for name in MACHINES), ("SVC", "poly"), ("SVR", "linear")]
)
def test_sparse_rows(name, kernel):
    check_machine(name, kernel, "csr")


def check_machine(name, kernel, kind):
    X, y, targets = data()
    if name == "OneClassSVM" and kernel == "linear":  # rows about 0 lie on no side of a plane
        X = X + 3.0
    # The gap, which bounds the distance of two answers, is relative to ρ of one class.
    tol = 1e-6 if name == "OneClassSVM" else 1e-4
    model = clone(MACHINES[name]).set_params(kernel=kernel, degree=2, coef0=1.0, tol=tol)
    fitted, other = fits(model, X, targets if name.endswith("R") else y, kind)
    check_same(fitted, other, sparse.csr_matrix(X) if kind == "csr" else X, 1e-4)
    assert fitted.shape_fit_ == other.shape_fit_ == (N, D)
    assert fitted.kernel_ == other.kernel_ or fitted.kernel_.gamma == pytest.approx(
        other.kernel_.gamma, rel=1e-12
    )
    assert sparse.issparse(fitted.support_vectors_) == (kind == "csr")
    vectors = fitted.support_vectors_.toarray() if kind == "csr" else fitted.support_vectors_
    np.testing.assert_array_equal(vectors, X[fitted.support_])
    assert fitted.n_support_.sum() == fitted.support_.size == fitted.dual_coef_.shape[1]


@pytest.mark.parametrize("name", list(MACHINES))
def test_parts_that_the_client_solves(name, monkeypatch):
    """Where many rows are far from the margin, the client solves the problem of the others."""
    monkeypatch.setattr(dual_state, "TUNING", replace(dual_state.TUNING, most_rows=1500))
    X, y, targets = data(4200)
    fitted, other = fits(MACHINES[name], X, targets if name.endswith("R") else y, rows=1500)
    check_same(fitted, other, X[:500], 1e-3)
    asked = [each.name for each in fitted.fit_report_.all_rounds]
    assert "near" in asked
    # Where nearly all variables are free, working sets take over.
    assert name.endswith("R") or "worst" not in asked
    assert name != "SVC" or len(asked) <= 60


def test_working_sets_alone():
    X, y, _ = data(4200)
    fitted, other = fits(mm.SVC(C=2.0, shrinking=False), X, y, rows=1500)
    check_same(fitted, other, X[:500], 1e-3)
    asked = [each.name for each in fitted.fit_report_.all_rounds]
    assert "worst" in asked
    assert "near" not in asked


@pytest.mark.parametrize(
    "parameters",
    [
        {"class_weight": "balanced"},
        {"class_weight": {0: 3.0}},
        {"loss": "squared_hinge"},
        {"fit_intercept": False},
        {"gamma": 0.3, "C": 0.1},
    ],
)
def test_parameters(parameters):
    X, y, _ = data()
    fitted, other = fits(mm.SVC(tol=1e-5, **parameters), X, np.where(y, 0, 1))
    check_same(fitted, other, X, 1e-5)


@pytest.mark.parametrize("name", list(MACHINES))
def test_weights_of_samples(name):
    X, y, targets = data()
    weights = np.random.default_rng(1).integers(3, size=N).astype(float)
    model = clone(MACHINES[name]).set_params(tol=1e-5)
    fitted, other = fits(model, X, targets if name.endswith("R") else y, weights=weights)
    check_same(fitted, other, X, 1e-5)
    assert (weights[fitted.support_] > 0.0).all()


@pytest.mark.parametrize("multi_class", ["ovo", "ovr"])
def test_several_classes(multi_class):
    """Pairs of classes are tasks on some of the rows of each partition; small ones are gathered."""
    X, y, _ = data(classes=4)
    rng = np.random.default_rng(2)
    names = np.array(["fig", "apple", "plum", "pear"])[y]
    names[(names == "plum") & (rng.random(N) < 0.8)] = "apple"
    names[(names == "pear") & (rng.random(N) < 0.8)] = "fig"
    fitted, other = fits(mm.SVC(tol=1e-5, multi_class=multi_class), X, names)
    np.testing.assert_array_equal(fitted.classes_, other.classes_)
    check_same(fitted, other, X, 1e-5)
    np.testing.assert_array_equal(fitted.predict(X), other.predict(X))
    np.testing.assert_array_equal(fitted.n_support_, other.n_support_)


def test_small_data_are_gathered(monkeypatch):
    monkeypatch.setattr(formulation, "TUNING", formulation.Tuning())
    X, y, _ = data(500)
    fitted, other = fits(mm.SVC(), X, y)
    np.testing.assert_allclose(fitted.dual_coef_, other.dual_coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_array_equal(fitted.support_, other.support_)
    assert fitted.fit_report_.rounds <= 6


@pytest.mark.parametrize("kind", ["unknown", "frame", "empty"])
def test_partitions_of_other_kinds(kind):
    X, y, _ = data()
    other = mm.SVC(tol=1e-5).fit(X, y)
    dX, dy = blocks(X), da.from_array(y, chunks=500)
    if kind == "unknown":
        keep = da.from_array(np.ones(N, dtype=bool), chunks=500)
        dX, dy = dX[keep], dy[keep]
    elif kind == "empty":
        keep = da.from_array(np.arange(N) >= 500, chunks=500)
        dX, dy = dX[keep], dy[keep]
        other = mm.SVC(tol=1e-5).fit(X[500:], y[500:])
    else:
        dd, pd = pytest.importorskip("dask.dataframe"), pytest.importorskip("pandas")
        frame = pd.DataFrame(X, columns=list("abcd")).assign(label=y)
        collection = dd.from_pandas(frame, chunksize=500)
        dX, dy = collection.drop(columns="label"), collection["label"]
    fitted = mm.SVC(tol=1e-5).fit(dX, dy)
    check_same(fitted, other, X, 1e-5)
    if kind == "frame":
        np.testing.assert_array_equal(fitted.feature_names_in_, list("abcd"))


def test_what_a_round_moves_does_not_grow_with_the_rows(monkeypatch):
    """Vectors of all rows travel before the first round and after the last one only."""
    monkeypatch.setattr(dual_state, "TUNING", replace(dual_state.TUNING, most_rows=600))
    most, reports = [], []
    for n in (4200, 8400):
        X, y, _ = data(n)
        model = mm.SVC(gamma=0.3).fit(blocks(X, n // 3), da.from_array(y, chunks=n // 3))
        report = model.fit_report_
        names = ("near", "fetched", "totals", "move")
        moved = [e for e in report.all_rounds if e.name in names]
        most.append(max(e.bytes_sent + e.bytes_received for e in moved))
        reports.append(report)
    assert most[1] <= 1.5 * most[0]
    assert max(report.rounds for report in reports) <= 200


def test_options_that_need_the_rows_in_memory():
    X, y, _ = data()
    dX, dy = blocks(X), da.from_array(y, chunks=500)
    with pytest.raises(ValueError, match=r"warm_start=True\) needs X in memory"):
        mm.SVC(warm_start=True).fit(dX, dy)
    with pytest.raises(ValueError, match=r"probability=True\) needs X in memory"):
        mm.SVC(probability=True).fit(dX, dy)
    with pytest.raises(TypeError, match="takes a Gram matrix in memory"):
        mm.SVC(kernel="precomputed").fit(da.from_array(X @ X.T, chunks=(500, -1)), dy)
    with pytest.raises(ValueError, match="C must be finite"):
        mm.SVC(C=np.inf).fit(dX, dy)
    with pytest.raises(ValueError, match="solver='smo' needs the rows in memory"):
        mm.SVC(solver="smo").fit(dX, dy)


def test_limits_and_callbacks():
    X, y, _ = data()
    dX, dy = blocks(X), da.from_array(y, chunks=500)
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        short = mm.SVC(max_iter=3).fit(dX, dy)
    assert short.fit_status_ == 1
    seen = []
    mm.SVC(callback=lambda step: seen.append(step.objective)).fit(dX, dy)
    assert len(seen) > 1
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        hurried = mm.SVC(time_limit=1e-9).fit(dX, dy)
    assert hurried.fit_status_ == 1


def test_kernels_that_are_callables():
    X, y, _ = data()
    fitted, other = fits(mm.SVC(kernel=_product, tol=1e-5), X, y)
    check_same(fitted, other, X, 1e-5)


def _product(X, Z):
    return X @ Z.T + 1.0


@pytest.mark.parametrize("precision", ["fast", "exact"])
def test_sums_of_kernel_values_are_within_their_bounds(precision):
    X, _, _ = data(600)
    kernel, v = RBF(0.7), np.random.default_rng(3).standard_normal(200)
    sums, error = dual_part.kernel_sums(kernel, X[:400], X[400:], v, precision)
    expected = kernel(X[:400], X[400:]) @ v
    assert (np.abs(sums - expected) <= error + 1e-12).all()
    assert error.max() < (1e-3 if precision == "fast" else 1e-10)


def test_a_worker_with_a_device_uses_it(monkeypatch):
    """The choice alone: what the device computes are the engine's own tests."""
    used = []
    monkeypatch.setattr(dual_part, "device_of_worker", lambda: "cuda:7")
    monkeypatch.setattr(dual_part, "placed", lambda X, device: used.append(device) or X)
    X, _, _ = data(300)
    dual_part.kernel_sums(RBF(0.7), X[:200], X[200:], np.ones(100), "exact")
    assert used == ["cuda:7"]


def test_on_a_cluster():
    distributed = pytest.importorskip("distributed")
    X, y, _ = data()
    model, weights = mm.SVC(tol=1e-5), np.linspace(0.5, 2.0, N)
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster),
    ):
        for kind in ("dense", "csr"):
            fitted, other = fits(model, X, y, kind, weights)
            check_same(fitted, other, sparse.csr_matrix(X) if kind == "csr" else X, 1e-5)
