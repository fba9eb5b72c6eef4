"""Separating planes of Dask collections: the answers and proofs of the same data in memory."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.certificates import certify
from maxmargin.engines.dask import rows as dask_rows
from maxmargin.problems import SeparationProblem
from maxmargin.solution import Solution, Status
from maxmargin.solvers import linear
from tests.helpers.clusters import comes_to, n_tasks, new_cluster

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

N, D = 700, 4
pytestmark = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def data(kind="separable", seed=0, n=N):
    """Return rows that a plane separates, or that none does."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, D))
    scores = X @ rng.standard_normal(D) + 0.3
    if kind == "separable":
        X, scores = X[np.abs(scores) > 0.2], scores[np.abs(scores) > 0.2]
        return X, np.where(scores > 0, 1, 0)
    return X, np.where(scores + rng.standard_normal(n) > 0, 1, 0)


def partitioned(X, y, kind="dense", rows=160):
    """Return the same rows as Dask arrays; with CSR blocks or of unknown sizes."""
    if kind == "unknown":
        keep = da.from_array(np.ones(len(y), dtype=bool), chunks=rows)
        return da.from_array(X, chunks=(rows, -1))[keep], da.from_array(y, chunks=rows)[keep]
    dX = da.from_array(X, chunks=(rows, -1))
    if kind == "csr":
        dX = dX.map_blocks(sparse.csr_matrix)
    return dX, da.from_array(y, chunks=rows)


def close(model, other, tol=1e-10):
    """Assert that two fits have the same planes."""
    scale = np.abs(other.coef_).max()
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=tol, atol=tol * scale)
    np.testing.assert_allclose(model.intercept_, other.intercept_, rtol=tol, atol=tol * scale)


def most_bytes(report):
    """Return the bytes of the largest round, but for the 2,000 rows that a warning looks at."""
    rounds = [each for each in report.all_rounds if each.name != "_some_rows"]
    return max(each.bytes_sent + each.bytes_received for each in rounds)


ESTIMATORS = {
    "batch perceptron": lambda: mm.Perceptron(update="batch", max_iter=30),
    "batch perceptron, R² bias": lambda: mm.Perceptron(update="batch", bias="radius", max_iter=20),
    "perceptron": lambda: mm.Perceptron(shuffle=False, max_iter=20),
    "batch LMS": lambda: mm.LMS(update="batch", max_iter=10),
    "LMS": lambda: mm.LMS(shuffle=False, max_iter=5),
    "pseudoinverse": mm.Pseudoinverse,
    "ridge": lambda: mm.Pseudoinverse(ridge=2.0),
    "Fisher": lambda: mm.Pseudoinverse(margins="fisher"),
    "Ho-Kashyap": lambda: mm.HoKashyap(max_iter=30),
    "Ho-Kashyap, 0.9": lambda: mm.HoKashyap(learning_rate=0.9, max_iter=30),
}


@pytest.fixture(autouse=True)
def _on_the_workers(monkeypatch):
    """Solve even few rows where they are."""
    monkeypatch.setattr(linear.Primal, "of", _of_no_rows_here)


def _of_no_rows_here(X, solver, tol, seed):
    return linear.Primal(solver, tol, seed, linear.Tuning(gathered_numbers=0))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", ["separable", "inseparable"])
def test_same_plane_and_proof_as_in_memory(name, kind):
    X, y = data(kind)
    model, other = ESTIMATORS[name](), ESTIMATORS[name]()
    model.fit(*partitioned(X, y))
    other.fit(X, y)
    close(model, other)
    assert (model.status_, model.n_iter_) == (other.status_, other.n_iter_)
    mine, theirs = vars(model.certificate_), vars(other.certificate_)
    assert mine["refutes"] == theirs["refutes"]
    for field in ("n_samples", "n_errors"):
        assert mine[field] == theirs[field]
    for field in ("margin", "geometric_margin", "radius", "augmented_radius", "augmented_margin"):
        assert mine[field] == pytest.approx(theirs[field], rel=1e-8, abs=1e-10)
    assert model.certificate_.separates == other.certificate_.separates


@pytest.mark.parametrize("name", ["batch perceptron", "perceptron", "batch LMS", "Ho-Kashyap"])
@pytest.mark.parametrize("kind", ["csr", "unknown"])
def test_kinds_of_collections(name, kind):
    X, y = data()
    close(ESTIMATORS[name]().fit(*partitioned(X, y, kind)), ESTIMATORS[name]().fit(X, y))


@pytest.mark.parametrize("name", ESTIMATORS)
def test_weights(name):
    X, y = data("inseparable")
    weights = np.random.default_rng(1).integers(3, size=len(y)).astype(float)
    weights[:160] = 0.0  # a partition without samples
    dX, dy = partitioned(X, y)
    model = ESTIMATORS[name]().set_params(class_weight="balanced")
    other = ESTIMATORS[name]().set_params(class_weight="balanced")
    close(model.fit(dX, dy, da.from_array(weights, 160)), other.fit(X, y, weights), 1e-9)
    assert model.certificate_.n_samples == other.certificate_.n_samples == (weights > 0).sum()


@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
@pytest.mark.parametrize("name", ["batch perceptron", "perceptron", "pseudoinverse", "Fisher"])
def test_several_classes(name, multi_class):
    rng = np.random.default_rng(2)
    y = np.sort(rng.integers(3, size=300))  # partitions with one class only
    X = rng.standard_normal((300, 2)) + 3.0 * np.array([[0, 0], [2, 0], [0, 2]])[y]
    model, other = (ESTIMATORS[name]().set_params(multi_class=multi_class) for _ in range(2))
    close(model.fit(*partitioned(X, y, rows=60)), other.fit(X, y), 1e-9)
    for mine, theirs in zip(model.certificates_, other.certificates_, strict=True):
        assert (mine.n_samples, mine.n_errors) == (theirs.n_samples, theirs.n_errors)


def test_shuffled_passes_are_reproducible_and_separate():
    X, y = data()
    first, second, third = (
        mm.Perceptron(random_state=seed).fit(*partitioned(X, y)) for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(first.coef_, second.coef_)
    assert np.abs(first.coef_ - third.coef_).max() > 0
    assert first.separates_
    assert third.separates_
    assert first.n_updates_ <= first.mistake_bound_


def test_rank_deficient_least_squares_have_least_norm():
    X, y = data("inseparable")
    X = np.column_stack([X, X[:, 0] - X[:, 1], np.full(len(X), 3.0)])
    model = mm.Pseudoinverse().fit(*partitioned(X, y))
    close(model, mm.Pseudoinverse().fit(X, y))
    assert model.certificate_.holds(1e-12)


def test_given_margins():
    X, y = data("inseparable")
    margins = np.random.default_rng(3).uniform(0.5, 2.0, len(y))
    model = mm.Pseudoinverse(margins=margins).fit(*partitioned(X, y))
    close(model, mm.Pseudoinverse(margins=margins).fit(X, y))


def test_no_bias():
    X, y = data("inseparable")
    for name in ("batch perceptron", "perceptron", "batch LMS", "pseudoinverse", "Ho-Kashyap"):
        model, other = (ESTIMATORS[name]().set_params(fit_intercept=False) for _ in range(2))
        close(model.fit(*partitioned(X, y)), other.fit(X, y))
        assert model.intercept_[0] == 0.0


def test_warm_starts_go_on():
    X, y = data("inseparable")
    for name in ("perceptron", "Ho-Kashyap"):
        parameters = {"warm_start": True, "max_iter": 2}
        model, other = (ESTIMATORS[name]().set_params(**parameters) for _ in range(2))
        for _ in range(3):
            model.fit(*partitioned(X, y))
            other.fit(X, y)
        close(model, other)


# Proofs -------------------------------------------------------------------------------------------


def test_worked_examples():
    X, y = mm.datasets.load_and(return_X_y=True)
    assert mm.Perceptron().fit(*partitioned(X, y, rows=2)).separates_
    X, y = mm.datasets.load_xor(return_X_y=True)
    model = mm.HoKashyap().fit(*partitioned(X, y, rows=1))
    assert model.status_ is Status.INSEPARABLE
    np.testing.assert_allclose(np.asarray(model.multipliers_[0]), 0.25)
    X, y = mm.datasets.load_six_points(return_X_y=True)
    widest = mm.LinearSVC(C=np.inf, tol=1e-9).fit(*partitioned(X, y, rows=2))
    close(widest, mm.LinearSVC(C=np.inf, tol=1e-9).fit(X, y), 1e-8)
    assert widest.certificate_.holds(1e-8)


def test_multipliers_of_ho_kashyap_are_a_proof_in_memory_too():
    X, y = data("inseparable")
    model = mm.HoKashyap().fit(*partitioned(X, y))
    assert model.refuted_
    assert model.certificate_.refutes
    u = np.asarray(model.multipliers_[0])
    Z = mm.data.normalised_samples.SignedSamples(X, 2.0 * y - 1.0)
    plane = Solution(model.coef_, model.intercept_, Status.INSEPARABLE, multipliers=u)
    assert certify(SeparationProblem(Z), plane).refutes


@pytest.mark.parametrize("kind", ["dense", "csr", "unknown"])
def test_separability_with_a_plane(kind):
    X, y = data(n=3000)
    report = mm.separability(*partitioned(X, y, kind, rows=500))
    assert report.separable
    assert report.certificate.separates
    assert report.certificate.n_samples == len(y)
    distances = np.where(y > 0, 1, -1) * (X @ report.hyperplane.w + report.hyperplane.b)
    assert distances.min() == pytest.approx(report.margin, rel=1e-9)
    assert np.linalg.norm(report.hyperplane.w) == pytest.approx(1.0)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_separability_with_a_proof_that_there_is_none(kind):
    X, y = data("inseparable", n=3000)
    report = mm.separability(*partitioned(X, y, kind, rows=500))
    assert report.separable is False
    assert report.certificate.refutes
    rows, shares = report.multipliers.nonzero()
    assert len(rows) <= D + 2
    signed = np.where(y[rows] > 0, 1, -1) * shares
    np.testing.assert_allclose(signed @ X[rows], 0.0, atol=1e-14)
    np.testing.assert_allclose(np.abs(signed) @ X[rows], report.common_point, atol=1e-12)
    assert f"{len(rows)} of the 3000 samples" in str(report)


def test_separability_of_the_widest_margin():
    X, y = data(n=3000)
    report = mm.separability(*partitioned(X, y, rows=500), maximum_margin=True)
    other = mm.separability(X, y, maximum_margin=True)
    assert report.margin == pytest.approx(other.margin, rel=1e-8)
    assert report.margin_bound == pytest.approx(other.margin_bound, rel=1e-8)
    assert report.margin <= report.margin_bound


def test_one_row_decides():
    X, y = data(n=3000)
    assert mm.separability(*partitioned(X, y, rows=500)).separable
    worst = np.argmax(np.abs(X).sum(axis=1))
    twin = np.vstack([X, X[worst]])
    labels = np.append(y, 1 - y[worst])
    report = mm.separability(*partitioned(twin, labels, rows=500))
    assert report.separable is False
    assert len(y) in report.multipliers.nonzero()[0]
    assert report.certificate.refutes


def test_separability_of_too_many_rows(monkeypatch):
    from maxmargin.solvers import generated_rows

    X, y = data(n=3000)
    tuning = generated_rows.Tuning(min_rows_added=1, rows_added_per_column=1, max_numbers_held=60)
    monkeypatch.setattr(generated_rows, "TUNING", tuning)
    with pytest.raises(MemoryError, match="at most 60 numbers"):
        mm.separability(*partitioned(X, y, rows=500), maximum_margin=True)


def test_separability_of_other_than_two_classes():
    X, y = data()
    with pytest.raises(ValueError, match="2 classes, got 1 class"):
        mm.separability(*partitioned(X, np.zeros(len(y))))
    with pytest.raises(ValueError, match="needs the labels"):
        mm.separability(partitioned(X, y)[0], None)


# Rows that the workers have no room for ----------------------------------------------------------


@pytest.fixture(scope="module")
def cluster():
    """Return a cluster of threads."""
    with new_cluster(2, processes=False) as cluster:
        yield cluster


READ = []  # the number of rows of every block that was read


def _read(block):
    READ.append(len(block))
    return block + 0.0


def streamed(X, y, rows):
    """Return the same rows as a Dask array that is computed, and the labels."""
    dX, dy = partitioned(X, y, rows=rows)
    READ.clear()
    return dX.map_blocks(_read, meta=np.empty((0, D))), dy


@pytest.fixture(params=["threads", "cluster"])
def _no_room(request, monkeypatch):
    """Keep no rows on the workers."""
    monkeypatch.setattr(dask_rows, "TUNING", replace(dask_rows.TUNING, held_share=0.0))
    if request.param == "threads":
        yield
        return
    with distributed.Client(request.getfixturevalue("cluster")) as client:
        yield
        assert comes_to(0, lambda: n_tasks(client))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.usefixtures("_no_room")
def test_streamed_rows_give_the_same(name):
    X, y = data("inseparable", n=300)
    model, other = ESTIMATORS[name](), ESTIMATORS[name]()
    if "max_iter" in model.get_params():
        model.set_params(max_iter=4)
        other.set_params(max_iter=4)
    model.fit(*streamed(X, y, rows=80))
    other.fit(X, y)
    close(model, other)
    assert (model.status_, model.n_iter_) == (other.status_, other.n_iter_)
    assert model.certificate_.n_errors == other.certificate_.n_errors
    assert model.certificate_.margin == pytest.approx(other.certificate_.margin, rel=1e-8)
    assert model.fit_report_.streamed
    # Once for the checks, once for every step, and once for the certificate.
    assert model.fit_report_.passes >= 2 + model.n_iter_
    assert sum(READ) >= model.fit_report_.passes * len(y)


@pytest.mark.parametrize("kind", ["separable", "inseparable"])
@pytest.mark.usefixtures("_no_room")
def test_separability_of_streamed_rows(kind):
    X, y = data(kind, n=1500)
    report = mm.separability(*streamed(X, y, rows=400))
    assert sum(READ) >= 2 * len(y)
    assert report.separable == (kind == "separable")
    assert report.certificate.n_samples == len(y)
    if report.separable:
        distances = np.where(y > 0, 1, -1) * (X @ report.hyperplane.w + report.hyperplane.b)
        assert distances.min() == pytest.approx(report.margin, rel=1e-9)
        return
    assert report.certificate.refutes
    chosen, shares = report.multipliers.nonzero()
    signed = np.where(y[chosen] > 0, 1, -1) * shares
    np.testing.assert_allclose(signed @ X[chosen], 0.0, atol=1e-14)


# Hard margins -------------------------------------------------------------------------------------


@pytest.mark.parametrize("parameters", [{}, {"fit_intercept": False}, {"penalize_intercept": True}])
def test_hard_margins(parameters):
    X, y = data(n=3000)
    if parameters.get("fit_intercept") is False:
        y = (X @ np.ones(D) > 0).astype(int)
    model = mm.LinearSVC(C=np.inf, tol=1e-7, **parameters).fit(*partitioned(X, y, rows=500))
    other = mm.LinearSVC(C=np.inf, tol=1e-7, **parameters).fit(X, y)
    close(model, other, 1e-5)
    assert model.certificate_.holds(1e-7)
    assert model.certificate_.n_checked == len(y)


def test_hard_margins_of_pairs_of_classes():
    rng = np.random.default_rng(2)
    y = np.sort(rng.integers(3, size=300))
    X = rng.uniform(-1, 1, (300, 2)) + 3.0 * np.array([[0, 0], [2, 0], [0, 2]])[y]
    parameters = {"C": np.inf, "tol": 1e-8, "multi_class": "ovo"}
    model = mm.LinearSVC(**parameters).fit(*partitioned(X, y, rows=60))
    close(model, mm.LinearSVC(**parameters).fit(X, y), 1e-5)
    assert all(certificate.holds(1e-8) for certificate in model.certificates_)


@pytest.mark.parametrize("gathered", [True, False])
def test_a_hard_margin_that_there_is_not(gathered, monkeypatch):
    if gathered:
        monkeypatch.undo()
    X, y = data("inseparable", n=3000)
    with pytest.raises(mm.NotSeparableError, match="no plane separates") as caught:
        mm.LinearSVC(C=np.inf).fit(*partitioned(X, y, rows=500))
    proof = caught.value.proof
    assert proof.certificate.refutes
    assert proof.certificate.n_samples == len(y)
    multipliers = np.asarray(proof.multipliers)
    rows = np.flatnonzero(multipliers)
    shares = multipliers[rows]
    np.testing.assert_allclose(np.where(y[rows] > 0, shares, -shares) @ X[rows], 0.0, atol=1e-14)


def test_hard_margins_stop_where_a_callback_says():
    X, y = data(n=3000)
    steps = []
    model = mm.LinearSVC(C=np.inf, callback=lambda step: steps.append(step) or True)
    model.fit(*partitioned(X, y, rows=500))
    assert len(steps) == 1
    assert model.status_ is Status.STOPPED


# Rounds, limits and refusals ----------------------------------------------------------------------


@pytest.mark.parametrize("name", ESTIMATORS)
def test_rounds_are_counted_and_no_round_moves_what_grows_with_n(name):
    moved = []
    for n in (1000, 4000):
        X, y = data("inseparable", n=n)
        model = ESTIMATORS[name]().fit(*partitioned(X, y, rows=n // 4))
        report = model.fit_report_
        # One round per step, some before and some for the certificate.
        assert model.n_iter_ <= report.rounds <= model.n_iter_ + 35
        moved.append(most_bytes(report))
    assert moved[1] < 1.5 * moved[0] + 2000


def test_hard_margins_move_few_rows():
    for n in (2000, 8000):
        X, y = data(n=n)
        report = mm.LinearSVC(C=np.inf).fit(*partitioned(X, y, rows=n // 4)).fit_report_
        assert report.rounds <= 20
        assert most_bytes(report) < 100_000


def test_callbacks_and_verbose(capsys):
    X, y = data("inseparable")
    dX, dy = partitioned(X, y)
    steps = []
    for name in ("perceptron", "batch LMS", "Ho-Kashyap"):
        stop_after_two = lambda step: steps.append(step) or step.iteration == 2  # noqa: E731
        model = ESTIMATORS[name]().set_params(callback=stop_after_two).fit(dX, dy)
        assert model.n_iter_ <= 2
    assert steps[0].plane().w.shape == (D,)
    mm.Perceptron(verbose=True, max_iter=3).fit(dX, dy)
    assert capsys.readouterr().out.count("errors met") == 3


def test_limits_warn():
    X, y = data("inseparable")
    with pytest.warns(ConvergenceWarning, match="1 of 1 tasks not done"):
        mm.Perceptron(max_iter=2).fit(*partitioned(X, y))


def test_refusals():
    X, y = data("inseparable")
    dX, dy = partitioned(X, y)
    for estimator in (mm.Pocket(), mm.Relaxation(), mm.KernelPerceptron()):
        with pytest.raises(TypeError, match="got a Dask collection: use LinearSVC"):
            estimator.fit(dX, dy)
    with pytest.raises(TypeError, match="partial_fit takes the samples"):
        mm.Perceptron().partial_fit(dX, dy, classes=[0, 1])
    three = da.from_array(np.arange(len(y)) % 3, chunks=160)
    with pytest.raises(ValueError, match="multi_class must be 'ovr' or 'ovo'"):
        mm.Perceptron(multi_class="kesler").fit(dX, three)
    with pytest.raises(ValueError, match="every_update"):
        mm.Perceptron(callback=mm.Recorder(every_update=True)).fit(dX, dy)
    wide = da.zeros((1100, 1100), chunks=(550, -1))
    with pytest.raises(ValueError, match="got d = 1100 features"):
        mm.Pseudoinverse().fit(wide, da.from_array(np.arange(1100) % 2, chunks=550))
