"""Models as ONNX graphs, computed in float64 from primitive operators.

ai.onnx.ml's SVMClassifier computes in float32 and decides ties in its own way: labels would differ
from ours. Converters are registered with skl2onnx, which puts them together with scikit-learn's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, Normalizer

from ..arrays import Floats
from ..estimators.column_encoder import ColumnEncoder
from ..estimators.kernel_perceptron import KernelPerceptron
from ..estimators.least_squares import HoKashyap, Pseudoinverse
from ..estimators.linear_svc import LinearSVC
from ..estimators.perceptron import LMS, Perceptron, Pocket, Relaxation
from ..estimators.svc import SVC, NuSVC
from ..kernels import RBF, Kernel, Linear, Polynomial, Product, Scaled, Sigmoid, Sum
from ..multiclass import OneVsOne
from .description import Expansion, Machine, Planes, describe, unwrap
from .errors import PathLike
from .writing import write_bytes

if TYPE_CHECKING:
    import onnx

__all__ = ["register_onnx", "save_onnx", "to_onnx"]

CLASSIFIERS = (
    Perceptron, Pocket, Relaxation, LMS, Pseudoinverse, HoKashyap, LinearSVC, KernelPerceptron,
    SVC, NuSVC,
)  # fmt: skip
# Operator sets that programs of several years read.
OPSETS = {"": 18, "ai.onnx.ml": 3}
# Bytes of a protocol buffer, of which a graph is one.
LARGEST = 2**31 - 2**20


def to_onnx(model: Any, *, dtype: Literal["float64", "float32"] = "float64") -> onnx.ModelProto:
    """Return a model as an ONNX graph that says the same labels and scores.

    Inputs are one tensor ``X`` of shape (n, n_features); or, where a `ColumnEncoder` has columns of
    words, one of shape (n, 1) for each column, under its name (with _ where an output is called
    so), strings for words. Where missing
    values are filled, NaN and the empty string are missing. Outputs are ``label``, int64 or string,
    and ``scores``, what decision_function returns.

    A kernel model contains rows of its training data.

    Parameters
    ----------
    model : classifier of maxmargin, or a Pipeline of scalers, `ColumnEncoder` and one
    dtype : {"float64", "float32"}
        Type of the numbers that go in; all is computed in float64.

    Raises
    ------
    TypeError
        For a kernel that is no formula (precomputed, or the caller's own function).
    ImportError
        Without skl2onnx: ``pip install "maxmargin[onnx]"``.
    """
    register_onnx()
    from skl2onnx import convert_sklearn

    if dtype not in ("float64", "float32"):
        raise ValueError(f"dtype={dtype!r} is none: pass 'float64' or 'float32'.")
    steps, machine = unwrap(model)
    for step in steps:
        _refuse_step(step)
    first = steps[0] if steps else machine
    names, types = _inputs(first, dtype)
    if dtype == "float32" and len(names) == 1:
        steps = [_cast_first(), *steps]
    whole = Pipeline([(f"step{k}", step) for k, step in enumerate([*steps, machine])])
    graph = convert_sklearn(
        whole,
        name=type(machine).__name__,
        # skl2onnx makes identifiers of names: columns get theirs in the end.
        initial_types=[(f"input{k}", each) for k, each in enumerate(types)],
        target_opset=OPSETS,
        # skl2onnx's own divides rows of zeros by zero.
        custom_conversion_functions={Normalizer: _convert_normalizer},
        custom_shape_calculators={Normalizer: _set_normalized_type},
    )
    _name_inputs(graph.graph, names)
    return graph  # type: ignore[no-any-return]


def save_onnx(
    model: Any, path: PathLike, *, dtype: Literal["float64", "float32"] = "float64"
) -> None:
    """Write a model as ONNX; see `to_onnx`. The write is atomic."""
    write_bytes(path, to_onnx(model, dtype=dtype).SerializeToString())


def register_onnx() -> None:
    """Teach skl2onnx the classifiers of maxmargin and `ColumnEncoder`.

    ``skl2onnx.to_onnx(make_pipeline(StandardScaler(), maxmargin.SVC()).fit(X, y), X)`` then works,
    with the outputs ``label`` and ``scores``. Doing it twice does no harm.
    """
    try:
        from skl2onnx import update_registered_converter
    except ImportError as error:
        raise ImportError(
            'Export to ONNX needs skl2onnx, which is not installed: pip install "maxmargin[onnx]", '
            'or in a clone of the repository pip install ".[onnx]"'
        ) from error
    for estimator in CLASSIFIERS:
        update_registered_converter(
            estimator,
            f"Maxmargin{estimator.__name__}",
            _set_output_types,
            _convert_classifier,
            parser=_parse_classifier,
            # skl2onnx asks every classifier for it; scores are no probabilities to make a map of.
            options={"zipmap": [False, True]},
        )
    update_registered_converter(
        ColumnEncoder,
        "MaxmarginColumnEncoder",
        _set_encoded_type,
        _convert_encoder,
        parser=_parse_encoder,
    )


def _refuse_step(step: Any) -> None:
    if isinstance(step, MaxAbsScaler) and getattr(step, "clip", False):
        raise TypeError("MaxAbsScaler(clip=True) is not exported: use clip=False.")


def _inputs(first: Any, dtype: str) -> tuple[list[str], list[Any]]:
    """Return names and types of what goes in."""
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


# What skl2onnx asks of a converter -----------------------------------------------------------


def _parse_classifier(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    from skl2onnx.common.data_types import DoubleTensorType

    operator = scope.declare_local_operator(f"Maxmargin{type(model).__name__}", model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("label", _label_type(model.classes_)))
    operator.outputs.append(scope.declare_local_variable("scores", DoubleTensorType()))
    return operator.outputs


def _set_output_types(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    machine = describe(operator.raw_operator)
    operator.outputs[0].type = _label_type(machine.classes)
    shape: list[int | None] = [None]
    if machine.scheme != "binary":
        shape.append(machine.scores.b.size if machine.shows_pairs else len(machine.classes))
    operator.outputs[1].type = DoubleTensorType(shape)


def _label_type(classes: NDArray[Any]) -> Any:
    from skl2onnx.common.data_types import Int64TensorType, StringTensorType

    return (StringTensorType if _labels(classes).dtype == object else Int64TensorType)([None])


def _labels(classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels as int64, also whole numbers of other types, or as words."""
    labels = classes.tolist()
    if all(isinstance(label, str) for label in labels):
        return np.array(labels, dtype=object)
    return np.array([int(label) for label in labels], dtype=np.int64)


def _convert_classifier(scope: Any, operator: Any, container: Any) -> None:
    graph = _Graph(scope, container)
    machine = describe(operator.raw_operator)
    X = graph.features(operator.inputs)
    scores = _score_nodes(graph, machine.scores, X)
    label, shown = (output.full_name for output in operator.outputs)
    _LABELS[machine.scheme](graph, machine, scores, label, shown)


def _parse_encoder(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
    from skl2onnx.common.data_types import DoubleTensorType

    operator = scope.declare_local_operator("MaxmarginColumnEncoder", model)
    operator.inputs = inputs
    operator.outputs.append(scope.declare_local_variable("features", DoubleTensorType()))
    return operator.outputs


def _set_encoded_type(operator: Any) -> None:
    from skl2onnx.common.data_types import DoubleTensorType

    operator.outputs[0].type = DoubleTensorType([None, operator.raw_operator.n_features_out_])


def _convert_encoder(scope: Any, operator: Any, container: Any) -> None:
    encoder, graph = operator.raw_operator, _Graph(scope, container)
    names = [variable.full_name for variable in operator.inputs]
    if all(words is None for words in encoder.categories_):
        expanded = _filled(graph, graph.features(operator.inputs), encoder.fill_)
    elif len(names) != encoder.n_features_in_:
        raise ValueError(
            f"A ColumnEncoder of words takes {encoder.n_features_in_} inputs, one a column, not "
            f"{len(names)}: use maxmargin.persistence.to_onnx, or initial_types of as many."
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


def _filled(graph: _Graph, column: str, fill: list[float | None]) -> str:
    """Return numbers with missing ones filled."""
    if all(value is None for value in fill):
        return column
    values = np.array([np.nan if value is None else value for value in fill], dtype=np.float64)
    return graph.node("Where", graph.node("IsNaN", column), graph.constant(values), column)


def _one_hot(graph: _Graph, column: str, words: list[str], fill: str | None) -> str:
    """Return the 0/1 columns of words; no text at all is the word that fills."""
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
    graph, norm = _Graph(scope, container), operator.raw_operator.norm
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


# Graphs --------------------------------------------------------------------------------------


class _Graph:
    """Nodes and constants of a graph in the making."""

    def __init__(self, scope: Any, container: Any) -> None:
        self.scope, self.container = scope, container

    def node(
        self,
        kind: str,
        *inputs: str,
        output: str | None = None,
        op_domain: str = "",
        **options: Any,
    ) -> str:
        """Add an operator; return the name of what it computes."""
        output = output or self.scope.get_unique_variable_name(kind.lower())
        self.container.add_node(
            kind, list(inputs), [output], op_domain=op_domain,
            name=self.scope.get_unique_operator_name(kind), **options,
        )  # fmt: skip
        return output

    def constant(self, values: NDArray[Any]) -> str:
        """Add numbers or words; return their name."""
        from onnx import TensorProto, numpy_helper

        name: str = self.scope.get_unique_variable_name("constant")
        if values.dtype.kind == "O":
            self.container.add_initializer(
                name, TensorProto.STRING, list(values.shape), values.tolist()
            )
        else:
            tensor = numpy_helper.from_array(np.ascontiguousarray(values))
            self.container.add_initializer(name, None, None, tensor)
        return name

    def number(self, value: float) -> str:
        return self.constant(np.array([value], dtype=np.float64))

    def double(self, name: str) -> str:
        from onnx import TensorProto

        return self.node("Cast", name, to=TensorProto.DOUBLE)

    def features(self, inputs: Any) -> str:
        """Return all inputs, side by side, in float64."""
        parts = [self.double(variable.full_name) for variable in inputs]
        return parts[0] if len(parts) == 1 else self.node("Concat", *parts, axis=1)

    def axis(self) -> str:
        return self.constant(np.array([1], dtype=np.int64))

    def sum_of(self, X: str) -> str:
        """Return the sum of every row, (n, 1)."""
        return self.node("ReduceSum", X, self.axis(), keepdims=1)

    def sum_of_squares(self, X: str) -> str:
        """Return ‖x‖² of every row, (n, 1)."""
        return self.sum_of(self.node("Mul", X, X))

    def product(self, X: str, weights: Floats) -> str:
        """Return X @ weights.

        onnxruntime takes a factor before or after a product into it, in float32: one column, which
        may come from a division by one number, is multiplied another way.
        """
        kind = "MatMul" if len(weights) > 1 else "Mul"
        return self.node(kind, X, self.constant(np.asarray(weights, dtype=np.float64)))


def _score_nodes(graph: _Graph, scores: Planes | Expansion, X: str) -> str:
    """Return g of every plane, (n, n_planes)."""
    if isinstance(scores, Planes):
        product = graph.product(X, scores.w.T)
    else:
        kernel, weights = scores.kernel, scores.coefficients
        while isinstance(kernel, Scaled):
            weights, kernel = kernel.factor * weights, kernel.kernel
        values = _KernelNodes(graph, X, _dense(scores.vectors)).of(kernel)
        product = graph.product(values, weights.T)
    return graph.node("Add", product, graph.constant(scores.b))


def _dense(vectors: Any) -> Floats:
    size = 8 * vectors.shape[0] * vectors.shape[1]
    if size > LARGEST:
        raise ValueError(
            f"{vectors.shape[0]} support vectors of {vectors.shape[1]} features take {size} bytes, "
            "more than an ONNX file holds: use a linear kernel, or fewer features."
        )
    rows = vectors.toarray() if sparse.issparse(vectors) else vectors
    return np.asarray(rows, dtype=np.float64)


class _KernelNodes:
    """K(x, z) of every row and support vector, (n, n_support)."""

    def __init__(self, graph: _Graph, X: str, vectors: Floats) -> None:
        self.graph, self.X, self.vectors = graph, X, vectors

    def of(self, kernel: Kernel) -> str:
        """Return the name of the kernel's values."""
        for kind, method in self._methods.items():
            if isinstance(kernel, kind):
                return method(self, kernel)  # type: ignore[operator, no-any-return]
        raise TypeError(
            f"{kernel!r} is no formula of x and z, and cannot be written as ONNX: use linear, "
            "poly, rbf, sigmoid, or sums and products of them."
        )

    def _dot(self, factor: float) -> str:
        """Return factor·⟨x, z⟩; the factor is in z, where it stays in float64."""
        return self.graph.product(self.X, factor * self.vectors.T)

    def _linear(self, kernel: Linear) -> str:
        return self._dot(1.0)

    def _affine(self, gamma: float, coef0: float) -> str:
        return self.graph.node("Add", self._dot(gamma), self.graph.number(coef0))

    def _polynomial(self, kernel: Polynomial) -> str:
        base = self._affine(kernel.gamma, kernel.coef0)
        return self.graph.node("Pow", base, self.graph.number(float(kernel.degree)))

    def _sigmoid(self, kernel: Sigmoid) -> str:
        return self.graph.node("Tanh", self._affine(kernel.gamma, kernel.coef0))

    def _rbf(self, kernel: RBF) -> str:
        # −½‖x − z‖² = ⟨x,z⟩ − ½‖x‖² − ½‖z‖², about the middle of the z, where little cancels.
        graph, middle = self.graph, self.vectors.mean(axis=0) if len(self.vectors) else 0.0
        z = self.vectors - middle
        x = graph.node("Sub", self.X, graph.constant(np.broadcast_to(middle, z.shape[1:]).copy()))
        dot = graph.product(x, z.T)
        half = graph.node("Mul", graph.sum_of_squares(x), graph.number(0.5))
        half_z = graph.constant(0.5 * np.einsum("ij,ij->i", z, z))
        distance = graph.node("Sub", graph.node("Sub", dot, half), half_z)
        distance = graph.node("Min", distance, graph.number(0.0))
        return graph.node("Exp", graph.node("Mul", distance, graph.number(2.0 * kernel.gamma)))

    def _joined(self, kernel: Sum | Product) -> str:
        kind = "Add" if isinstance(kernel, Sum) else "Mul"
        first, *others = (self.of(part) for part in kernel.parts)
        for other in others:
            first = self.graph.node(kind, first, other)
        return first

    def _scaled(self, kernel: Scaled) -> str:
        if isinstance(kernel.kernel, Linear):
            return self._dot(kernel.factor)
        return self.graph.node("Mul", self.of(kernel.kernel), self.graph.number(kernel.factor))

    _methods = {  # noqa: RUF012
        Linear: _linear,
        Polynomial: _polynomial,
        RBF: _rbf,
        Sigmoid: _sigmoid,
        Sum: _joined,
        Product: _joined,
        Scaled: _scaled,
    }


# From scores to labels -----------------------------------------------------------------------


def _of_sign(graph: _Graph, machine: Machine, scores: str, label: str, shown: str) -> None:
    """g ≥ 0 is the second class."""
    flat = graph.node("Reshape", scores, graph.constant(np.array([-1])), output=shown)
    _choose(graph, machine, _cast(graph, _not_negative(graph, flat), "INT64"), label)


def _of_largest(graph: _Graph, machine: Machine, scores: str, label: str, shown: str) -> None:
    """The class of the largest score."""
    graph.node("Identity", scores, output=shown)
    _choose(graph, machine, graph.node("ArgMax", scores, axis=1, keepdims=0), label)


def _of_pairs(graph: _Graph, machine: Machine, scores: str, label: str, shown: str) -> None:
    """Votes, or votes and a fraction from the scores (`OneVsOne.confidences`)."""
    for_first, for_second = _ends(len(machine.classes))
    votes = _votes(graph, _not_negative(graph, scores), for_first, for_second)
    sums = graph.node("MatMul", scores, graph.constant(for_first - for_second))
    size = graph.node("Add", graph.node("Abs", sums), graph.number(1.0))
    fraction = graph.node("Div", sums, graph.node("Mul", size, graph.number(3.0)))
    confidences = graph.node("Add", votes, fraction)
    graph.node("Identity", scores if machine.shows_pairs else confidences, output=shown)
    if machine.by_votes:
        won = graph.node("Greater", scores, graph.number(0.0))
        confidences = _votes(graph, won, for_first, for_second)
    _choose(graph, machine, graph.node("ArgMax", confidences, axis=1, keepdims=0), label)


_LABELS = {"binary": _of_sign, "ovr": _of_largest, "joint": _of_largest, "ovo": _of_pairs}


def _ends(n_classes: int) -> tuple[Floats, Floats]:
    """Return which class each pair votes for, (n_pairs, n_classes): its first, its second."""
    pairs = np.array(OneVsOne.pairs(n_classes))
    identity = np.eye(n_classes)
    return identity[pairs[:, 0]], identity[pairs[:, 1]]


def _votes(graph: _Graph, won: str, for_first: Floats, for_second: Floats) -> str:
    """Return Σ over pairs of (won ? first : second) = Σ second + won·(first − second)."""
    moved = graph.node(
        "MatMul", _cast(graph, won, "DOUBLE"), graph.constant(for_first - for_second)
    )
    return graph.node("Add", moved, graph.constant(for_second.sum(axis=0)))


def _not_negative(graph: _Graph, scores: str) -> str:
    return graph.node("Not", graph.node("Less", scores, graph.number(0.0)))


def _cast(graph: _Graph, name: str, kind: str) -> str:
    from onnx import TensorProto

    return graph.node("Cast", name, to=getattr(TensorProto, kind))


def _choose(graph: _Graph, machine: Machine, index: str, label: str) -> None:
    labels = graph.constant(_labels(machine.classes))
    graph.node("Gather", labels, index, output=label, axis=0)
