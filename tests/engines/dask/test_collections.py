"""Collections as they come: what is refused names the partition, and the rest is as in memory."""

import numpy as np
import pytest
from scipy import sparse

import maxmargin as mm
from maxmargin.engines.registry import received_partitions

pytest.importorskip("distributed")
dask = pytest.importorskip("dask")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")
pd = pytest.importorskip("pandas")

N, D, ROWS = 40, 3, 10
RNG = np.random.default_rng(0)
Y = RNG.integers(2, size=N)
X = RNG.standard_normal((N, D)) + Y[:, None]
TARGETS = RNG.standard_normal(N)
PARTS = [X[k : k + ROWS] for k in range(0, N, ROWS)]
LABELS = [Y[k : k + ROWS] for k in range(0, N, ROWS)]
NO_ROWS, NO_LABELS = X[:0], Y[:0]


def known(values):
    """Return an array of Dask with known sizes."""
    return da.from_array(values, chunks=(ROWS, -1) if np.ndim(values) > 1 else ROWS)


def rows_of(*parts):
    """Return partitions of unknown sizes as they are."""
    lazy = [da.from_delayed(dask.delayed(part), (np.nan, D), float) for part in parts]
    return da.concatenate(lazy)


def labels_of(*parts):
    """Return the same of labels."""
    lazy = [da.from_delayed(dask.delayed(part), (np.nan,), object) for part in parts]
    return da.concatenate(lazy)


def instead(values, place, value):
    """Return a copy with another value in one place."""
    values = values.copy()
    values[place] = value
    return values


def second(part):
    """Return partitions with another second one."""
    return rows_of(PARTS[0], part, *PARTS[2:])


REFUSED = {
    "NaN": (known(instead(X, (23, 1), np.nan)), known(Y),
            r"Partition 2: Input X contains NaN.* row 3, column 1"),
    "infinity": (known(instead(X, (3, 2), -np.inf)), known(Y),
                 r"Partition 0: Input X contains infinity.* row 3, column 2"),
    "NaN in CSR": (known(instead(X, (23, 1), np.nan)).map_blocks(sparse.csr_matrix), known(Y),
                   r"Partition 2: Input X contains NaN.* row 3, column 1"),
    "NaN in a frame": (
        dd.from_pandas(pd.DataFrame(instead(X, (23, 1), np.nan), columns=[*"abc"]), chunksize=10),
        known(Y), r"Partition 2: Input X contains NaN.* row 3, column 'b'"),
    "width": (second(PARTS[1][:, :2]), labels_of(*LABELS),
              "3 columns in partition 0, dense rows of 2 columns in partition 1"),
    "dense and CSR": (second(sparse.csr_matrix(PARTS[1])), labels_of(*LABELS),
                      "dense rows .* in partition 0, CSR rows .* in partition 1"),
    "strings": (second(np.full((ROWS, D), "a")), labels_of(*LABELS), "Partition 1: could not conv"),
    "objects": (second(instead(PARTS[1].astype(object), (2, 1), "x")), labels_of(*LABELS),
                "Partition 1: could not convert string to float: 'x'"),
    "large integers": (second(np.full((ROWS, D), 10**400)), labels_of(*LABELS), "Partition 1: int"),
    "1-d part": (second(PARTS[1][:, 0]), labels_of(*LABELS), "Partition 1: Expected 2D array"),
    "complex": (known(X + 1j), known(Y), "^Partition 0: Complex data not supported$"),
    "large values": (known(X * 1e200), known(Y), "X holds values up to .* overflow float64"),
    "no rows": (rows_of(NO_ROWS, NO_ROWS), labels_of(NO_LABELS, NO_LABELS),
                r"0 sample\(s\) in 2 partition"),
    "no columns": (known(X[:, :0]), known(Y), r"0 feature\(s\)"),
    "1-d X": (known(Y), known(Y), "Expected 2D array, got 1D array"),
    "one row": (known(X[:1]), known(Y[:1]), "at least 2 classes, got 1 class"),
    "other partitions": (rows_of(*PARTS), labels_of(Y[:20], Y[20:]),
                         "X has 4 partitions and y has 2.*compute_chunk_sizes"),
    "other cuts": (rows_of(*PARTS), labels_of(Y[:5], Y[5:20], *LABELS[2:]),
                   "Partition 0: X has 10 rows here, and y has 5: partition both alike"),
    "rows without labels": (rows_of(NO_ROWS, *PARTS[1:]), labels_of(*LABELS),
                            "Partition 0: X has 0 rows here, and y has 10"),
    "short y": (known(X), known(Y[:30]), r"inconsistent numbers of samples: \[40, 30\]"),
    "short y in memory": (known(X), Y[:30], r"inconsistent numbers of samples: \[40, 30\]"),
    "NaN in y": (known(X), known(instead(Y.astype(float), 12, np.nan)),
                 "Partition 1: Input y contains NaN. The first is in row 2"),
    "None in y": (known(X), instead(Y.astype(object), 12, None),
                  "Partition 1: Input y contains None. The first is in row 2"),
    "mixed in one": (known(X), known(instead(np.array(["a", "b"] * 20, dtype=object), 25, 3)),
                     "Partition 2: y mixes labels of types int, str"),
    "mixed in two": (rows_of(*PARTS), labels_of(np.array(["a", "b"] * 5), *LABELS[1:]),
                     "numbers in partition 1, others in partition 0"),
    "mixed objects": (known(X), known(instead(np.full(N, "a", dtype=object), slice(20, 30), 1)),
                      "numbers in partition 2, others in partition 0"),
    "continuous": (known(X), known(TARGETS), "Unknown label type: continuous"),
    "one class": (known(X), known(Y * 0), "at least 2 classes, got 1 class"),
    "2-d y": (known(X), known(np.c_[Y, Y]), "y should be a 1d array"),
    "no y": (known(X), None, "requires y to be passed"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name):
    rows, labels, message = REFUSED[name]
    with pytest.raises(ValueError, match=message):
        mm.LinearSVC().fit(rows, labels)


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (instead(np.ones(N), 17, -1.0), "Partition 1: sample_weight holds -1 in row 7"),
        (instead(np.ones(N), 13, np.nan), "Partition 1: Input sample_weight contains NaN.* row 3"),
        (np.zeros(N), "all zero"),
        (np.ones(30), r"sample_weight.shape == \(30,\), expected \(40,\)"),
        (np.ones((N, 2)), "sample_weight should be a 1d array"),
    ],
)
def test_refused_weights(weights, message):
    for given in (weights, known(weights)):
        with pytest.raises(ValueError, match=message):
            mm.LinearSVC().fit(known(X), known(Y), given)


@pytest.mark.parametrize("other", [dask.delayed(X), "bag"])
def test_other_collections_are_refused(other):
    if isinstance(other, str):
        other = pytest.importorskip("dask.bag").from_sequence(range(4))
    with pytest.raises(TypeError, match=r"X must be a dask.array or a dask.dataframe"):
        mm.LinearSVC().fit(other, known(Y))
    with pytest.raises(TypeError, match=r"y must be a dask.array or a dask.dataframe"):
        mm.LinearSVC().fit(known(X), other)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.array(["a", "b"] * 20), "must hold numbers.*got .*'a'"),
        (TARGETS * 1e300, "y holds values up to .*: rescale y"),
        (instead(TARGETS, 3, np.inf), "Partition 0: Input y contains infinity.* row 3"),
    ],
)
def test_refused_targets(y, message):
    with pytest.raises(ValueError, match=message):
        mm.LinearSVR().fit(known(X), known(y))


ONE_PART = np.repeat([0, 0, 0, 1], ROWS)
TAKEN = {
    "float32 and float64": (rows_of(PARTS[0].astype(np.float32), *PARTS[1:]), labels_of(*LABELS)),
    "objects": (second(PARTS[1].astype(object)), labels_of(*LABELS)),
    "lists": (second(PARTS[1].tolist()), labels_of(*LABELS)),
    "empty first": (rows_of(NO_ROWS, *PARTS), labels_of(NO_LABELS, *LABELS)),
    "empty in the middle": (rows_of(PARTS[0], NO_ROWS, *PARTS[1:]),
                            labels_of(LABELS[0], NO_LABELS, *LABELS[1:])),
    "empty last": (rows_of(*PARTS, NO_ROWS), labels_of(*LABELS, NO_LABELS)),
    "empty of another width": (rows_of(X[:0, :2], *PARTS), labels_of(NO_LABELS, *LABELS)),
    "unknown y": (known(X), labels_of(*LABELS)),
    "other cuts": (known(X), da.from_array(Y, chunks=7)),
    "y in memory": (known(X), Y),
    "a series": (known(X), pd.Series(Y)),
    "a list": (rows_of(*PARTS), Y.tolist()),
    "a column": (known(X), known(Y[:, None])),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_taken(name):
    model = mm.LinearSVC(tol=1e-9).fit(*TAKEN[name])
    np.testing.assert_allclose(model.coef_, mm.LinearSVC(tol=1e-9).fit(X, Y).coef_, rtol=1e-5)
    assert model.certificate_.holds(1e-8)


@pytest.mark.parametrize("labels", [ONE_PART, np.where(np.arange(N) < 35, Y, 7)])
def test_labels_of_one_partition_alone(labels):
    model = mm.LinearSVC(tol=1e-9).fit(known(X), known(labels))
    other = mm.LinearSVC(tol=1e-9).fit(X, labels)
    np.testing.assert_array_equal(model.classes_, other.classes_)
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-5, atol=1e-7)


def test_one_weight_for_all_and_targets_as_objects():
    model = mm.LinearSVR(tol=1e-9).fit(known(X), known(TARGETS.astype(object)), 2.0)
    other = mm.LinearSVR(tol=1e-9).fit(X, TARGETS, np.full(N, 2.0))
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-5, atol=1e-7)


def test_vectors_of_this_process_meet_vectors_in_partitions():
    X = np.arange(14.0).reshape(7, 2)
    y = np.arange(7) % 2
    dX = da.from_array(X, chunks=((3, 1, 3), -1))
    _, vector, _ = received_partitions(dX, da.from_array(y, chunks=((3, 1, 3),)), None)
    other = np.linspace(0.0, 1.0, 7)
    np.testing.assert_array_equal(np.asarray(vector * other), y * other)
    np.testing.assert_array_equal(np.asarray(other - vector), other - y)
    np.testing.assert_array_equal(np.asarray(2.0 * vector), 2.0 * y)
    with pytest.raises(ValueError, match=r"one number for each of 7 rows, got shape \(3,\)"):
        vector * np.ones(3)
    with pytest.raises(TypeError, match="matmul"):
        vector @ other
