"""Fitted models on Dask collections: lazy answers, equal to those for arrays of NumPy."""

import pickle
import warnings

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.estimators.registry import MODELS, estimators

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

N, D = 61, 4
METHODS = ("predict", "decision_function", "score_samples", "predict_proba", "predict_log_proba")
TYPES = {kind.__name__: kind for kind in estimators()}


def data(kind="machine"):
    """Return rows of three classes, or with targets."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, D))
    if kind == "regression":
        return X, X @ np.arange(D) + 0.1 * rng.standard_normal(N)
    codes = np.arange(N) % 3
    return X + 1.5 * np.eye(3, D)[codes], np.array(["apple", "fig", "pear"])[codes]


def fitted(name, **parameters):
    """Return a fitted estimator, its rows and labels or targets."""
    family = {v.estimator: v.family for v in MODELS.values()}[name]
    X, y = data(family)
    model = TYPES[name](**parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rules that do not converge on such data
        return model.fit(X, y), X, y


def partitioned(X, kind):
    """Return the rows as a collection with an empty partition, and in chunks of columns."""
    chunks = ((20, 0, 30, len(X) - 50), (3, X.shape[1] - 3))
    if kind == "frame":
        frame = dd.from_pandas(pd.DataFrame(X), npartitions=3)
        frame.columns = range(X.shape[1])
        return frame
    array = da.from_array(X, chunks=chunks)
    if kind == "csr":
        return array.rechunk({1: -1}).map_blocks(sparse.csr_matrix)
    if kind == "unknown":
        return array[da.from_array(np.ones(len(X), dtype=bool), chunks=(chunks[0],))]
    return array


def unreadable(X):
    """Return a collection like X of which nothing can be computed."""

    def fail(block):
        raise AssertionError("computed")

    if isinstance(X, da.Array):
        return X.map_blocks(fail, meta=X._meta, dtype=X.dtype)
    return X.map_partitions(fail, meta=X._meta)


def assert_same(lazy, expected):
    """Assert that lazy answers are the expected ones, of the same type, and that Dask knew it."""
    assert isinstance(lazy, da.Array)
    assert lazy.dtype == expected.dtype
    assert lazy.ndim == expected.ndim
    assert lazy.shape[1:] == expected.shape[1:]
    found = lazy.compute()
    assert found.dtype == expected.dtype
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("name", sorted(TYPES))
def test_every_estimator_answers_as_for_an_array(name):
    model, X, y = fitted(name, **({"nu": 0.3} if name == "NuSVC" else {}))
    dX = partitioned(X, "dense")
    offered = [method for method in METHODS if hasattr(model, method)]
    assert "predict" in offered
    for method in offered:
        answers = getattr(model, method)(dX)
        assert answers.chunks[0] == dX.chunks[0]
        assert_same(answers, getattr(model, method)(X))
        getattr(model, method)(unreadable(dX))  # nothing is computed
    if hasattr(model, "score"):
        weights = np.arange(N) % 4
        dy = da.from_array(y, chunks=17)
        assert isinstance(model.score(dX, dy), float)
        assert model.score(dX, dy) == pytest.approx(model.score(X, y), rel=1e-12)
        found = model.score(dX, y, da.from_array(weights, chunks=9))
        assert found == pytest.approx(model.score(X, y, weights), rel=1e-12)


@pytest.mark.parametrize("kind", ["csr", "unknown", "frame"])
@pytest.mark.parametrize("name", ["LinearSVC", "SVC", "LinearSVR"])
def test_every_kind_of_collection(name, kind):
    model, X, y = fitted(name)
    if kind == "csr":
        model.fit(sparse.csr_matrix(X), y)
    dX = partitioned(X, kind)
    for method in ("predict", "decision_function"):
        if hasattr(model, method):
            answers = getattr(model, method)(dX)
            assert answers.numblocks[0] == (3 if kind == "frame" else 4)
            assert_same(answers, getattr(model, method)(X))
            getattr(model, method)(unreadable(dX))
    assert model.score(dX, y) == pytest.approx(model.score(X, y), rel=1e-12)


@pytest.mark.parametrize("shape", ["ovr", "ovo"])
def test_probabilities_and_scores_of_pairs(shape):
    model, X, _ = fitted("SVC", probability=True, decision_function_shape=shape)
    dX = partitioned(X, "dense")
    for method in ("decision_function", "predict_proba", "predict_log_proba"):
        assert_same(getattr(model, method)(dX), getattr(model, method)(X))


def test_answers_become_a_column_of_the_frame():
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcd"), index=np.arange(N) + 100)
    collection = dd.from_pandas(frame, npartitions=3)
    model = mm.LinearSVC().fit(frame, y)
    joined = collection.assign(fruit=model.predict(collection)).compute()
    np.testing.assert_array_equal(joined["fruit"], model.predict(frame))
    np.testing.assert_array_equal(joined.index, frame.index)


@pytest.mark.parametrize("method", ["predict", "decision_function", "score"])
def test_columns_are_checked_before_anything_is_computed(method):
    X, y = data()
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = mm.LinearSVC().fit(frame, y)
    vectors = (y,) if method == "score" else ()
    swapped = unreadable(dd.from_pandas(frame[list("bacd")], npartitions=2))
    with pytest.raises(ValueError, match="same order"):
        getattr(model, method)(swapped, *vectors)
    other = unreadable(dd.from_pandas(frame.rename(columns={"a": "z"}), npartitions=2))
    with pytest.raises(ValueError, match="unseen at fit time"):
        getattr(model, method)(other, *vectors)
    with pytest.raises(ValueError, match="3 features, but LinearSVC is expecting 4"):
        getattr(model, method)(unreadable(da.ones((9, 3), chunks=3)), *vectors)
    with pytest.raises(ValueError, match="Expected 2D array, got 1D"):
        getattr(model, method)(unreadable(da.ones(9, chunks=3)), *vectors)


def test_one_warning_for_rows_without_names():
    X, y = data()
    model = mm.LinearSVC().fit(pd.DataFrame(X, columns=list("abcd")), y)
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        answers = model.predict(partitioned(X, "dense"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        answers.compute()


def test_sparse_rows_of_a_machine_of_dense_rows():
    model, X, _ = fitted("SVC")
    with pytest.raises(ValueError, match="cannot use sparse input"):
        model.predict(unreadable(partitioned(X, "csr")))


def test_not_fitted():
    from sklearn.exceptions import NotFittedError

    for name in ("LinearSVC", "SVC", "LinearSVR", "OneClassSVM"):
        with pytest.raises(NotFittedError):
            TYPES[name]().predict(da.ones((4, 2), chunks=2))


def test_a_later_fit_does_not_change_answers():
    model, X, _ = fitted("LinearSVC")
    expected = model.predict(X)
    answers = model.predict(partitioned(X, "dense"))
    model.fit(X, np.arange(N) % 2)
    np.testing.assert_array_equal(answers.compute(), expected)


def test_the_model_is_one_object_of_the_graph():
    model, X, _ = fitted("SVC")
    graph = dict(model.predict(da.from_array(X, chunks=(5, -1))).__dask_graph__())
    alone = len(pickle.dumps(model.support_vectors_))
    own = [len(pickle.dumps(task)) for key, task in graph.items() if "array" not in str(key)]
    assert len(own) >= 13
    assert sum(size > alone for size in own) == 1


def test_parts_of_a_fit_that_predictions_do_not_need_stay_here():
    from maxmargin.estimators.by_blocks import for_prediction

    X = np.random.default_rng(0).standard_normal((3000, 3))
    y = X[:, 0] + np.random.default_rng(1).standard_normal(3000) > 0
    for model in (mm.LinearSVC(loss="hinge"), mm.SVC(warm_start=True, C=0.01, gamma=0.1)):
        model.fit(X, y)
        sent = for_prediction(model, X)
        np.testing.assert_array_equal(sent.predict(X), model.predict(X))
        assert len(pickle.dumps(sent)) < 0.8 * len(pickle.dumps(model))
        assert "certificates_" in vars(model)


def test_missing_values_are_refused_when_they_are_computed():
    model, X, _ = fitted("LinearSVC")
    X[30, 1] = np.nan
    answers = model.predict(partitioned(X, "dense"))
    with pytest.raises(ValueError, match="NaN"):
        answers.compute()


def test_targets_without_spread():
    model, X, _ = fitted("LinearSVR")
    dX = partitioned(X, "dense")
    assert model.score(dX, np.ones(N)) == model.score(X, np.ones(N)) == 0.0
    from sklearn.exceptions import UndefinedMetricWarning

    with pytest.warns(UndefinedMetricWarning):
        assert np.isnan(model.score(dX[:1], np.ones(1)))


@pytest.mark.parametrize("name", ["LinearSVC", "LinearSVR"])
def test_scores_of_nothing_are_refused(name):
    model, X, y = fitted(name)
    dX = partitioned(X, "dense")
    with pytest.raises(ValueError, match="at least one non-zero number"):
        model.score(dX, y, np.zeros(N))
    with pytest.raises(ValueError, match="0 sample"):
        model.score(dX[:0], y[:0])
    # A partition without weight is none of it.
    weights = np.r_[np.zeros(20), np.ones(N - 20)]
    assert model.score(dX, y, weights) == pytest.approx(model.score(X, y, weights), rel=1e-12)


@pytest.mark.parametrize("name", ["LinearSVC", "LinearSVR"])
def test_scores_with_missing_values_are_refused(name):
    model, X, y = fitted(name)
    dX, weights = partitioned(X, "dense"), np.ones(N)
    weights[21] = np.nan
    with pytest.raises(ValueError, match=r"sample_weight contains NaN. The first is in row 1\."):
        model.score(dX, y, weights)
    missing = y.astype(object)
    missing[21] = pd.NA
    with pytest.raises(ValueError, match=r"y contains NaN. The first is in row 1\."):
        model.score(dX, missing)


def test_labels_of_another_kind():
    model, X, _ = fitted("LinearSVC")
    with pytest.raises(ValueError, match="Classification metrics"):
        model.score(partitioned(X, "dense"), np.linspace(0.0, 1.0, N))
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(partitioned(X, "dense"), np.ones(N + 1))


def test_a_model_of_a_collection_predicts_for_arrays():
    X, y = data()
    dX = partitioned(X, "dense")
    model = mm.LinearSVC(tol=1e-9).fit(dX, y)
    other = mm.LinearSVC(tol=1e-9).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    assert_same(model.predict(dX), other.predict(X))


class Counted(mm.LinearSVC):
    """A model that counts how often it is pickled."""

    pickled = 0

    def __getstate__(self):
        Counted.pickled += 1
        return super().__getstate__()


def test_workers_of_a_cluster(tmp_path):
    from distributed import Client, LocalCluster

    X, y = data()
    model = Counted().fit(X, y)
    with (
        LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0",
            local_directory=str(tmp_path),
        ) as cluster,
        Client(cluster),
    ):  # fmt: skip
        dX = da.from_array(X, chunks=(2, -1))
        Counted.pickled = 0
        answers = model.predict(dX)
        assert_same(answers, model.predict(X))
        assert Counted.pickled < dX.numblocks[0] // 2
        assert model.score(dX, y) == pytest.approx(model.score(X, y), rel=1e-12)
