"""ColumnEncoder on Dask collections: the same facts and features as on the whole frame."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.pipeline import make_pipeline

import maxmargin as mm
from maxmargin import ColumnEncoder
from maxmargin.estimators import column_encoder, column_facts, partition_medians

pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
dask = pytest.importorskip("dask")

N = 90


@pytest.fixture(autouse=True, params=[True, False], ids=["arrow", "object"])
def strings(request):
    """Keep text as Arrow's strings, which is Dask's default, or as objects."""
    with dask.config.set({"dataframe.convert-string": request.param}):
        yield


def table(gaps=False):
    """Return a frame; a category and the text of a column appear in its last rows only."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "mass": rng.normal(1e6, 10, N),
            "colour": rng.choice(["red", "green", "blue"], N),
            "count": rng.integers(0, 9, N),
            "constant": np.full(N, 0.1),
            "mixed": np.array([1, 2, 3.5] * (N // 3), dtype=object),
        },
        index=np.arange(N) * 0.5,
    )
    frame.loc[frame.index[-1], "colour"] = "only here"
    frame.loc[frame.index[-2:], "mixed"] = "text"
    if gaps:
        frame.loc[frame.index[::7], "mass"] = np.nan
        frame.loc[frame.index[:40:3], "colour"] = None
    return frame


def partitioned(frame, rows=25):
    """Return a collection of the rows, with an empty partition."""
    collection = dd.from_pandas(frame, chunksize=rows, sort=False)
    return dd.concat([collection, collection.partitions[0].query("count > 99")])


def same(encoder, other):
    """Assert that two encoders have learnt the same."""
    assert encoder.categories_ == other.categories_
    assert encoder.fill_ == other.fill_
    assert_allclose(encoder.mean_, other.mean_, rtol=1e-12, atol=1e-12)
    assert_allclose(encoder.scale_, other.scale_, rtol=1e-9)
    assert encoder.n_features_in_ == other.n_features_in_
    assert encoder.n_features_out_ == other.n_features_out_


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("impute", [True, False])
def test_same_as_on_the_whole_frame(scale, impute):
    frame = table(gaps=impute)
    encoder = ColumnEncoder(scale=scale, impute=impute).fit(partitioned(frame))
    other = ColumnEncoder(scale=scale, impute=impute).fit(frame)
    same(encoder, other)
    assert_array_equal(encoder.get_feature_names_out(), other.get_feature_names_out())
    features = encoder.transform(partitioned(frame))
    assert isinstance(features, da.Array)
    assert features.shape[1] == encoder.n_features_out_
    assert features.dtype == np.float64
    assert_allclose(features.compute(), other.transform(frame), rtol=1e-8, atol=1e-8)
    assert_allclose(encoder.transform(frame), other.transform(frame), rtol=1e-8, atol=1e-8)
    pickle.loads(pickle.dumps(encoder)).transform(frame)


@pytest.mark.parametrize("kind", ["dense", "float32", "csr", "objects", "unknown"])
def test_arrays(kind):
    rng = np.random.default_rng(1)
    X = rng.normal(3.0, 2.0, (N, 3))
    if kind == "float32":
        X = X.astype(np.float32)
    if kind == "objects":
        X = X.astype(object)
        X[:, 1] = rng.choice(["p", "q"], N)
    dX = da.from_array(X, chunks=(40, 2))
    whole = X
    if kind == "csr":
        X[X < 3.0] = 0.0
        whole = sparse.csr_matrix(X)
        dX = da.from_array(X, chunks=(40, -1)).map_blocks(sparse.csr_matrix)
    if kind == "unknown":
        dX = dX[da.from_array(np.ones(N, dtype=bool), chunks=40)]
    encoder, other = ColumnEncoder().fit(dX), ColumnEncoder().fit(whole)
    same(encoder, other)
    features, expected = encoder.transform(dX), other.transform(whole)
    found = features.compute()
    assert features.dtype == found.dtype == expected.dtype
    assert sparse.issparse(found) == sparse.issparse(expected) == sparse.issparse(features._meta)
    dense = [f.toarray() if sparse.issparse(f) else f for f in (found, expected)]
    assert_allclose(*dense, rtol=1e-5 if kind == "float32" else 1e-9, atol=1e-6)


def test_transform_computes_nothing_and_checks_columns():
    frame = table()
    encoder = ColumnEncoder().fit(frame)

    def fail(part):
        raise AssertionError("computed")

    collection = partitioned(frame)
    encoder.transform(collection.map_partitions(fail, meta=collection._meta))
    with pytest.raises(ValueError, match="same order"):
        encoder.transform(collection[list(collection.columns)[::-1]])
    with pytest.raises(ValueError, match="set_output"):
        ColumnEncoder().set_output(transform="pandas").fit(frame).transform(collection)


def test_one_pass_without_missing_values():
    frame, reads = table(), []

    def read(part):
        reads.append(len(part))
        return part

    collection = dd.from_pandas(frame, npartitions=3, sort=False)
    ColumnEncoder().fit(collection.map_partitions(read, meta=collection._meta))
    assert sorted(reads) == [30, 30, 30]


def test_rows_of_a_collection_are_not_changed():
    X = np.random.default_rng(2).normal(5.0, 2.0, (N, 2))
    dX = da.from_array(X.copy(), chunks=(30, -1)).persist()
    ColumnEncoder(copy=False).fit(dX).transform(dX).compute()
    assert_array_equal(dX.compute(), X)


def test_many_categories_are_csr(monkeypatch):
    monkeypatch.setattr(column_encoder, "WIDE_ROWS", 10)
    frame = pd.DataFrame({"word": [f"w{k % 15}" for k in range(N)]})
    collection = dd.from_pandas(frame, npartitions=3)
    encoder = ColumnEncoder().fit(collection)
    features = encoder.transform(collection)
    assert sparse.issparse(features._meta)
    assert_array_equal(features.compute().toarray(), encoder.transform(frame))


@pytest.mark.parametrize("n", [1, 2, 999, 1000])
def test_medians(n, monkeypatch):
    monkeypatch.setattr(partition_medians, "FETCHED", 3)
    rng = np.random.default_rng(n)
    X = np.column_stack(
        [rng.normal(0, 1e9, n), rng.integers(-2, 2, n), np.full(n, -0.0), -rng.random(n) * 1e-300]
    )
    if n > 2:
        X[rng.integers(n, size=n // 3), 0] = np.nan
    encoder = ColumnEncoder(impute=True).fit(da.from_array(X, chunks=(max(n // 3, 1), -1)))
    assert_array_equal(encoder.fill_, np.nanmedian(X, axis=0))


def test_errors_name_column_and_counts(monkeypatch):
    frame = table(gaps=True)
    with pytest.raises(ValueError, match=r"13 in column 'mass', 14 in column 'colour'"):
        ColumnEncoder().fit(partitioned(frame))
    with pytest.raises(ValueError, match="0 rows"):
        ColumnEncoder().fit(partitioned(frame[:0]))
    names = pd.DataFrame({"name": [f"n{k}" for k in range(N)]})
    with pytest.raises(ValueError, match="holds 90 different values in 90 rows"):
        ColumnEncoder().fit(dd.from_pandas(names, npartitions=4))
    monkeypatch.setattr(column_facts, "MOST_WORDS", 50)
    with pytest.raises(ValueError, match="holds more than 50 different values in 90 rows"):
        ColumnEncoder().fit(dd.from_pandas(names, npartitions=4))
    X = np.ones((9, 2))
    X[4, 1] = np.inf
    with pytest.raises(ValueError, match="infinity or a value too large for column 1"):
        ColumnEncoder().fit(da.from_array(X, chunks=(3, -1)))


def test_unseen_categories_warn_when_they_are_computed():
    encoder = ColumnEncoder().fit(pd.DataFrame({"word": ["a", "b", "a"]}))
    other = dd.from_pandas(pd.DataFrame({"word": ["a", "new", "b", "b"]}), npartitions=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        features = encoder.transform(other)
    with pytest.warns(UserWarning, match="has not seen: 1 in column 'word'"):
        assert_array_equal(features.compute(), [[1, 0], [0, 0], [0, 1], [0, 1]])


def test_pipeline_from_end_to_end():
    frame = table()
    y = np.where(frame["count"] + (frame["colour"] == "red") > 5, "many", "few")
    collection = dd.from_pandas(frame.assign(y=y), npartitions=3, sort=False)
    X = collection.drop(columns="y")
    model = make_pipeline(ColumnEncoder(), mm.LinearSVC(tol=1e-8)).fit(X, collection["y"])
    other = make_pipeline(ColumnEncoder(), mm.LinearSVC(tol=1e-8)).fit(frame, y)
    assert_allclose(model[-1].coef_, other[-1].coef_, rtol=1e-4, atol=1e-5)
    assert model[-1].certificate_.holds(1e-7)
    predicted = model.predict(X)
    assert isinstance(predicted, da.Array)
    assert_array_equal(predicted.compute(), other.predict(frame))
    assert model.score(X, collection["y"]) == pytest.approx(other.score(frame, y))
    assert_array_equal(model.predict(frame), other.predict(frame))
