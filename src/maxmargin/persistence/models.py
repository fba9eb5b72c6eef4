"""Estimators as records of parameters and fitted attributes, for a closed list of classes."""

from __future__ import annotations

from inspect import signature
from typing import Any

import numpy as np
from sklearn.model_selection._search import BaseSearchCV
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)

from ..diagnostics.fitted_model import ModelLike
from ..estimators import registry
from ..estimators.column_encoder import ColumnEncoder
from ..estimators.least_squares import HoKashyap
from ..estimators.linear_svc import LinearSVC
from ..estimators.linear_svr import LinearSVR
from ..estimators.saved import SUPPORT, Saved
from ..estimators.text_encoder import TextEncoder
from .errors import InconsistentModelError
from .values import JSON, Decoder, Encoder

__all__ = ["ESTIMATORS", "decode_model", "encode_model", "is_fitted"]


SCALER = Saved(("n_features_in_",), ("feature_names_in_", "scale_", "n_samples_seen_"))

ESTIMATORS: dict[type, Saved] = {
    **{estimator: estimator._saved for estimator in registry.estimators()},
    ColumnEncoder: Saved(
        ("n_features_in_", "categories_", "fill_", "mean_", "scale_", "n_features_out_"),
        ("feature_names_in_",),
    ),
    TextEncoder: Saved(
        (
            "n_features_in_",
            "text_columns_",
            "categories_",
            "fill_",
            "mean_",
            "scale_",
            "n_features_out_",
            "vocabulary_",
            "idf_",
        ),
        ("feature_names_in_",),
    ),
    StandardScaler: Saved(SCALER.always, (*SCALER.sometimes, "mean_", "var_")),
    MinMaxScaler: Saved(
        SCALER.always, (*SCALER.sometimes, "min_", "data_min_", "data_max_", "data_range_")
    ),
    MaxAbsScaler: Saved(SCALER.always, (*SCALER.sometimes, "max_abs_")),
    RobustScaler: Saved(SCALER.always, (*SCALER.sometimes, "center_")),
    Normalizer: SCALER,
}
BY_NAME = {estimator.__name__: estimator for estimator in ESTIMATORS}
# Numbers that belong to training rows, of a linear model, up to which a file keeps them.
SMALL_DUAL = 4096
# Parameters that hold code or folders are not saved.
UNSAVED = {"callback", "memory"}
SKIPPED = (None, "passthrough")


def is_fitted(model: ModelLike) -> bool:
    """Return whether an estimator other than a pipeline has been fitted."""
    return "n_features_in_" in vars(model)


def encode_model(model: ModelLike, encoder: Encoder, *, keep_dual: bool = False) -> JSON:
    """Return a record of an estimator or a pipeline of them.

    Numbers of a linear model that belong to training rows are left out where they are many, unless
    ``keep_dual`` is given.
    """
    if type(model) is Pipeline:
        steps = [
            [name, step if step in SKIPPED else encode_model(step, encoder, keep_dual=keep_dual)]
            for name, step in model.steps
        ]
        return {"class": "Pipeline", "steps": steps, "parameters": _parameters(model, encoder)}
    if type(model) not in ESTIMATORS:
        raise _unsupported(model)
    fitted = None
    if is_fitted(model):
        kept, owner = ESTIMATORS[type(model)], type(model).__name__
        values = vars(model) if keep_dual else _without_rows(model)
        fitted = {
            name: encoder.encode(values[name], f"{owner}.{name}")
            for name in (*kept.always, *kept.sometimes)
            if name in values
        }
    name = type(model).__name__
    return {"class": name, "parameters": _parameters(model, encoder), "fitted": fitted}


def _without_rows(model: ModelLike) -> dict[str, Any]:
    """Return the attributes of a model without what a linear one has of its many training rows."""
    values = dict(vars(model))
    if isinstance(model, (LinearSVC, LinearSVR)):
        if np.size(values.get("dual_coef_", ())) > SMALL_DUAL:
            values = {name: value for name, value in values.items() if name not in SUPPORT}
    elif isinstance(model, HoKashyap):
        for name in ("margins_", "multipliers_"):
            if sum(map(np.size, values.get(name, ()))) > SMALL_DUAL:
                values[name] = [None] * len(values[name])
    return values


def _parameters(model: ModelLike, encoder: Encoder) -> dict[str, JSON]:
    owner = type(model).__name__
    return {
        name: encoder.encode(_kept(name, getattr(model, name)), f"{owner}({name})")
        for name in _names(type(model))
    }


def _kept(name: str, value: Any) -> Any:
    """Return a parameter as it is saved: None for code, folders and random states."""
    is_state = isinstance(value, np.random.RandomState | np.random.Generator)
    return None if name in UNSAVED or is_state else value


def _names(estimator: ModelLike) -> list[str]:
    """Return the names of the parameters that a record holds."""
    return [name for name in estimator._get_param_names() if name != "steps"]


def _unsupported(model: ModelLike) -> TypeError:
    what = f"{type(model).__module__.partition('.')[0]}'s {type(model).__name__}"
    if isinstance(model, type):
        return TypeError(f"{model.__name__} is a class: pass a model, {model.__name__}().")
    if isinstance(model, BaseSearchCV) or hasattr(model, "best_estimator_"):
        return TypeError(f"{what} cannot be saved: save its best_estimator_.")
    known = ", ".join(BY_NAME)
    return TypeError(
        f"{what} cannot be saved: the model must be one of {known}, or a Pipeline of them. Other "
        "classes would need code in the file."
    )


def decode_model(record: JSON, decoder: Decoder, depth: int = 0) -> Any:
    """Return the estimator of a record, with its parameters and attributes set."""
    if not isinstance(record, dict) or depth > 8:
        raise InconsistentModelError(f"the model must be a record, got {record!r:.50}")
    name = record.get("class")
    if name == "Pipeline":
        return _decode_pipeline(record, decoder, depth)
    if not isinstance(name, str) or name not in BY_NAME:
        raise InconsistentModelError(f"the class {name!r:.50} of the model is unknown")
    _check_names(name, record, {"class", "parameters", "fitted"})
    model = _with_parameters(BY_NAME[name], record["parameters"], decoder)
    model._validate_params()
    if record["fitted"] is not None:
        _set_fitted(model, record["fitted"], decoder)
    return model


def _decode_pipeline(record: dict[str, JSON], decoder: Decoder, depth: int) -> Pipeline:
    _check_names("Pipeline", record, {"class", "parameters", "steps"})
    model = _with_parameters(Pipeline, record["parameters"], decoder)
    model.steps = []
    for name, step in record["steps"]:
        if not isinstance(name, str):
            raise InconsistentModelError(f"the name of a step must be text, got {name!r:.50}")
        passed = step in SKIPPED if not isinstance(step, dict) else False
        model.steps.append((name, step if passed else decode_model(step, decoder, depth + 1)))
    model._validate_params()
    model._validate_steps()
    return model


def _with_parameters(estimator: ModelLike, given: JSON, decoder: Decoder) -> Any:
    """Return an estimator with exactly these parameters."""
    owner, expected = estimator.__name__, _names(estimator)
    ours = estimator.__module__.startswith(__name__.partition(".")[0] + ".")
    kept = ESTIMATORS.get(estimator)
    added = kept.added if kept else ()
    if not isinstance(given, dict) or set(given) - set(expected):
        raise InconsistentModelError(f"{owner} has unknown parameters, {given!r:.100}")
    model = estimator.__new__(estimator)
    for name in expected:
        if name in given:
            value = decoder.decode(given[name])
        elif ours and name not in added:
            raise InconsistentModelError(f"the parameter {name} of {owner} is missing")
        else:  # added by a later version
            value = signature(estimator).parameters[name].default
        if name in UNSAVED and value is not None:
            raise InconsistentModelError(f"{owner} has {name}={value!r:.50}, which is never saved")
        setattr(model, name, value)
    return model


def _set_fitted(model: ModelLike, given: JSON, decoder: Decoder) -> None:
    kept, owner = ESTIMATORS[type(model)], type(model).__name__
    if not isinstance(given, dict) or set(given) - {*kept.always, *kept.sometimes}:
        raise InconsistentModelError(f"{owner} has unknown attributes, {given!r:.100}")
    missing = set(kept.always) - set(given)
    if missing:
        raise InconsistentModelError(f"{owner} has no {', '.join(sorted(missing))}")
    for name, value in given.items():
        setattr(model, name, decoder.decode(value))
    for name in kept.forgotten:
        setattr(model, name, None)


def _check_names(owner: str, record: dict[str, JSON], expected: set[str]) -> None:
    if set(record) != expected:
        raise InconsistentModelError(
            f"{owner} must have the parts {sorted(expected)}, got {sorted(record)!r:.100}"
        )
