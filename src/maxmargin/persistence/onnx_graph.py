"""ONNX nodes of scores and predictions: kernels, planes, votes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays import Floats, dense
from ..diagnostics.fitted_model import FittedModel, KernelExpansion, Planes, Scheme
from ..kernels import RBF, Kernel, Linear, Polynomial, Product, Scaled, Sigmoid, Sum
from ..multiclass import OneVsOne

# A protocol buffer, and so a graph, has at most 2 GiB.
LARGEST_GRAPH_BYTES = 2**31 - 2**20


class Graph:
    """The nodes and constants of a graph under construction."""

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
        """Add an operator; return the name of its output."""
        output = output or self.scope.get_unique_variable_name(kind.lower())
        self.container.add_node(
            kind, list(inputs), [output], op_domain=op_domain,
            name=self.scope.get_unique_operator_name(kind), **options,
        )  # fmt: skip
        return output

    def constant(self, values: NDArray[Any]) -> str:
        """Add numbers or strings; return their name."""
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

        onnxruntime fuses a factor before or after a MatMul into it, in float32. One column, which
        may come from a division by one number, is multiplied elementwise.
        """
        kind = "MatMul" if len(weights) > 1 else "Mul"
        return self.node(kind, X, self.constant(np.asarray(weights, dtype=np.float64)))


def score_nodes(graph: Graph, scores: Planes | KernelExpansion, X: str) -> str:
    """Return g of every plane, (n, n_planes)."""
    if isinstance(scores, Planes):
        product = graph.product(X, scores.w.T)
    else:
        kernel, weights = scores.kernel, scores.coefficients
        while isinstance(kernel, Scaled):
            weights, kernel = kernel.factor * weights, kernel.kernel
        values = _KernelNodes(graph, X, _vectors(scores.vectors)).of(kernel)
        product = graph.product(values, weights.T)
    return graph.node("Add", product, graph.constant(scores.b))


def _vectors(vectors: Any) -> Floats:
    """Return the support vectors as an array, which must fit into one protocol buffer."""
    size = 8 * vectors.shape[0] * vectors.shape[1]
    if size > LARGEST_GRAPH_BYTES:
        raise ValueError(
            f"{vectors.shape[0]} support vectors of {vectors.shape[1]} features take {size} bytes, "
            "more than an ONNX file holds: use a linear kernel, or fewer features."
        )
    return dense(vectors)


class _KernelNodes:
    """Nodes of K(x, z) for every row and support vector, (n, n_support)."""

    def __init__(self, graph: Graph, X: str, vectors: Floats) -> None:
        self.graph, self.X, self.vectors = graph, X, vectors

    def of(self, kernel: Kernel) -> str:
        """Return the name of the kernel values."""
        for kind, method in self._methods.items():
            if isinstance(kernel, kind):
                return method(self, kernel)  # type: ignore[operator, no-any-return]
        raise TypeError(
            f"{kernel!r} is not a formula of x and z, and cannot be written as ONNX: use linear, "
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


# From scores to predictions -----------------------------------------------------------------------


def _of_sign(graph: Graph, fitted: FittedModel, scores: str, label: str, shown: str) -> None:
    """g ≥ 0 is the second class."""
    flat = graph.node("Reshape", scores, graph.constant(np.array([-1])), output=shown)
    _choose(graph, fitted, _cast(graph, _not_negative(graph, flat), "INT64"), label)


def _of_region(graph: Graph, fitted: FittedModel, scores: str, label: str, shown: str) -> None:
    """g ≥ 0 is inside; scores that are rounding are 0."""
    flat = graph.node("Reshape", scores, graph.constant(np.array([-1])))
    size = graph.node("Abs", flat)
    clear = graph.node("Greater", size, graph.number(fitted.classifier._rounding()))
    graph.node("Where", clear, flat, graph.number(0.0), output=shown)
    _choose(graph, fitted, _cast(graph, _not_negative(graph, shown), "INT64"), label)


def _of_targets(graph: Graph, fitted: FittedModel, scores: str, targets: str) -> None:
    """g is the prediction."""
    graph.node("Identity", scores, output=targets)


def _of_largest(graph: Graph, fitted: FittedModel, scores: str, label: str, shown: str) -> None:
    """The class of the largest score."""
    graph.node("Identity", scores, output=shown)
    _choose(graph, fitted, graph.node("ArgMax", scores, axis=1, keepdims=0), label)


def _of_pairs(graph: Graph, fitted: FittedModel, scores: str, label: str, shown: str) -> None:
    """Votes, or votes and a fraction from the scores (`OneVsOne.confidences`)."""
    for_first, for_second = _ends(len(fitted.classes))
    votes = _votes(graph, _not_negative(graph, scores), for_first, for_second)
    sums = graph.node("MatMul", scores, graph.constant(for_first - for_second))
    size = graph.node("Add", graph.node("Abs", sums), graph.number(1.0))
    fraction = graph.node("Div", sums, graph.node("Mul", size, graph.number(3.0)))
    confidences = graph.node("Add", votes, fraction)
    graph.node("Identity", scores if fitted.shows_pairs else confidences, output=shown)
    if fitted.by_votes:
        won = graph.node("Greater", scores, graph.number(0.0))
        confidences = _votes(graph, won, for_first, for_second)
    _choose(graph, fitted, graph.node("ArgMax", confidences, axis=1, keepdims=0), label)


_RULES: dict[Scheme, Callable[..., None]] = {
    "binary": _of_sign,
    "ovr": _of_largest,
    "joint": _of_largest,
    "ovo": _of_pairs,
    "one-class": _of_region,
    "targets": _of_targets,
}


def prediction_nodes(graph: Graph, fitted: FittedModel, scores: str, *outputs: str) -> None:
    """Compute labels and what decision_function returns, or targets, from scores of the planes."""
    _RULES[fitted.scheme](graph, fitted, scores, *outputs)


def label_values(classes: NDArray[Any]) -> NDArray[Any]:
    """Return labels as int64, also whole numbers of other types, or as strings."""
    labels = classes.tolist()
    if all(isinstance(label, str) for label in labels):
        return np.array(labels, dtype=object)
    return np.array([int(label) for label in labels], dtype=np.int64)


def _ends(n_classes: int) -> tuple[Floats, Floats]:
    """Return which class each pair votes for, (n_pairs, n_classes): its first, its second."""
    pairs = np.array(OneVsOne.pairs(n_classes))
    identity = np.eye(n_classes)
    return identity[pairs[:, 0]], identity[pairs[:, 1]]


def _votes(graph: Graph, won: str, for_first: Floats, for_second: Floats) -> str:
    """Return Σ over pairs of (won ? first : second) = Σ second + won·(first − second)."""
    moved = graph.node(
        "MatMul", _cast(graph, won, "DOUBLE"), graph.constant(for_first - for_second)
    )
    return graph.node("Add", moved, graph.constant(for_second.sum(axis=0)))


def _not_negative(graph: Graph, scores: str) -> str:
    return graph.node("Not", graph.node("Less", scores, graph.number(0.0)))


def _cast(graph: Graph, name: str, kind: str) -> str:
    from onnx import TensorProto

    return graph.node("Cast", name, to=getattr(TensorProto, kind))


def _choose(graph: Graph, fitted: FittedModel, index: str, label: str) -> None:
    labels = graph.constant(label_values(fitted.classes))
    graph.node("Gather", labels, index, output=label, axis=0)
