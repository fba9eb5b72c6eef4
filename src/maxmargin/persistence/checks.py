"""Consistency of a loaded model: shapes, ranges, finite numbers, and a prediction."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler

from ..arrays import VectorOnDevice
from ..diagnostics.fitted_model import ModelLike
from ..diagnostics.scaling import Scaling, scaling_of
from ..estimators.approximation import is_approximated
from ..estimators.base import CertifiedClassifier, CertifiedEstimator
from ..estimators.column_encoder import ColumnEncoder
from ..estimators.kernel_machine import KernelMachine
from ..estimators.kernel_perceptron import KernelPerceptron
from ..estimators.least_squares import HoKashyap
from ..estimators.linear import LinearClassifier
from ..estimators.linear_svc import LinearSVC
from ..estimators.linear_svr import LinearSVR
from ..estimators.saved import APPROXIMATION, SUPPORT
from ..estimators.svc import SVC
from ..estimators.svr import NuSVR
from ..estimators.text_encoder import TextEncoder
from ..kernels import Kernel, Linear, Precomputed
from ..multiclass import REDUCTIONS, Binary, Kesler, OneVsOne
from ..solution import Status, Trace
from ..validation import LARGEST_VALUE
from .errors import InconsistentModelError
from .imported import Unproved
from .models import is_fitted
from .text_checks import other_columns, row_of_text
from .values import CERTIFICATES

__all__ = ["check_model"]

# Attributes that a scaler transforms with, and the parameter that turns each of them on.
NEEDED: dict[type, dict[str, str | None]] = {
    StandardScaler: {"mean_": "with_mean", "scale_": "with_std"},
    MinMaxScaler: {"min_": None, "scale_": None},
    MaxAbsScaler: {"scale_": None},
    RobustScaler: {"center_": "with_centering", "scale_": "with_scaling"},
}
# Attributes of scalers that hold a centre of the data.
CENTRES = ("mean_", "center_", "data_min_")


@dataclass(frozen=True)
class Limits:
    """Numbers beyond which a model is rejected."""

    # Products of larger weights and features could overflow.
    largest_weight: float = 1e200
    # Columns up to which a prediction is tried.
    most_tried_columns: int = 1 << 22
    # Products of wider sparse matrices take gigabytes.
    most_sparse_columns: int = 1 << 27
    # Support vectors that are predicted.
    tried_rows: int = 3
    # Factors of scalers, and images of 0, that no data have.
    largest_factor: float = LARGEST_VALUE
    largest_shift: float = 1e60


LIMITS = Limits()


def check_model(model: ModelLike, widest: int = LIMITS.most_sparse_columns) -> None:
    """Raise InconsistentModelError where attributes contradict each other or cannot predict.

    Sparse matrices may have ``widest`` columns: products of them take memory in proportion.
    """
    _check_parts(model)
    last = _last(model)
    if not isinstance(last, CertifiedEstimator) or not is_fitted(last):
        return
    for name in ("coef_", "support_vectors_"):
        matrix: Any = vars(last).get(name)
        if sparse.issparse(matrix):
            _require(matrix.shape[1] <= widest, f"{name} has {matrix.shape[1]} columns")
    _check_prediction(model)


def _check_parts(model: ModelLike) -> None:
    if isinstance(model, Pipeline):
        _check_pipeline(model)
    elif is_fitted(model):
        _check_features(model)
        if isinstance(model, CertifiedEstimator):
            _check_estimator(model)
        elif isinstance(model, ColumnEncoder):
            _check_encoder(model)
        elif isinstance(model, TextEncoder):
            others = other_columns(model)
            if others is not None:
                _check_encoder(others)
        else:
            _check_scaler(model)


def _require(true: Any, what: str) -> None:
    if not true:
        raise InconsistentModelError(what)


def _check_pipeline(model: Pipeline) -> None:
    width = None
    for name, step in model.steps:
        if step in (None, "passthrough"):
            continue
        _check_parts(step)
        first = step.steps[0][1] if isinstance(step, Pipeline) else step
        if width is not None and first not in (None, "passthrough") and is_fitted(first):
            wants = first.n_features_in_
            _require(wants == width, f"step {name!r} takes {wants} features, but gets {width}")
        width = None
        if not isinstance(step, Pipeline) and is_fitted(step):
            width = getattr(step, "n_features_out_", step.n_features_in_)


def _last(model: ModelLike) -> Any:
    """Return the last step of a pipeline, or the model itself."""
    while isinstance(model, Pipeline) and model.steps:
        model = model.steps[-1][1]
    return model


def _check_prediction(model: ModelLike) -> None:
    """Predict a few rows like those of the fit, to find any other error."""
    _try(_last(model), _vectors)
    _try(model, _row)


def _try(model: ModelLike, example: Callable[[Any], Any]) -> None:
    try:
        rows = example(model)
        if rows is None:
            return
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            predicted = model.predict(rows)
            has_scores = hasattr(model, "decision_function")
            scores = model.decision_function(rows) if has_scores else predicted
    except Exception as error:
        raise InconsistentModelError(f"it cannot predict: {error}") from error
    good = np.isfinite(scores).all() and np.abs(scores).max() <= LIMITS.largest_weight
    _require(good, "it predicts scores that overflow")
    good = predicted.shape == (rows.shape[0],)
    if isinstance(_last(model), CertifiedClassifier):
        good = good and set(predicted.tolist()) <= set(_last(model).classes_.tolist())
    _require(good, f"it predicts {predicted!r:.50}")


def _vectors(model: ModelLike) -> Any:
    """Return the longest support vectors, None without any."""
    vectors = getattr(model, "support_vectors_", None)
    if vectors is None or 0 in vectors.shape or vectors.shape[1] > LIMITS.most_tried_columns:
        return None
    lengths = abs(vectors).max(axis=1)
    lengths = np.ravel(lengths.toarray() if sparse.issparse(lengths) else lengths)
    return vectors[np.sort(np.argsort(lengths)[-LIMITS.tried_rows :])]


def _row(model: ModelLike) -> Any:
    """Return a row like those of the fit, as far as known; None where it would be too wide."""
    while isinstance(model, Pipeline):
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
        _require(steps, "a pipeline without steps")
        model = steps[0]
    _require(is_fitted(model), f"the step {type(model).__name__} is not fitted")
    n = model.n_features_in_
    if n > LIMITS.most_tried_columns:
        return None
    if sparse.issparse(getattr(model, "support_vectors_", None)):
        return sparse.csr_matrix((1, n))
    if isinstance(model, ColumnEncoder):
        return _row_of_columns(model)
    if isinstance(model, TextEncoder):
        others = other_columns(model)
        return row_of_text(model, None if others is None else _row_of_columns(others))
    centre = next((c for c in CENTRES if vars(model).get(c) is not None), None)
    values = np.zeros(n) if centre is None else np.asarray(vars(model)[centre], dtype=np.float64)
    return np.where(np.isfinite(values), values, 0.0)[np.newaxis]


def _row_of_columns(model: ColumnEncoder) -> Any:
    """Return a row of means and first categories."""
    row = np.empty((1, model.n_features_in_), dtype=object)
    first = 0
    for k, words in enumerate(model.categories_):
        row[0, k] = float(model.mean_[first]) if words is None else words[0]
        first += 1 if words is None else len(words)
    return row


def _check_features(model: ModelLike) -> None:
    n = model.n_features_in_
    _require(_is_count(n, 1), f"n_features_in_ is {n!r:.50}")
    names = vars(model).get("feature_names_in_")
    if names is not None:
        shape = getattr(names, "shape", None)
        _require(shape == (n,), f"{n} features have names of shape {shape}")
        _require(all(isinstance(name, str) for name in names), "the name of a feature must be text")


# Estimators ------------------------------------------------------------------------------------


class _Sizes(NamedTuple):
    """What shapes of attributes follow from; without classes there is one of each."""

    classes: int = 1
    tasks: int = 1
    planes: int = 1
    # of dual_coef_ of a kernel machine
    rows: int = 1


def _check_estimator(model: ModelLike) -> None:
    sizes = _sizes_of_classes(model) if isinstance(model, CertifiedClassifier) else _Sizes()
    _check_numbers("intercept_", model.intercept_, (sizes.planes,), largest=LIMITS.largest_weight)
    _check_proofs(model, sizes.tasks)
    _check_counts(model)
    if isinstance(model, LinearClassifier):
        _check_planes(model, sizes)
    elif isinstance(model, LinearSVR):
        _check_linear_machine(model, (model.n_features_in_,), 1)
    elif isinstance(model, KernelMachine):
        _check_machine(model, sizes)
    elif isinstance(model, KernelPerceptron):
        _check_kernel_perceptron(model, sizes.planes)


def _sizes_of_classes(model: ModelLike) -> _Sizes:
    n = _check_classes(model)
    reduction, n_pairs = model._reduction(), n * (n - 1) // 2
    if isinstance(reduction, OneVsOne):
        return _Sizes(n, n_pairs, n_pairs, n - 1)
    n_tasks = {Binary: 1, Kesler: 1}.get(type(reduction), n)
    n_planes = n if isinstance(reduction, Kesler) else n_tasks
    return _Sizes(n, n_tasks, n_planes, n_planes)


def _check_classes(model: ModelLike) -> int:
    classes = model.classes_
    good = isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "biufUO"
    _require(good, f"classes_ is {classes!r:.50}")
    _require(len(classes) >= 2, f"classes_ holds {len(classes)} labels")
    finite = classes.dtype.kind != "f" or np.isfinite(classes).all()
    _require(finite, "classes_ holds a number that is not finite")
    _require(len(set(classes.tolist())) == len(classes), "classes_ holds a label twice")
    scheme = model._reduced_by
    _require(
        isinstance(scheme, str) and scheme in REDUCTIONS,
        f"the scheme of many classes is {scheme!r:.50}",
    )
    joint, largest = REDUCTIONS[scheme] is Kesler, scheme == "crammer_singer"
    _require(
        not joint or isinstance(model, LinearClassifier) or (largest and isinstance(model, SVC)),
        f"a kernel machine cannot have the scheme {scheme!r}",
    )
    return len(classes)


def _check_proofs(model: ModelLike, n_tasks: int) -> None:
    proofs = (model.certificates_, model.statuses_, model.traces_)
    if any(isinstance(proof, Unproved) for proof in proofs):
        _require(all(isinstance(proof, Unproved) for proof in proofs), "some proofs are missing")
        return
    _require(all(isinstance(proof, list) for proof in proofs), "proofs must be lists")
    # partial_fit certifies the tasks that had samples.
    n = len(model.certificates_)
    _require(0 < n <= n_tasks, f"{n} certificates for {n_tasks} tasks")
    _require({len(proof) for proof in proofs} == {n}, "certificates, statuses and traces differ")
    kinds: tuple[tuple[Any, str], ...] = (
        (CERTIFICATES, "certificate"),
        (Status, "status"),
        ((Trace, type(None)), "trace"),
    )
    for proof, (kind, name) in zip(proofs, kinds, strict=True):
        _require(all(isinstance(each, kind) for each in proof), f"a {name} has another type")
    of_one_kind = len({type(each) for each in model.certificates_}) == 1
    _require(of_one_kind, "certificates are of several kinds")


def _check_counts(model: ModelLike) -> None:
    for name in ("n_iter_", "n_updates_", "fit_status_"):
        value = vars(model).get(name, 0)
        if isinstance(value, np.ndarray):
            _check_indices(name, value)
        else:
            _require(_is_count(value), f"{name} is {value!r:.50}")
    for name in ("separates_", "refuted_"):
        value = vars(model).get(name, False)
        _require(isinstance(value, bool | np.bool_), f"{name} is {value!r:.50}")


def _check_planes(model: ModelLike, sizes: _Sizes) -> None:
    shape, n_tasks = (sizes.planes, model.n_features_in_), sizes.tasks
    updates = model._updates_of_tasks
    good = isinstance(updates, list) and all(_is_count(u) for u in updates)
    _require(good and len(updates) == n_tasks, f"updates of {n_tasks} tasks are {updates!r:.50}")
    if isinstance(model, LinearSVC):
        _check_linear_machine(model, shape, sizes.planes)
    else:
        _check_numbers("coef_", model.coef_, shape, largest=LIMITS.largest_weight)
    if isinstance(model, HoKashyap):
        for name in ("multipliers_", "margins_"):
            arrays = getattr(model, name)
            _require(isinstance(arrays, list), f"{name} must be a list")
            _require(len(arrays) == n_tasks, f"{len(arrays)} {name} for {n_tasks} tasks")
            for array in arrays:
                if array is not None:
                    _check_numbers(name, array, (np.size(array),))


def _check_linear_machine(model: ModelLike, shape: tuple[int, ...], n_planes: int) -> None:
    _check_numbers("coef_", model.coef_, shape, largest=LIMITS.largest_weight)
    _check_shape_fit(model)
    there = [name for name in SUPPORT if name in vars(model)]
    _require(len(there) != 1, f"it has {there} without the other of {SUPPORT}")
    if there:
        _check_support(model.support_, model.shape_fit_[0])
        _check_numbers("dual_coef_", model.dual_coef_, (n_planes, model.support_.size))
    _check_fitted_with(model)


def _check_machine(model: ModelLike, sizes: _Sizes) -> None:
    _check_shape_fit(model)
    _check_expansion(model, sizes.rows, model.shape_fit_[0])
    if is_approximated(model):
        _check_approximation(model, sizes.planes)
    counts = model.n_support_
    _check_indices("n_support_", counts)
    _require(counts.shape == (sizes.classes,), f"n_support_ has shape {counts.shape}")
    total, n_support = int(counts.sum()), model.support_.size
    _require(total == n_support, f"n_support_ must sum to {n_support}, got {total}")
    if "class_weight_" in vars(model):
        _check_numbers("class_weight_", model.class_weight_, (sizes.classes,))
    there = [name for name in ("probA_", "probB_") if name in vars(model)]
    half = len(there) == 1 and isinstance(model, CertifiedClassifier)
    _require(not half, "half of the sigmoids are missing")
    for name in there:
        _check_numbers(name, getattr(model, name), (sizes.tasks,))
    if isinstance(model.certificates_, Unproved):
        return
    if hasattr(model, "C"):
        _check_fitted_with(model)
    if isinstance(model, NuSVR):
        _require(_is_width(model.epsilon_), f"epsilon_ is {model.epsilon_!r:.50}")


def _check_approximation(model: ModelLike, n_planes: int) -> None:
    """Check a map to features of a kernel, and the planes in their space."""
    _require(model.support_.size == 0, "it has support vectors and features of its kernel")
    there = {name for name in APPROXIMATION if name in vars(model)}
    parts = {"landmarks_", "normalization_"}, {"frequencies_", "offsets_"}
    known = [each for each in parts if there == each | {"feature_coef_", "kernel_error_"}]
    _require(known, f"the features of its kernel have the parts {sorted(there)}")
    W, d = np.asarray(model.feature_coef_), model.n_features_in_
    _require(W.ndim == 2 and W.shape[1], f"feature_coef_ has shape {W.shape}")
    m, largest = W.shape[1], LIMITS.largest_weight
    _check_numbers("feature_coef_", W, (n_planes, m), largest=largest)
    _check_numbers("kernel_error_", model.kernel_error_, (2,))
    if "landmarks_" in there:
        n = model.landmarks_.shape[0]
        _check_numbers("landmarks_", model.landmarks_, (n, d), largest=LARGEST_VALUE)
        _check_numbers("normalization_", model.normalization_, (n, m), largest=largest)
    else:
        _check_numbers("frequencies_", model.frequencies_, (d, m), largest=LARGEST_VALUE)
        _check_numbers("offsets_", model.offsets_, (m,), largest=largest)


def _check_kernel_perceptron(model: ModelLike, n_planes: int) -> None:
    _require(_is_count(model._n_rows), f"it was fitted to {model._n_rows!r:.50} rows")
    _check_expansion(model, n_planes, model._n_rows)
    is_linear = isinstance(model.kernel_, Linear)
    _require((model._linear_coef is None) != is_linear, "planes need a linear kernel")
    if is_linear:
        _check_numbers(
            "coef_",
            model._linear_coef,
            (n_planes, model.n_features_in_),
            largest=LIMITS.largest_weight,
        )


def _check_expansion(model: ModelLike, rows: int, n_fit: int) -> None:
    kernel, given = model.kernel_, isinstance(model.kernel_, Precomputed)
    _require(isinstance(kernel, Kernel), f"kernel_ is {kernel!r:.50}")
    _require(kernel.elementwise or given, f"kernel_ is {kernel!r:.50}, which has no formula")
    pairwise = model.kernel == "precomputed" or isinstance(model.kernel, Precomputed)
    _require(pairwise == given, f"kernel={model.kernel!r:.50} became {kernel!r:.50}")
    support = model.support_
    # −1 where the file of another program does not name the rows.
    foreign = isinstance(model.certificates_, Unproved)
    if not (foreign and not given and bool((np.asarray(support) == -1).all())):
        _check_support(support, n_fit, unique=not foreign)
    _require(np.ndim(support) == 1, f"support_ has shape {np.shape(support)}")
    n_vectors = 0 if given else support.size
    if given:
        _require(
            n_fit == model.n_features_in_, f"{model.n_features_in_} kernel values for {n_fit} rows"
        )
    shape = (n_vectors, model.n_features_in_)
    _check_numbers("support_vectors_", model.support_vectors_, shape, largest=LARGEST_VALUE)
    _check_numbers(
        "dual_coef_", model.dual_coef_, (rows, support.size), largest=LIMITS.largest_weight
    )


def _check_shape_fit(model: ModelLike) -> None:
    shape = model.shape_fit_
    good = isinstance(shape, tuple) and len(shape) == 2 and all(_is_count(size) for size in shape)
    _require(good and shape[1] == model.n_features_in_, f"shape_fit_ is {shape!r:.50}")


def _check_support(support: Any, n_fit: int, *, unique: bool = True) -> None:
    _check_indices("support_", support)
    highest = int(support.max(initial=-1))
    _require(highest < n_fit, f"support_ names row {highest} of {n_fit}")
    _require(not unique or np.unique(support).size == support.size, "support_ names a row twice")


def _check_fitted_with(model: ModelLike) -> None:
    C = model._fitted_with
    _require(isinstance(C, float | int | np.number) and C > 0, f"it was fitted with C={C!r:.50}")


# Preparation -----------------------------------------------------------------------------------


def _check_encoder(model: ColumnEncoder) -> None:
    n, categories, fill = model.n_features_in_, model.categories_, model.fill_
    _require(
        isinstance(categories, list) and len(categories) == n,
        "categories_ must have one entry per column",
    )
    _require(isinstance(fill, list) and len(fill) == n, "fill_ must have one entry per column")
    width = 0
    for words, filling in zip(categories, fill, strict=True):
        kind: Any = (float, int) if words is None else str
        _require(filling is None or isinstance(filling, kind), f"fill_ holds {filling!r:.50}")
        if words is not None:
            good = isinstance(words, list) and all(isinstance(word, str) for word in words)
            _require(good and words, f"categories_ holds {words!r:.50}")
            _require(len(set(words)) == len(words), "categories_ holds a category twice")
        width += 1 if words is None else len(words)
    out = model.n_features_out_
    _require(
        _is_count(out, 1) and out == width, f"n_features_out_ must be {width}, got {out!r:.50}"
    )
    _check_numbers("mean_", model.mean_, (width,))
    _check_numbers("scale_", model.scale_, (width,))
    _require((model.scale_ > 0).all(), "scale_ holds a number that is not positive")
    with np.errstate(all="ignore"):
        _check_scaling(Scaling(model.mean_, 1.0 / model.scale_))


def _check_scaler(model: ModelLike) -> None:
    for name, switch in NEEDED.get(type(model), {}).items():
        wanted = switch is None or getattr(model, switch)
        there = vars(model).get(name) is not None
        _require(there or not wanted, f"{type(model).__name__} has no {name}")
    for name, value in vars(model).items():
        if not name.endswith("_") or name in ("n_features_in_", "feature_names_in_"):
            continue
        if name == "n_samples_seen_" and np.ndim(value) == 0:
            _require(isinstance(value, int | float | np.number), f"{name} is {value!r:.50}")
        elif value is not None:
            _check_numbers(name, value, (model.n_features_in_,), finite=name == "scale_")
    with np.errstate(all="ignore"):
        scaling = scaling_of(model)
        if scaling is not None:
            _check_scaling(scaling)


def _check_scaling(scaling: Scaling) -> None:
    """Refuse factors that overflow and shifts that leave no digits to the data; NaN is allowed."""
    _require(not (np.abs(scaling.factor) > LIMITS.largest_factor).any(), "scale_ is next to 0")
    shift = np.abs(scaling.shift * scaling.factor)
    _require(
        not (shift > LIMITS.largest_shift).any(), f"0 would be scaled to {np.nanmax(shift):.3g}"
    )


# Arrays ----------------------------------------------------------------------------------------


def _is_count(value: Any, least: int = 0) -> bool:
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    return whole and bool(value >= least)


def _is_width(value: Any) -> bool:
    return isinstance(value, float) and 0.0 <= value < np.inf


def _check_indices(name: str, value: Any) -> None:
    good = isinstance(value, np.ndarray) and value.ndim == 1 and value.dtype.kind in "iu"
    _require(good, f"{name} must be a vector of integers, got {value!r:.50}")
    _require(not value.size or value.min() >= 0, f"{name} holds {value.min(initial=0)}")


def _check_numbers(
    name: str,
    value: Any,
    shape: tuple[int, ...],
    *,
    finite: bool = True,
    largest: float = np.inf,
) -> None:
    if isinstance(value, VectorOnDevice):  # of a model that was fitted on a cluster
        value = value.host
    is_array = isinstance(value, np.ndarray) or sparse.issparse(value)
    _require(
        is_array and value.dtype.kind in "fiu",
        f"{name} must be an array of numbers, got {value!r:.50}",
    )
    _require(value.shape == shape, f"{name} must have shape {shape}, got {value.shape}")
    if finite:
        numbers: NDArray[Any] = value.data if sparse.issparse(value) else value
        _require(np.isfinite(numbers).all(), f"{name} holds a number that is not finite")
        size = max(float(numbers.max(initial=0)), -float(numbers.min(initial=0)))
        _require(size <= largest, f"{name} must be at most {largest:g}, got {size:.3g}")
