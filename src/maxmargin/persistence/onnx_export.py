"""Models as ONNX graphs, computed in float64 from primitive operators.

ai.onnx.ml's SVMClassifier computes in float32 and breaks ties differently, so that labels would
differ. Converters are registered with skl2onnx, which combines them with scikit-learn's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer

from ..diagnostics.fitted_model import FittedModel, ModelLike
from ..estimators.base import CertifiedClassifier
from ..estimators.column_encoder import ColumnEncoder
from ..estimators.registry import estimators
from ..estimators.text_encoder import TextEncoder
from .errors import PathLike
from .onnx_graph import Graph, label_values, prediction_nodes, score_nodes
from .writing import write_bytes

if TYPE_CHECKING:
    import onnx

__all__ = ["register_onnx", "save_onnx", "to_onnx"]

# Operator sets that older programs read, too.
OPSETS = {"": 18, "ai.onnx.ml": 3}


def to_onnx(
    model: ModelLike, *, dtype: Literal["float64", "float32"] = "float64"
) -> onnx.ModelProto:
    """Return a model as an ONNX graph that computes the same labels and scores, or targets.

    The input is one tensor ``X`` of shape (n, n_features). Where a `ColumnEncoder` has columns of
    categories, there is one input of shape (n, 1) per column instead, with its name (and _ where an
    output has that name); categories are strings. Where missing values are filled, NaN and the
    empty string are missing. Outputs are ``label``, int64 or string, and ``scores``, the values of
    decision_function; that of a regression is ``variable`` of shape (n, 1), as of skl2onnx.

    A kernel model contains rows of its training data.

    Parameters
    ----------
    model : estimator of maxmargin, or a Pipeline of scalers, `ColumnEncoder` and one
        A fitted model.
    dtype : {"float64", "float32"}, default="float64"
        Type of the input; all is computed in float64.

    Returns
    -------
    onnx.ModelProto
        The graph.

    Raises
    ------
    TypeError
        For a kernel without a formula (precomputed, or a function of the caller).
    ImportError
        Without skl2onnx: ``pip install "maxmargin[onnx]"``.

    See Also
    --------
    save_onnx : Write the graph to a file.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> graph = mm.persistence.to_onnx(mm.SVC().fit(X, y)).graph  # doctest: +SKIP
    >>> [output.name for output in graph.output]  # doctest: +SKIP
    ['label', 'scores']
    """
    register_onnx()
    from skl2onnx import convert_sklearn

    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype must be 'float64' or 'float32', got {dtype!r}.")
    fitted = FittedModel(model)
    fitted.require_fitted_steps()
    steps, last = fitted.steps, fitted.classifier
    for step in steps:
        _refuse_step(step)
    first = steps[0] if steps else last
    names, types = _inputs(first, dtype)
    if dtype == "float32" and len(names) == 1:
        steps = [_cast_first(), *steps]
    whole = Pipeline([(f"step{k}", step) for k, step in enumerate([*steps, last])])
    graph = convert_sklearn(
        whole,
        name=fitted.name,
        # skl2onnx changes names to identifiers; inputs are renamed at the end.
        initial_types=[(f"input{k}", each) for k, each in enumerate(types)],
        target_opset=OPSETS,
        # The converter of skl2onnx divides rows of zeros by zero.
        custom_conversion_functions={Normalizer: _convert_normalizer},
        custom_shape_calculators={Normalizer: _set_normalized_type},
    )
    _name_inputs(graph.graph, names)
    return graph  # type: ignore[no-any-return]


def save_onnx(
    model: ModelLike, path: PathLike, *, dtype: Literal["float64", "float32"] = "float64"
) -> None:
    """Write a model as ONNX; the write is atomic.

    Parameters
    ----------
    model : estimator of maxmargin, or a Pipeline of scalers, `ColumnEncoder` and one
        A fitted model.
    path : str or path
        The file.
    dtype : {"float64", "float32"}, default="float64"
        Type of the input.

    See Also
    --------
    to_onnx : The graph, its inputs and outputs.

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> mm.persistence.save_onnx(mm.SVC().fit(X, y), "six.onnx")  # doctest: +SKIP
    """
    write_bytes(path, to_onnx(model, dtype=dtype).SerializeToString())


def register_onnx() -> None:
    """Register the estimators of maxmargin and `ColumnEncoder` with skl2onnx.

    ``skl2onnx.to_onnx(make_pipeline(StandardScaler(), maxmargin.SVC()).fit(X, y), X)`` then works,
    with the outputs ``label`` and ``scores``, or ``variable`` of regressions. A second call changes
    nothing.

    Raises
    ------
    ImportError
        Without skl2onnx: ``pip install "maxmargin[onnx]"``.

    Examples
    --------
    >>> import maxmargin as mm
    >>> mm.persistence.register_onnx()  # doctest: +SKIP
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError(
            'Export to ONNX needs skl2onnx, which is not installed: pip install "maxmargin[onnx]", '
            'or in a clone of the repository pip install ".[onnx]"'
        ) from error
    for estimator in estimators():
        # skl2onnx expects this option of every classifier; scores are not probabilities.
        options = {"zipmap": [False, True]} if issubclass(estimator, CertifiedClassifier) else None
        update_registered_converter(
            estimator,
            f"Maxmargin{estimator.__name__}",
            _set_output_types,
            _convert_estimator,
            parser=_parse_estimator,
            options=options,
        )
    update_registered_converter(
        ColumnEncoder,
        "MaxmarginColumnEncoder",
        _set_encoded_type,
        _convert_encoder,
        parser=_parse_encoder,
    )


def _refuse_step(step: Any) -> None:
    if isinstance(step, TextEncoder):
        raise TypeError("TextEncoder cannot be exported to ONNX: export the estimator, model[-1].")
    if isinstance(step, MaxAbsScaler) and getattr(step, "clip", False):
        raise TypeError("MaxAbsScaler(clip=True) cannot be exported: use clip=False.")


def _inputs(first: Any, dtype: str) -> tuple[list[str], list[Any]]:
    """Return names and types of the inputs."""
    from skl2onnx.common.data_types import DoubleTensorType, FloatTensorType, StringTensorType

    number = DoubleTensorType if dtype == "float64" else FloatTensorType
    n = first.n_features_in_
    if not isinstance(first, ColumnEncoder) or all(c is None for c in first.categories_):
        return ["X"], [number([None, n])]
    names = getattr(first, "feature_names_in_", [f"x{k}" for k in range(n)])
    kinds = [number if words is None else StringTensorType for words in first.categories_]
    return [str(name) for name in names], [kind([None, 1]) for kind in kinds]


def _name_inputs(graph: Any, names: list[str]) -> None:
    taken = {name for node in graph.node for name in node.output}
    taken |= {constant.name for constant in graph.initializer}
    new: dict[str, str] = {}
    for entry, name in zip(graph.input, names, strict=True):
        while name in taken:
            name += "_"
        taken.add(name)
        new[entry.name], entry.name = name, name
    for node in graph.node:
        node.input[:] = [new.get(name, name) for name in node.input]


def _cast_first() -> Any:
    from skl2onnx.sklapi import CastTransformer

    return CastTransformer(dtype=np.float64)


# Converters ----------------------------------------------------------------------------------


def _parse_estimator(scope: Any, model: ModelLike, inputs: Any, custom_parsers: Any = None) -> Any:
    operator = scope.declare_local_operator(f"Maxmargin{type(model).__name__}", model)
    operator.inputs = inputs
    for name, kind in _outputs(FittedModel(model)).items():
        operator.outputs.append(scope.declare_local_variable(name, kind))
    return operator.outputs


def _set_output_types(operator: Any) -> None:
    types = _outputs(FittedModel(operator.raw_operator)).values()
    for output, kind in zip(operator.outputs, types, strict=True):
        output.type = kind


def _outputs(fitted: FittedModel) -> dict[str, Any]:
    """Return names and types of what a model predicts."""
    from skl2onnx.common.data_types import DoubleTensorType

    if fitted.has_targets:
        return {"variable": DoubleTensorType([None, 1])}
    shape: list[int | None] = [None]
    if not fitted.is_binary:
        shape.append(len(fitted.plane_names) if fitted.shows_pairs else len(fitted.classes))
    return {"label": _label_type(fitted.classes), "scores": DoubleTensorType(shape)}


def _label_type(classes: NDArray[Any]) -> Any:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    return (StringTensorType if label_values(classes).dtype == object else Int64TensorType)([None])


def _convert_estimator(scope: Any, operator: Any, container: Any) -> None:
    graph = Graph(scope, container)
    fitted = FittedModel(operator.raw_operator)
    X = graph.features(operator.inputs)
    scores = score_nodes(graph, fitted.decision, X)
    prediction_nodes(graph, fitted, scores, *(output.full_name for output in operator.outputs))


def _parse_encoder(scope: Any, model: ModelLike, inputs: Any, custom_parsers: Any = None) -> Any:
    from skl2onnx.common.data_types import DoubleTensorType

    operator = scope.declare_local_operator("MaxmarginColumnEncoder", model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("features", DoubleTensorType()))
    return operator.outputs


def _set_encoded_type(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    operator.outputs[0].type = DoubleTensorType([None, operator.raw_operator.n_features_out_])


def _convert_encoder(scope: Any, operator: Any, container: Any) -> None:
    encoder, graph = operator.raw_operator, Graph(scope, container)
    names = [variable.full_name for variable in operator.inputs]
    if all(words is None for words in encoder.categories_):
        expanded = _filled(graph, graph.features(operator.inputs), encoder.fill_)
    elif len(names) != encoder.n_features_in_:
        raise ValueError(
            f"A ColumnEncoder of categories must have {encoder.n_features_in_} inputs, one per "
            f"column; got {len(names)}: use maxmargin.persistence.to_onnx, or more initial_types."
        )
    else:
        columns = zip(names, encoder.categories_, encoder.fill_, strict=True)
        parts = [
            _filled(graph, graph.double(name), [fill])
            if words is None
            else _one_hot(graph, name, words, fill)
            for name, words, fill in columns
        ]
        expanded = graph.node("Concat", *parts, axis=1)
    centred = graph.node("Sub", expanded, graph.constant(encoder.mean_))
    scale = graph.constant(encoder.scale_)
    graph.node("Div", centred, scale, output=operator.outputs[0].full_name)


def _filled(graph: Graph, column: str, fill: list[float | None]) -> str:
    """Return numbers with missing values filled."""
    if all(value is None for value in fill):
        return column
    values = np.array([np.nan if value is None else value for value in fill], dtype=np.float64)
    return graph.node("Where", graph.node("IsNaN", column), graph.constant(values), column)


def _one_hot(graph: Graph, column: str, words: list[str], fill: str | None) -> str:
    """Return the 0/1 columns of categories; the empty string is the category that fills."""
    known = list(words)
    places = np.eye(len(words))
    if fill is not None and "" not in known:
        known.append("")
        places = np.vstack([places, places[words.index(fill)]])
    hot = graph.node(
        "OneHotEncoder", column, op_domain="ai.onnx.ml", cats_strings=known, zeros=1
    )  # fmt: skip
    flat = graph.node("Reshape", hot, graph.constant(np.array([-1, len(known)])))
    return graph.node("MatMul", graph.double(flat), graph.constant(places))


def _set_normalized_type(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    operator.outputs[0].type = DoubleTensorType([None, operator.raw_operator.n_features_in_])


def _convert_normalizer(scope: Any, operator: Any, container: Any) -> None:
    """x ↦ x/‖x‖, 0 ↦ 0."""
    graph, norm = Graph(scope, container), operator.raw_operator.norm
    X = graph.features(operator.inputs)
    if norm == "l2":
        lengths = graph.node("Sqrt", graph.sum_of_squares(X))
    elif norm == "l1":
        lengths = graph.sum_of(graph.node("Abs", X))
    else:
        lengths = graph.node("ReduceMax", graph.node("Abs", X), graph.axis(), keepdims=1)
    is_zero = graph.node("Equal", lengths, graph.number(0.0))
    lengths = graph.node("Where", is_zero, graph.number(1.0), lengths)
    graph.node("Div", X, lengths, output=operator.outputs[0].full_name)
