"""What the caller passed, checked: errors that name the argument, the value and the remedy."""

from __future__ import annotations

from typing import Any, TypeGuard

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import (
    _check_sample_weight,
    _check_y,
    assert_all_finite,
    check_array,
    check_consistent_length,
    check_X_y,
    column_or_1d,
    validate_data,
)

from .arrays import (
    Floats,
    Integers,
    Labels,
    Matrix,
    MatrixLike,
    OnDevice,
    Partitioned,
    VectorOnDevice,
    blocks_of,
    by_rows,
    container,
    refuse_partitions,
    row_block,
    row_length,
)
from .data.row_blocks import RowBlocks
from .runtime.vectors import in_slices

# Largest |x| whose fourth powers, as in the length of ZᵀZa, stay far from float64's overflow.
LARGEST_VALUE = 1e75
# Numbers of X that BLAS sums up by itself, and from which its threads are worth the wait.
UNTHREADED_NUMBERS, THREADED_NUMBERS = 1 << 13, 1 << 20


class OneClassError(ValueError):
    """There is nothing to separate."""


class OutOfRangeError(ValueError):
    """Products of the data are not finite, or vanish."""


def check_training_data(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    reset: bool,
    accept_sparse: bool = True,
) -> tuple[Matrix, Labels]:
    """Return X (float32 or float64, dense or canonical CSR, uncopied if it is so) and y."""
    if isinstance(X, Partitioned):
        return check_partitions(estimator, X, y, reset=reset)
    if _is_plain(X) and are_plain_labels(y, X.shape[0]) and _fits(estimator, X, reset):
        return X, y
    if isinstance(X, OnDevice):
        X = _checked_on_device(estimator, X, reset, accept_sparse)
        if isinstance(y, VectorOnDevice):
            encoded = y.encoded()
            if encoded is not None and y.shape[0] == X.shape[0]:
                _check_labels(np.tile(encoded[0], 3))
                return X, y
            y = y.host
        if are_plain_labels(y, X.shape[0]):
            return X, y
        labels = _checked_y(estimator, X, y)
        _check_labels(labels)
        return X, labels
    X, labels = _checked(estimator, X, y, reset, accept_sparse)
    _check_labels(labels)
    return _usable(X), labels


def check_targets(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    *,
    reset: bool,
    accept_sparse: bool = True,
) -> tuple[Matrix, Floats]:
    """Return X as `check_training_data` does, and y as float64 numbers."""
    if isinstance(X, Partitioned):
        return check_partitions(estimator, X, y, reset=reset, targets=True)
    if _is_plain(X) and _are_plain_numbers(y, X.shape[0]) and _fits(estimator, X, reset):
        return X, _numbers(y)
    if isinstance(X, OnDevice):
        X = _checked_on_device(estimator, X, reset, accept_sparse)
        if isinstance(y, VectorOnDevice):
            numbers = y.as_targets(LARGEST_VALUE)
            if numbers is not None and y.shape[0] == X.shape[0]:
                return X, numbers
            y = y.host
        return X, _numbers(_checked_y(estimator, X, y))
    X, targets = _checked(estimator, X, y, reset, accept_sparse)
    return _usable(X), _numbers(targets)


def _numbers(y: Labels) -> Floats:
    """Return targets as float64 numbers."""
    if y.dtype.kind not in "biufO":
        raise _not_a_target(y[0])
    numbers: Floats = np.ascontiguousarray(y, dtype=np.float64)
    largest = max(in_slices(lambda some: float(np.abs(numbers[some]).max()), numbers.size))
    if largest > LARGEST_VALUE:
        raise _too_large_a_target(largest)
    return numbers


def _not_a_target(label: object) -> ValueError:
    return ValueError(
        f"y must hold numbers, the targets of a regression, got {label!r}: use a classifier for "
        "labels, or convert them."
    )


def _too_large_a_target(largest: float) -> ValueError:
    return ValueError(
        f"y holds values up to {largest:.3g}, whose products overflow float64: rescale y."
    )


def check_samples(
    estimator: BaseEstimator, X: MatrixLike, *, reset: bool, accept_sparse: bool = True
) -> Matrix:
    """Return X as `check_training_data` does, without y."""
    if isinstance(X, Partitioned):
        return check_partitions(estimator, X, "no_validation", reset=reset)[0]
    if isinstance(X, OnDevice):
        return _checked_on_device(estimator, X, reset, accept_sparse)
    return _usable(_checked(estimator, X, "no_validation", reset, accept_sparse))


def _checked_on_device(
    estimator: BaseEstimator, X: OnDevice, reset: bool, accept_sparse: bool
) -> Matrix:
    """Return X in float32 or float64 after the checks of an array, with the same messages."""
    numbers = X.as_numbers()
    low, high = numbers.extremes() if numbers is not None else (np.nan, np.nan)
    if numbers is None or not (np.isfinite(low) and np.isfinite(high)):
        return _usable(_checked(estimator, X.host, "no_validation", reset, accept_sparse))
    # One row has the features of all.
    _checked(estimator, numbers[:1], "no_validation", reset, accept_sparse)
    refuse_size(max(high, -low))
    return numbers


def _checked_y(estimator: BaseEstimator, X: OnDevice, y: ArrayLike) -> Any:
    """Return y after scikit-learn's checks."""
    if y is None:
        validate_data(estimator, X[:1], y, reset=False)  # raises
    labels = _check_y(y, estimator=estimator)
    check_consistent_length(X, labels)
    return labels


def _checked(
    estimator: BaseEstimator,
    X: MatrixLike,
    y: ArrayLike,
    reset: bool,
    accept_sparse: bool,
) -> Any:
    """Return X and y after scikit-learn's checks; X alone where y is "no_validation"."""
    refuse_partitions(X, y)
    try:
        return validate_data(
            estimator, X, y, reset=reset, accept_sparse="csr" if accept_sparse else False,
            dtype=[np.float64, np.float32],
        )  # fmt: skip
    except ValueError as error:
        raise _located(error, X) from None


def _usable(X: Any) -> Matrix:
    """Return X in canonical form, whose products are finite."""
    if sparse.issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    _refuse_overflow(X)
    return X


def check_row_blocks(
    estimator: BaseEstimator, X: RowBlocks, y: ArrayLike, *, targets: bool = False
) -> tuple[RowBlocks, Labels]:
    """Check every block of X, and y: labels or targets; remember the number of features."""
    start = 0
    for block in X:
        if not block.shape[0]:
            continue
        try:
            check_array(block, accept_sparse="csr", dtype=[np.float64, np.float32])
        except ValueError as error:
            raise ValueError(
                f"Rows {start} to {start + block.shape[0] - 1} of X: {error}"
            ) from None
        _refuse_overflow(block)
        start += block.shape[0]
    labels: Labels = column_or_1d(y, warn=True)
    check_consistent_length(X, labels)
    if targets:
        assert_all_finite(labels, input_name="y")
        labels = _numbers(labels)
    else:
        _check_labels(labels)
    estimator.n_features_in_ = X.shape[1]
    vars(estimator).pop("feature_names_in_", None)
    return X, labels


def check_partitions(
    estimator: BaseEstimator, X: Partitioned, y: Any, *, reset: bool, targets: bool = False
) -> tuple[Partitioned, Any]:
    """Check labels or targets of rows that were checked where they are; remember the features."""
    none = y is None or isinstance(y, str)
    labels = y if none else "no_validation"  # None is refused by estimators that need labels
    validate_data(estimator, X.example, labels, reset=reset, skip_check_array=True)
    if none:
        return X, y
    if isinstance(y, np.ndarray):  # brought here, as the dual variables of kernel machines are
        if targets:
            return X, _numbers(y)
        _check_labels(y)
        return X, y
    if targets:
        numbers = y.as_targets(LARGEST_VALUE)
        if numbers is None:
            if y.ends is None:
                raise _not_a_target(y[:: len(y)][0])
            raise _too_large_a_target(max(-y.ends[0], y.ends[1]))
        return X, numbers
    _encoded(y)
    return X, y


def _encoded(y: Any) -> tuple[Labels, Any]:
    """Return the different labels of a vector in partitions, and their class numbers."""
    encoded: tuple[Labels, Any] | None = y.encoded()
    if encoded is None:
        raise ValueError(
            "Unknown label type: y holds thousands of different numbers. Maybe you are trying to "
            "fit a classifier, which expects discrete classes, on a regression target."
        )
    _check_labels(np.tile(encoded[0], 3))
    return encoded


def largest_square(X: Matrix) -> float:
    """Return the largest ‖x‖²."""
    largest = 0.0
    for _, piece in container(X).pieces():
        for block in blocks_of(piece.shape[0], row_length(piece)):
            rows = row_block(piece, block)
            squares = rows.multiply(rows) if sparse.issparse(rows) else rows * rows
            largest = max(largest, float(np.asarray(squares.sum(axis=1)).max()))
    return largest


def check_two_labels(X: MatrixLike, y: ArrayLike) -> tuple[Matrix, Floats]:
    """Return X and y = ±1 of data that belong to no estimator."""
    refuse_partitions(X, y)
    try:
        X, labels = check_X_y(X, y, accept_sparse="csr", dtype=[np.float64, np.float32])
    except ValueError as error:
        raise _located(error, X) from None
    _check_labels(labels)
    _refuse_overflow(X)
    classes, codes = encode_labels(labels)
    _check_pair(classes)
    return by_rows(X), 2.0 * codes - 1.0


def check_two_partitioned_labels(y: Any) -> Any:
    """Return y = ±1 of labels in partitions that belong to no estimator."""
    if y is None:
        raise ValueError("separability needs the labels y of the rows of X, got None.")
    classes, codes = _encoded(y)
    _check_pair(classes)
    return codes.signs(1)


def _check_pair(classes: Labels) -> None:
    if len(classes) != 2:
        kinds = "1 class" if len(classes) == 1 else f"{len(classes)} classes"
        raise ValueError(f"separability is about 2 classes, got {kinds}: choose a pair of them.")


def check_new_data(estimator: BaseEstimator, X: MatrixLike) -> Matrix:
    """Return X for prediction, checked against the features of the fit."""
    if _is_plain(X) and _has_features_of(estimator, X):
        return X
    if isinstance(X, OnDevice):
        return _checked_on_device(estimator, X, reset=False, accept_sparse=True)
    refuse_partitions(X)
    try:
        X = validate_data(
            estimator, X, reset=False, accept_sparse="csr", dtype=[np.float64, np.float32]
        )
    except ValueError as error:
        raise _located(error, X) from None
    return X


# What most callers pass: scikit-learn's checks, of everything that may be passed, would take longer
# than a small fit.


def _is_plain(X: MatrixLike) -> bool:
    """Return whether X is an array of finite numbers that can be used as they are."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype.char in "df"
        and X.dtype.isnative
        and _is_in_range(X)
    )


def are_plain_labels(y: ArrayLike, n_samples: int) -> TypeGuard[Labels]:
    """Return whether y holds numbers of clearly fewer classes than samples."""
    if type(y) is not np.ndarray or y.shape != (n_samples,):
        return False
    if y.dtype.kind == "b":
        return True
    return y.dtype.kind in "iuf" and _are_few(y)


def _are_plain_numbers(y: ArrayLike, n_samples: int) -> TypeGuard[Labels]:
    """Return whether y holds finite numbers."""
    if type(y) is not np.ndarray or y.shape != (n_samples,) or y.dtype.kind not in "iuf":
        return False
    return all(in_slices(lambda some: bool(np.isfinite(y[some]).all()), n_samples))


def _are_few(y: Labels) -> bool:
    """Return whether labels are whole numbers from a short interval."""

    def ends(some: slice) -> tuple[float, float]:
        part = y[some]
        if part.dtype.kind == "f" and not (part == np.rint(part)).all():
            return -np.inf, np.inf
        return part.min().item(), part.max().item()

    if not y.size:
        return False
    low, high = zip(*in_slices(ends, y.size), strict=True)
    return bool(max(high) - min(low) < y.size // 2)


def _fits(estimator: BaseEstimator, X: Matrix, reset: bool) -> bool:
    """Return whether X has the features of the fit; with ``reset`` they become those of X."""
    if not reset:
        return _has_features_of(estimator, X)
    estimator.n_features_in_ = X.shape[1]
    vars(estimator).pop("feature_names_in_", None)
    return True


def _has_features_of(estimator: BaseEstimator, X: Matrix) -> bool:
    """Return whether X has the features of the fit, which had no names."""
    fitted = vars(estimator)
    return "feature_names_in_" not in fitted and fitted.get("n_features_in_") == X.shape[1]


def _check_labels(y: Labels) -> None:
    try:
        check_classification_targets(y)
    except TypeError:
        kinds = sorted({type(label).__name__ for label in y})
        if len(kinds) == 1:
            raise ValueError(
                f"y holds labels of type {kinds[0]}: pass strings or numbers."
            ) from None
        raise ValueError(
            f"y mixes labels of types {', '.join(kinds)}: pass labels of one type."
        ) from None


def encode_labels(y: Labels, classes: Labels | None = None) -> tuple[Labels, Integers]:
    """Return the classes and the class number of every label."""
    if classes is None:
        classes = _different(y)
        # Two classes need no search: a comparison is many times as fast.
        codes: Integers = np.empty(len(y), dtype=np.int8 if len(classes) == 2 else np.intp)

        def encode(some: slice) -> None:
            two = len(classes) == 2
            codes[some] = y[some] == classes[1] if two else np.searchsorted(classes, y[some])

        in_slices(encode, len(y))
        return classes, codes
    codes = np.searchsorted(classes, y)
    strange = (codes == len(classes)) | (classes[np.minimum(codes, len(classes) - 1)] != y)
    if strange.any():
        raise ValueError(
            f"y holds {np.unique(y[strange])!r}, which is not in classes={classes!r}: "
            "pass every label to the first call of partial_fit."
        )
    return classes, codes


def _different(y: Labels) -> Labels:
    """Return the different labels, in order: those of slices of y first."""
    parts = in_slices(lambda some: _different_of_slice(y[some]), len(y))
    return parts[0] if len(parts) == 1 else np.unique(np.concatenate(parts))


def _different_of_slice(y: Labels) -> Labels:
    if y.dtype.kind in "iuf" and y.size > 2:
        # Two classes are found without sorting.
        ends = np.array([y.min(), y.max()])
        if ends[0] < ends[1] and np.logical_or(y == ends[0], y == ends[1]).all():
            return ends
    return np.unique(y)


def check_sample_weight(sample_weight: ArrayLike | None, X: Matrix) -> Floats:
    """Return one weight per sample, of at least 0 and not all 0; without any, a 1 seen n times."""
    if sample_weight is None:
        return np.broadcast_to(1.0, X.shape[0])
    if isinstance(sample_weight, VectorOnDevice):
        return sample_weight  # type: ignore[return-value]  # checked where it is
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64)
    if (weights < 0).any():
        raise ValueError(
            f"sample_weight holds {weights.min():g}: weights must be at least 0. Pass 0 for a "
            "sample that is not to count."
        )
    if not weights.any():
        raise ValueError("Sample weights are all zero: at least two samples must count.")
    return weights


def without_negative(sample_weight: ArrayLike | None) -> Floats | None:
    """Return the weights with 0 in place of negative ones: such samples do not count either.

    For kernel machines only, of which scikit-learn's own tests demand it: everywhere else negative
    weights are refused.
    """
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.size and (weights <= 0).all():
        raise ValueError("Invalid input - all samples have zero or negative weights.")
    return np.maximum(weights, 0.0)


def weighted_variance(X: Matrix, weights: Floats) -> float:
    """Return the variance of all entries of X, those of a row counted ``weights`` times."""
    if isinstance(X, (OnDevice, Partitioned)):
        return X.variance(weights)
    shares = weights / (weights.sum() * X.shape[1])
    mean = float((X.T @ shares).sum())
    if sparse.issparse(X):
        shares = np.repeat(shares, np.diff(X.indptr))
        squares = np.square(X.data.astype(np.float64) - mean)
        return float(shares @ squares + (1.0 - shares.sum()) * mean**2)
    total = 0.0
    for block in blocks_of(*X.shape):
        squares = np.square(X[block].astype(np.float64) - mean)
        total += float(shares[block] @ squares.sum(axis=1))
    return total


def holds_objects(X: MatrixLike) -> bool:
    """Return whether samples are strings or other objects, not rows of numbers."""
    if sparse.issparse(X) or isinstance(X, OnDevice):
        return False
    try:
        samples = np.asarray(X)
    except ValueError:  # rows of different lengths
        return True
    return samples.ndim == 1 and samples.dtype.kind not in "biufc"


def class_weights(
    weights: Floats, class_weight: object, classes: Labels, y: Labels, codes: Integers
) -> Floats:
    """Return the weight of every class."""
    if class_weight is None:
        return np.ones(len(classes))
    if isinstance(class_weight, str):  # "balanced": every class counts the same in the weights
        totals = np.bincount(codes, weights=weights)
        of_class = totals.sum() / (len(classes) * totals)
    else:
        of_class = compute_class_weight(class_weight, classes=classes, y=y)
    if not (of_class > 0).all() or not np.isfinite(of_class).all():
        raise ValueError(f"class_weight={class_weight!r}: every class needs a positive weight.")
    return of_class


def check_two_classes(classes: Labels) -> None:
    """Refuse a single class."""
    if len(classes) < 2:
        label = np.asarray(classes[0]).item()
        raise OneClassError(
            "Invalid input - all samples with positive weights belong to the same class, "
            f"{label!r}: a separating plane needs at least 2 classes, got 1 class."
        )


def _refuse_overflow(X: Matrix) -> None:
    values = X.data if sparse.issparse(X) else X
    if values.size == 0 or _is_in_range(values):
        return
    refuse_size(max(float(values.max()), -float(values.min())))


def refuse_size(largest: float) -> None:
    """Refuse values whose products overflow or vanish."""
    if largest > LARGEST_VALUE or 0.0 < largest < 1.0 / LARGEST_VALUE:
        fault = "overflow" if largest > 1.0 else "underflow"
        raise OutOfRangeError(
            f"X holds values up to {largest:.3g}, whose products {fault} float64: "
            "rescale the features, for instance with sklearn.preprocessing.StandardScaler."
        )


def _is_in_range(values: Floats) -> bool:
    """Return whether products are known to be finite and not to vanish, by one pass of BLAS."""
    if not values.flags.forc:
        return False
    flat = values.ravel(order="K")
    if flat.size <= THREADED_NUMBERS:
        # BLAS would wake its threads for more at a time.
        step = UNTHREADED_NUMBERS
        with np.errstate(over="ignore", invalid="ignore"):
            parts = (flat[k : k + step] for k in range(0, flat.size, step))
            return bool(LARGEST_VALUE**-2 < sum(np.dot(x, x) for x in parts) < LARGEST_VALUE**2)

    def square(some: slice) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(np.dot(flat[some], flat[some]))

    return bool(LARGEST_VALUE**-2 < sum(in_slices(square, flat.size, 1.0)) < LARGEST_VALUE**2)


def _located(error: ValueError, X: MatrixLike) -> ValueError:
    """Add the place of the first NaN or infinity to scikit-learn's message."""
    message = str(error)
    if ("NaN" not in message and "inf" not in message) or "Input X" not in message:
        return error
    try:
        if sparse.issparse(X):
            entries = X.tocoo()
            first = np.flatnonzero(~np.isfinite(entries.data))[0]
            row, column = int(entries.row[first]), int(entries.col[first])
        else:
            row, column = map(int, np.argwhere(~np.isfinite(np.asarray(X, dtype=float)))[0])
    except (TypeError, ValueError, IndexError):
        return error
    names = getattr(X, "columns", None)
    name = f"column {column}" if names is None else f"column {names[column]!r}"
    head, _, tail = message.partition("\n")
    return ValueError(f"{head} The first is in row {row}, {name}.\n{tail}".rstrip())
