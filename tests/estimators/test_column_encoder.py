"""ColumnEncoder: against scikit-learn's own transformers, on every kind of rows."""

import pickle

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin as mm
from maxmargin import ColumnEncoder
from maxmargin.estimators import column_facts as columns


@parametrize_with_checks([ColumnEncoder(), ColumnEncoder(impute=True)])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture
def numbers():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 4)) * [1, 1e-6, 1e6, 3] + [0, 5, -1e7, 2]
    X[:, 3] = 2.0  # constant
    return X


@pytest.fixture
def frame():
    rng = np.random.default_rng(1)
    return pd.DataFrame(
        {
            "mass": rng.normal(150, 10, 60),
            "colour": rng.choice(["red", "green", "blue"], 60),
            "count": rng.integers(0, 9, 60),
            "kind": rng.choice(["p", "q"], 60),
        }
    )


def reference(frame):
    """Return what scikit-learn's transformers make of the frame, in the order of its columns."""
    both = make_column_transformer(
        (StandardScaler(), ["mass"]), (OneHotEncoder(sparse_output=False), ["colour"]),
        (StandardScaler(), ["count"]), (OneHotEncoder(sparse_output=False), ["kind"]),
    )  # fmt: skip
    return both.fit_transform(frame)


def with_gaps(X):
    X = X.copy()
    X[::7, 0] = np.nan
    X[3::11, 1] = np.nan
    return X


def test_numbers_as_standard_scaler(numbers):
    encoder, scaler = ColumnEncoder().fit(numbers), StandardScaler().fit(numbers)
    assert_allclose(encoder.mean_, scaler.mean_, rtol=1e-13)
    assert_allclose(encoder.scale_, scaler.scale_, rtol=1e-9)
    assert_allclose(encoder.transform(numbers), scaler.transform(numbers), atol=1e-7)
    assert encoder.categories_ == [None] * 4
    assert encoder.n_features_out_ == encoder.n_features_in_ == 4


def test_blocks_change_nothing(numbers, frame, monkeypatch):
    whole = ColumnEncoder().fit(numbers)
    monkeypatch.setattr(columns, "BLOCK", 64)
    pieces = ColumnEncoder().fit(numbers)
    assert_allclose(pieces.mean_, whole.mean_, rtol=1e-14)
    assert_allclose(pieces.scale_, whole.scale_, rtol=1e-10)
    assert_allclose(ColumnEncoder().fit_transform(frame), reference(frame), atol=1e-12)


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas, lambda f: f.to_numpy(dtype=object)])
def test_words_as_one_hot_encoder(frame, make):
    encoder = ColumnEncoder()
    out = encoder.fit_transform(make(frame))
    assert out.dtype == np.float64
    assert_allclose(out, reference(frame), atol=1e-12)
    assert encoder.categories_ == [None, ["blue", "green", "red"], None, ["p", "q"]]
    assert encoder.n_features_out_ == 7
    assert_array_equal(encoder.mean_[[1, 2, 3, 5, 6]], 0)
    assert_array_equal(encoder.scale_[[1, 2, 3, 5, 6]], 1)


@pytest.mark.parametrize(
    "index", [range(59, -1, -1), np.arange(60) / 2, [f"row {k}" for k in range(60)]]
)
def test_rows_of_a_frame_are_taken_by_place(frame, index):
    expected = reference(frame)
    assert_allclose(ColumnEncoder().fit_transform(frame.set_index(pd.Index(index))), expected)


def test_kinds_of_pandas_columns():
    table = pd.DataFrame(
        {
            "nullable": pd.array([1, 2, 3], dtype="Int64"),
            "flag": [True, False, True],
            "word": pd.array(["u", "v", "u"], dtype="string"),
            "category": pd.Categorical(["p", "q", "q"], categories=["q", "p", "unused"]),
            "small": np.array([1, 2, 3], dtype=np.float32),
        }
    )
    out = ColumnEncoder(scale=False).fit_transform(table)
    assert_array_equal(out, [[1, 1, 1, 0, 1, 0, 1], [2, 0, 0, 1, 0, 1, 2], [3, 1, 1, 0, 0, 1, 3]])


def test_kinds_of_polars_columns():
    table = pl.DataFrame(
        {
            "int": pl.Series([1, 2, 3], dtype=pl.Int8),
            "flag": [True, False, True],
            "word": ["u", "v", "u"],
            "category": pl.Series(["p", "q", "q"], dtype=pl.Categorical),
            "enum": pl.Series(["p", "q", "q"], dtype=pl.Enum(["q", "p"])),
        }
    )
    out = ColumnEncoder(scale=False).fit_transform(table)
    assert_array_equal(out[:, 0], [1, 2, 3])
    assert_array_equal(out[:, 1], [1, 0, 1])
    assert_array_equal(out[:, 2:4], [[1, 0], [0, 1], [1, 0]])
    assert_array_equal(out[:, 4:6], [[1, 0], [0, 1], [0, 1]])
    assert_array_equal(out[:, 6:8], [[1, 0], [0, 1], [0, 1]])


def test_numbers_are_filled_with_the_median_as_simple_imputer(numbers):
    holes = with_gaps(numbers)
    expected = make_pipeline(SimpleImputer(strategy="median"), StandardScaler()).fit(holes)
    encoder = ColumnEncoder(impute=True).fit(holes)
    assert_allclose(encoder.fill_, np.nanmedian(holes, axis=0))
    assert_allclose(encoder.transform(holes), expected.transform(holes), atol=1e-7)
    assert_allclose(encoder.transform(numbers), expected.transform(numbers), atol=1e-7)


@pytest.mark.parametrize("missing", [None, np.nan, pd.NA])
def test_words_are_filled_with_the_commonest_as_simple_imputer(missing):
    words = np.array([["u"], ["v"], ["v"], [missing], ["u"]], dtype=object)
    encoder = ColumnEncoder(impute=True).fit(words)
    assert encoder.fill_ == ["u"]  # as often as v, and before it
    assert_array_equal(encoder.transform(words), [[1, 0], [0, 1], [0, 1], [1, 0], [1, 0]])
    words = pd.DataFrame({"w": ["v", missing, "v", "u"]})
    assert ColumnEncoder(impute=True).fit(words).fill_ == ["v"]
    assert ColumnEncoder(impute=True).fit(pl.DataFrame({"w": ["v", None, "v", "u"]})).fill_ == ["v"]


def test_missing_values_are_refused_with_their_count(numbers):
    holes = with_gaps(numbers)
    n = np.isnan(holes).sum(axis=0)
    message = rf"{n.sum()} missing values \({n[0]} in column 0, {n[1]} in column 1\).*impute=True"
    with pytest.raises(ValueError, match=message):
        ColumnEncoder().fit(holes)
    with pytest.raises(ValueError, match=message):
        ColumnEncoder().fit(numbers).transform(holes)
    named = pd.DataFrame({"a": [1.0, 2.0], "w": ["u", None]})
    with pytest.raises(ValueError, match=r"1 missing values \(1 in column 'w'\)"):
        ColumnEncoder().fit(named)
    with pytest.raises(ValueError, match=r"1 missing values \(1 in column 'w'\)"):
        ColumnEncoder(scale=False).fit(named.fillna("v")).transform(named)


def test_unseen_words_are_zero():
    encoder = ColumnEncoder().fit(pd.DataFrame({"w": ["u", "v"]}))
    assert_array_equal(
        encoder.transform(pd.DataFrame({"w": ["v", "new", ""]})), [[0, 1], [0] * 2, [0] * 2]
    )
    # Words that look like numbers, in a column that has become one of numbers.
    encoder = ColumnEncoder().fit(pd.DataFrame({"w": ["1", "2.5", "x"]}))
    assert_array_equal(encoder.transform(pd.DataFrame({"w": [1.0, 2.5]})), [[1, 0, 0], [0, 1, 0]])
    assert_array_equal(encoder.transform(pd.DataFrame({"w": [1]})), [[1, 0, 0]])


def test_numbers_that_come_as_text():
    encoder = ColumnEncoder(scale=False).fit(np.array([[1.0], [2.0]]))
    assert_array_equal(encoder.transform(np.array([["1.5"], ["3"]], dtype=object)), [[1.5], [3]])
    with pytest.raises(ValueError, match=r"column 0 held numbers in the fit: .*'many'"):
        encoder.transform(np.array([["1.5"], ["many"]], dtype=object))


def test_sparse_rows_are_scaled_and_stay_sparse():
    rng = np.random.default_rng(0)
    X = sparse.random(100, 7, 0.3, format="csr", random_state=rng)
    X.data[3] = 0.0  # stored
    expected = StandardScaler(with_mean=False).fit(X)
    for rows in (X, X.tocsc(), X.tocoo(), sparse.csr_array(X), X.astype(np.float32)):
        before = rows.copy()
        encoder = ColumnEncoder().fit(rows)
        out = encoder.transform(rows)
        assert sparse.issparse(out)
        assert out.format == "csr"
        assert out.dtype == rows.dtype
        assert_allclose(encoder.scale_, expected.scale_, rtol=1e-6)
        assert_allclose(out.toarray(), expected.transform(X).toarray(), rtol=1e-5)
        assert_array_equal(encoder.mean_, 0)
        assert (rows != before).nnz == 0
    whole = sparse.csr_matrix(np.array([[1, 0], [2, 3]]))
    assert ColumnEncoder().fit_transform(whole).dtype == np.float64
    gap = sparse.csr_matrix(np.array([[np.nan, 1.0], [2.0, 0]]))
    for impute in (False, True):  # what is not stored is 0, and what is stored is not filled
        with pytest.raises(ValueError, match="1 missing values"):
            ColumnEncoder(impute=impute).fit(gap)


def test_sparse_rows_with_duplicates_are_as_dense_ones():
    rows = sparse.csr_matrix(([1.0, 2.0, 3.0], [0, 0, 1], [0, 2, 3]), shape=(2, 2))
    dense = ColumnEncoder().fit(rows.toarray())
    assert_allclose(ColumnEncoder().fit(rows).scale_, dense.scale_)


def test_sparse_rows_after_a_fit_to_dense_ones(numbers):
    encoder = ColumnEncoder().fit(numbers)
    try:
        out = encoder.transform(sparse.csr_matrix(numbers))
    except (ValueError, TypeError):
        return
    out = out.toarray() if sparse.issparse(out) else out
    assert_allclose(out, encoder.transform(numbers))


def test_dense_rows_after_a_fit_to_sparse_ones(numbers):
    encoder = ColumnEncoder().fit(sparse.csr_matrix(numbers))
    expected = encoder.transform(sparse.csr_matrix(numbers)).toarray()
    assert_allclose(encoder.transform(numbers), expected)


def test_constant_columns():
    X = np.column_stack([np.full(50, 0.1), np.zeros(50), np.arange(50.0)])
    encoder = ColumnEncoder().fit(X)
    assert_array_equal(encoder.scale_[:2], 1)
    assert_allclose(encoder.transform(X)[:, :2], 0, atol=1e-15)


def test_a_constant_column_of_many_rows():
    X = np.full((200_000, 3), 0.1)
    X[:, 1] = np.arange(len(X))
    encoder = ColumnEncoder().fit(X)
    assert_array_equal(encoder.scale_[[0, 2]], StandardScaler().fit(X).scale_[[0, 2]])
    # A scale of 1e-13 makes 0.1 a 1, and 0.1000001 a million.
    assert_allclose(encoder.transform(X)[:, 0], 0, atol=1e-9)


def test_float32_stays_and_is_summed_in_float64():
    X = np.full((100_000, 2), 1e4, dtype=np.float32)
    X[::2, 0] += 1
    out = ColumnEncoder().fit(X)
    assert_allclose(out.mean_, [1e4 + 0.5, 1e4], rtol=1e-12)
    assert_allclose(out.scale_[0], 0.5, rtol=1e-9)
    assert out.transform(X).dtype == np.float32
    assert ColumnEncoder().fit_transform(np.arange(6).reshape(3, 2)).dtype == np.float64


def test_copies_and_in_place(numbers):
    before = numbers.copy()
    expected = ColumnEncoder().fit_transform(numbers)
    assert_array_equal(numbers, before)
    encoder = ColumnEncoder(copy=False)
    for X in (numbers.copy(), np.asfortranarray(numbers), numbers.copy()[::-1][::-1]):
        out = encoder.fit_transform(X)
        assert out is X
        assert_allclose(out, expected, atol=1e-7)
    ints = np.arange(6).reshape(3, 2)
    assert encoder.fit_transform(ints) is not ints
    assert_array_equal(ints.ravel(), range(6))
    fixed = numbers.copy()
    fixed.flags.writeable = False
    assert_array_equal(encoder.fit_transform(fixed), expected)
    assert_array_equal(fixed, before)
    rows = sparse.csr_matrix(numbers)
    assert np.shares_memory(encoder.fit_transform(rows).data, rows.data)


def test_frames_are_not_changed(frame):
    before = frame.copy()
    for copy in (True, False):
        ColumnEncoder(copy=copy).fit_transform(frame)
        pd.testing.assert_frame_equal(frame, before)
        ones = frame[["mass", "count"]]
        ColumnEncoder(copy=copy).fit_transform(ones)
        pd.testing.assert_frame_equal(ones, before[["mass", "count"]])


def test_without_scaling(numbers, frame):
    assert_array_equal(ColumnEncoder(scale=False).fit_transform(numbers), numbers)
    out = ColumnEncoder(scale=False).fit_transform(frame)
    assert_array_equal(out[:, 0], frame["mass"])


def test_names_of_features(frame, numbers):
    encoder = ColumnEncoder().fit(frame)
    expected = [
        "mass", "colour=blue", "colour=green", "colour=red", "count", "kind=p", "kind=q"
    ]  # fmt: skip
    assert encoder.get_feature_names_out().tolist() == expected
    assert ColumnEncoder().fit(pl.from_pandas(frame)).get_feature_names_out().tolist() == expected
    plain = ColumnEncoder().fit(numbers)
    assert plain.get_feature_names_out().tolist() == ["x0", "x1", "x2", "x3"]
    assert plain.get_feature_names_out(list("abcd")).tolist() == list("abcd")
    out = ColumnEncoder().set_output(transform="pandas").fit_transform(frame)
    assert out.columns.tolist() == expected
    out = ColumnEncoder().set_output(transform="polars").fit_transform(pl.from_pandas(frame))
    assert out.columns == expected


def test_other_names_of_features_are_refused(frame):
    with pytest.raises(ValueError, match="input_features"):
        ColumnEncoder().fit(frame).get_feature_names_out(["p", "q", "r", "s"])


@pytest.mark.parametrize("make", [lambda f: f, pl.from_pandas])
def test_wrong_names_or_order_are_refused_as_scikit_learn_does(frame, make):
    y = np.arange(60) % 2
    pipeline = make_pipeline(ColumnEncoder(), mm.SVC()).fit(make(frame), y)
    turned = make(frame[["colour", "mass", "count", "kind"]])
    with pytest.raises(ValueError, match="must be in the same order"):
        pipeline.predict(turned)
    with pytest.raises(ValueError, match="feature names should match"):
        pipeline.predict(make(frame.rename(columns={"mass": "weight"})))
    with pytest.raises(ValueError, match=r"feature names should match|missing"):
        pipeline.predict(make(frame[["mass", "colour", "count"]]))
    assert pipeline.predict(make(frame)).shape == (60,)


def test_what_is_refused():
    with pytest.raises(NotFittedError):
        ColumnEncoder().transform([[1.0]])
    with pytest.raises(ValueError, match="2 features, but ColumnEncoder is expecting 1"):
        ColumnEncoder().fit([[1.0], [2.0]]).transform([[1.0, 2.0]])
    with pytest.raises(ValueError, match="0 rows"):
        ColumnEncoder().fit(np.empty((0, 2)))
    with pytest.raises(ValueError, match="Expected 2D array"):
        ColumnEncoder().fit([1.0, 2.0])
    with pytest.raises(ValueError, match="'scale' parameter"):
        ColumnEncoder(scale="yes").fit([[1.0]])
    with pytest.raises(ValueError, match=r"column 1: its spread is|infinity"):
        ColumnEncoder().fit([[1.0, np.inf], [2.0, 1.0]])
    with pytest.raises(ValueError, match="infinity"):
        ColumnEncoder().fit([[1.0], [2.0]]).transform([[np.inf]])
    with pytest.raises(ValueError, match="holds no value"):
        ColumnEncoder(impute=True).fit([[np.nan, 1.0], [np.nan, 2.0]])
    with pytest.raises(ValueError, match=r"column 'when' holds values of type datetime64"):
        ColumnEncoder().fit(pd.DataFrame({"when": pd.to_datetime(["2020-01-01", "2020-01-02"])}))
    with pytest.raises(TypeError, match="must be a string or a number"):
        ColumnEncoder().fit(np.array([[{}], ["u"]], dtype=object))
    names = pd.DataFrame({"name": [f"n{k}" for k in range(1001)]})
    with pytest.raises(
        ValueError, match=r"column 'name' holds 1001 different values in 1001 rows, 'n0' among"
    ):
        ColumnEncoder().fit(names)
    twice = pd.concat([names[:1000]] * 2)
    assert ColumnEncoder().fit(twice).n_features_out_ == 1000


def test_the_column_of_an_infinite_value_is_named():
    encoder = ColumnEncoder().fit(pd.DataFrame({"w": ["u", "v"], "a": [0.0, 1.0]}))
    with pytest.raises(ValueError, match=r"infinity, or a value too large for column 'a'"):
        encoder.transform(pd.DataFrame({"w": ["u"], "a": [np.inf]}))


def test_refitting_forgets(frame, numbers):
    encoder = ColumnEncoder().fit(frame)
    assert_array_equal(
        encoder.fit(numbers).transform(numbers), ColumnEncoder().fit_transform(numbers)
    )
    assert not hasattr(encoder, "feature_names_in_")


def test_clone_pickle_and_files(frame, tmp_path):
    encoder = ColumnEncoder(impute=True).fit(frame)
    expected = encoder.transform(frame)
    assert_array_equal(pickle.loads(pickle.dumps(encoder)).transform(frame), expected)
    assert clone(encoder).get_params() == {"scale": True, "impute": True, "copy": True}
    mm.save(encoder, tmp_path / "encoder.mm")
    again = mm.load(tmp_path / "encoder.mm")
    assert_array_equal(again.transform(frame), expected)
    assert again.categories_ == encoder.categories_
    assert_array_equal(again.feature_names_in_, frame.columns)


def test_new_words_are_reported():
    encoder = ColumnEncoder().fit(pd.DataFrame({"a": [1.0, 2.0], "w": ["x", "y"]}))
    with pytest.warns(UserWarning, match=r"not seen: 2 in column 'w'"):
        encoder.transform(pd.DataFrame({"a": [1.0, 2.0, 3.0], "w": ["z", "x", "q"]}))


def test_names_are_no_categories():
    names = pd.DataFrame({"id": [f"n{k}" for k in range(50)], "a": np.arange(50.0)})
    with pytest.raises(ValueError, match=r"50 different values in 50 rows.*not categories"):
        ColumnEncoder().fit(names)


def test_many_words_stay_sparse(monkeypatch):
    table = pd.DataFrame({"a": np.arange(60.0), "w": [f"n{k % 15}" for k in range(60)]})
    dense = ColumnEncoder().fit_transform(table)
    monkeypatch.setattr("maxmargin.estimators.column_encoder.WIDE", 100)
    thin = ColumnEncoder().fit_transform(table)
    assert sparse.issparse(thin)
    assert_allclose(thin.toarray(), dense)
