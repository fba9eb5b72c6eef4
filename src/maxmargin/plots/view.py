"""Views of feature space: two features, a slice, or a projection."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, svds

from ..arrays import Floats, Integers, Labels, Matrix, MatrixLike, refuse_partitions
from ..diagnostics.fitted_model import ModelLike
from .canvas import Limits, number, some_rows
from .grid import Grid, Lattice
from .model import FigureModel

# Features by number or name, one or two of them; directions of a projection.
FeatureLike: TypeAlias = int | str | Sequence[int | str] | None
Projection: TypeAlias = Literal["w", "pca"] | ArrayLike | None

RESOLUTION = 200  # points of a lattice along each axis
LEAST_RESOLUTION = 80
MOST_LATTICE_VALUES = 400_000_000  # kernel values on a lattice whose resolution is not given
DIRECTION_ROWS = 2000  # rows from which principal directions are computed
DENSE_FEATURES = 400  # features up to which they come from a dense decomposition
BLOCK_VALUES = 1 << 22  # numbers of X that are evaluated at a time


class FigureData:
    """X for the figures: numeric columns with names, and rows like X made of new numbers.

    Columns of a frame that are not numeric keep their most frequent value in new rows.
    """

    def __init__(
        self, X: MatrixLike, names: Sequence[str] | None = None, fitted: ModelLike = None
    ) -> None:
        refuse_partitions(X)
        self.is_frame = hasattr(X, "columns") and hasattr(X, "dtypes")
        self.X: MatrixLike = X
        self.constant: dict[str, object] = {}
        if self.is_frame:
            self._read_frame(X)
        else:
            self.X = sparse.csr_array(X) if sparse.issparse(X) else np.asarray(X)
            if self.X.ndim != 2 or self.X.dtype.kind not in "biuf":
                raise ValueError(
                    f"X must be a matrix of numbers, (n_samples, n_features); got shape "
                    f"{self.X.shape} and dtype {self.X.dtype}."
                )
            self.numbers: Matrix = self.X
            known = getattr(fitted, "feature_names_in_", None)
            d = self.X.shape[1]
            self.names = [f"feature {j}" for j in range(d)] if known is None else list(known)
        if names is not None:
            self._rename(names)
        self._fill_missing()

    def _fill_missing(self) -> None:
        """Draw missing values at the mean of their column; the input of the model is unchanged."""
        self.n_missing = 0
        if sparse.issparse(self.numbers) or self.numbers.dtype.kind != "f":
            return
        missing = np.isnan(self.numbers)
        self.n_missing = int(missing.sum())
        if self.n_missing:
            counts = np.maximum((~missing).sum(axis=0), 1)
            mean = np.where(missing, 0.0, self.numbers).sum(axis=0) / counts
            self.numbers = np.where(missing, mean, self.numbers)

    def _read_frame(self, X: MatrixLike) -> None:
        columns = list(X.columns)
        arrays = [np.asarray(X[column]) for column in columns]
        self.columns = columns
        self.numeric = [k for k, array in enumerate(arrays) if array.dtype.kind in "biuf"]
        if not self.numeric:
            raise ValueError(f"X must have a numeric column to draw, got {columns}.")
        self.numbers = np.column_stack([arrays[k].astype(float) for k in self.numeric])
        self.constant = {
            columns[k]: _most_frequent(array)
            for k, array in enumerate(arrays)
            if k not in self.numeric
        }
        self.names = [str(columns[k]) for k in self.numeric]

    def _rename(self, names: Sequence[str]) -> None:
        if len(names) != self.n_features:
            raise ValueError(
                f"feature_names must hold {self.n_features} names, one per feature; got "
                f"{len(names)}."
            )
        self.names = [str(name) for name in names]

    @property
    def n_samples(self) -> int:
        """Rows of X."""
        return int(self.numbers.shape[0])

    @property
    def n_features(self) -> int:
        """Numeric columns of X."""
        return int(self.numbers.shape[1])

    @property
    def mean(self) -> Floats:
        """The mean of every numeric column."""
        return np.asarray(self.numbers.mean(axis=0), dtype=float).ravel()

    def rows(self, index: Integers) -> Floats:
        """Return some rows, dense."""
        chosen = self.numbers[index]
        dense = chosen.toarray() if sparse.issparse(chosen) else np.asarray(chosen)
        return dense.astype(float)

    def take(self, index: Integers) -> MatrixLike:
        """Return some rows of X in its own type."""
        return self.X.iloc[index] if hasattr(self.X, "iloc") else self.X[index]

    def fill(self, numbers: Floats) -> MatrixLike:
        """Return rows of the type of X that hold these numbers."""
        if not self.is_frame:
            return numbers
        by_name = {self.columns[k]: numbers[:, place] for place, k in enumerate(self.numeric)}
        held = {name: np.full(len(numbers), value) for name, value in self.constant.items()}
        return type(self.X)({name: (by_name | held)[name] for name in self.columns})

    def feature(self, which: int | str) -> int:
        """Return the number of a feature given by number or name."""
        if isinstance(which, (int, np.integer)) and not isinstance(which, bool):
            if 0 <= which < self.n_features:
                return int(which)
        elif which in self.names:
            return self.names.index(which)
        raise ValueError(
            f"features must be numbers below {self.n_features} or names such as {self.names[:6]}, "
            f"got {which!r}."
        )


def _most_frequent(values: Labels) -> object:
    found, counts = np.unique(values.astype(str), return_counts=True)
    wanted = found[counts.argmax()]
    return values[int(np.flatnonzero(values.astype(str) == wanted)[0])]


@dataclass(frozen=True, eq=False)
class View:
    """A plane in feature space: x = origin + (p − offset) basisᵀ for the point p of the picture.

    Parameters
    ----------
    basis : ndarray of shape (d, 2)
        The directions of the axes in feature space; the second one is 0 for a single feature.
    origin : ndarray of shape (d,)
        A point of the plane, and ``offset`` (2,) its place in the picture.
    labels : tuple of str
        Labels of the axes.
    note : str
        What the picture leaves out, in words.
    exact : bool
        Whether g of every sample is g of its point in the picture.
    flat : ndarray of shape (d, 2), optional
        What takes rows to their places, flatᵀ basis = 1; by default the basis, which then has
        orthonormal columns.
    """

    basis: Floats
    origin: Floats
    offset: Floats
    labels: tuple[str, str]
    note: str = ""
    exact: bool = True
    flat: Floats | None = None

    @property
    def is_strip(self) -> bool:
        """Whether there is one feature only."""
        return not self.basis[:, 1].any()

    def flatten(self, X: MatrixLike) -> Floats:
        """Return the points of rows, (n, 2)."""
        flat = self.basis if self.flat is None else self.flat
        return np.asarray(X @ flat) - self.origin @ flat + self.offset

    def lift(self, points: Floats) -> Floats:
        """Return the rows at the points of the picture, (m, d)."""
        return self.origin + (points - self.offset) @ self.basis.T


def view_of(
    model: FigureModel,
    data: FigureData,
    features: FeatureLike = None,
    projection: Projection = None,
) -> View:
    """Return the requested view, or the default one."""
    if features is not None and projection is not None:
        raise ValueError("pass either features or projection, not both.")
    d = data.n_features
    if features is not None:
        return _of_features(data, features)
    if projection is None and d <= 2:
        return _of_features(data, range(d))
    if projection is None or isinstance(projection, str):
        if projection not in (None, "w", "pca"):
            raise ValueError(f"projection must be 'w', 'pca' or a matrix, got {projection!r}.")
        if d == 1:
            return _of_features(data, [0])
        return _principal_view(data) if projection == "pca" else _along_planes(model, data)
    return _given(data, np.asarray(projection, dtype=float))


def _of_features(data: FigureData, features: int | str | Sequence[int | str]) -> View:
    several = [features] if isinstance(features, (int, np.integer, str)) else features
    chosen = [data.feature(which) for which in several]
    if len(chosen) not in (1, 2) or len(set(chosen)) != len(chosen):
        raise ValueError(f"features must be one or two different features, got {features!r}.")
    mean, d = data.mean, data.n_features
    basis = np.zeros((d, 2))
    for column, feature in enumerate(chosen):
        basis[feature, column] = 1.0
    labels = [data.names[feature] for feature in chosen]
    held = d - len(chosen)
    note = ""
    if held == 1:
        (other,) = set(range(d)) - set(chosen)
        note = f"slice: {data.names[other]} at its mean, {mean[other]:.4g}"
    elif held:
        note = f"slice: the other {held} features at their mean"
    note = _with_held(note, data)
    second = labels[1] if len(labels) == 2 else ""
    return View(basis, mean, mean @ basis, (labels[0], second), note, not note)


def _with_held(note: str, data: FigureData) -> str:
    parts = [note] if note else []
    if data.constant:
        held = ", ".join(f"{name} = {value}" for name, value in data.constant.items())
        parts.append(held if note else f"slice: {held}")
    if data.n_missing:
        parts.append(f"{number(data.n_missing, 'missing value')} at the mean")
    return "; ".join(parts)


def _along_planes(model: FigureModel, data: FigureData) -> View:
    """Return w against the first principal direction orthogonal to it; for many planes two w.

    Where g is not affine, w is that of the plane nearest to g on the samples.
    """
    mean = data.mean
    chosen = some_rows(data.n_samples, DIRECTION_ROWS)
    planes = model.affine(mean, data.fill)
    W = _nearest_planes(model, data, chosen, mean) if planes is None else planes[0]
    if not np.abs(W).any():
        return _principal_view(data)
    rows = data.numbers[chosen]
    if planes is not None and len(W) == 1:
        return _signed_distances(data, W[0], float(planes[1][0]), rows)
    # In units of the standard deviations, where no feature dominates by its unit.
    unit = _deviations(rows)
    turn = np.linalg.svd(np.asarray(rows @ W.T) - mean @ W.T, full_matrices=False)[2]
    directions = (W * unit).T @ turn[:2].T
    first = directions[:, 0] / np.linalg.norm(directions[:, 0])
    others = directions[:, 1:] - np.outer(first, first @ directions[:, 1:])
    length = np.linalg.norm(others, axis=0)
    if length.size and length[0] > 1e-9 * np.linalg.norm(W * unit):
        second = others[:, 0] / length[0]
        names = ("first direction of the planes", "second direction of the planes")
    else:
        scaled = rows if sparse.issparse(rows) else rows / unit
        second = principal(scaled, 1, first[:, None])[:, 0]
        names = ("direction in which g grows most", "first principal direction orthogonal to it")
    basis = np.column_stack([first, second])
    note = f"slice through the mean of {data.n_features} features: samples lie off it"
    basis, flat = basis * unit[:, None], basis / unit[:, None]
    basis = _through_samples(rows, mean, flat, basis)
    return View(basis, mean, mean @ flat, names, _with_held(note, data), False, flat)


def _through_samples(rows: Matrix, mean: Floats, flat: Floats, basis: Floats) -> Floats:
    """Return the directions of the slice that is nearest to the rows, x ≈ mean + basis p.

    p are the places of the rows; a slice at right angles may have no row near it.
    """
    places = np.asarray(rows @ flat) - mean @ flat
    gram = places.T @ places
    if np.linalg.matrix_rank(gram, hermitian=True) < 2:
        return basis
    sums = np.asarray(rows.T @ places) - np.outer(mean, places.sum(axis=0))
    return np.linalg.solve(gram, sums.T).T


def _deviations(rows: Matrix) -> Floats:
    """Return the standard deviation of every feature, 1 of constant ones and of sparse rows."""
    if sparse.issparse(rows):
        return np.ones(rows.shape[1])
    found = rows.std(axis=0)
    return np.where(found > 1e-12 * np.abs(rows).max(axis=0), found, 1.0)


def _signed_distances(data: FigureData, w: Floats, b: float, rows: Matrix) -> View:
    """Return the exact view of one plane: g is constant along what the picture leaves out."""
    norm = float(np.linalg.norm(w))
    first = w / norm
    second = principal(rows, 1, first[:, None])[:, 0]
    mean = data.mean
    basis = np.column_stack([first, second])
    offset = np.array([(w @ mean + b) / norm, second @ mean])
    labels = ("signed distance to the plane, g(x)/‖w‖", "first principal direction orthogonal to w")
    note = f"projection of {data.n_features} features"
    held = _with_held("", data)
    return View(basis, mean, offset, labels, f"{note}; {held}" if held else note, not held)


def _nearest_planes(model: FigureModel, data: FigureData, chosen: Integers, mean: Floats) -> Floats:
    """Return W of the least-squares planes through g of the samples, (n_planes, d)."""
    rows = data.rows(chosen)
    g = model.scores(data.take(chosen))
    fitted: Floats = np.linalg.lstsq(rows - mean, g - g.mean(axis=0), rcond=1e-10)[0]
    return fitted.T


def _principal_view(data: FigureData) -> View:
    mean = data.mean
    basis = principal(data.numbers[some_rows(data.n_samples, DIRECTION_ROWS)], 2)
    note = f"slice through the mean of {data.n_features} features: samples lie off it"
    exact = data.n_features == 2 and not _with_held("", data)
    labels = ("first principal direction", "second principal direction")
    return View(basis, mean, np.zeros(2), labels, "" if exact else _with_held(note, data), exact)


def _given(data: FigureData, matrix: Floats) -> View:
    d = data.n_features
    if matrix.shape != (d, 2) or np.linalg.matrix_rank(matrix) < 2:
        raise ValueError(
            f"projection must be two independent directions, ({d}, 2); got shape {matrix.shape}."
        )
    basis, triangle = np.linalg.qr(matrix)
    basis = basis * np.where(np.diag(triangle) < 0, -1.0, 1.0)
    mean = data.mean
    note = "" if d == 2 else f"slice through the mean of {d} features: samples lie off it"
    labels = ("first direction", "second direction")
    return View(basis, mean, mean @ basis, labels, _with_held(note, data), not note)


def principal(X: MatrixLike, k: int, orthogonal_to: Floats | None = None) -> Floats:
    """Return the first k principal directions of rows, (d, k), orthogonal to given unit columns.

    Where the rows span fewer directions, any orthogonal one is added.

    >>> principal(np.array([[0.0, 0.0], [2.0, 0.1]]), 1).round(1).ravel().tolist()
    [1.0, 0.0]
    """
    d = X.shape[1]
    given = np.zeros((d, 0)) if orthogonal_to is None else orthogonal_to
    if d <= DENSE_FEATURES:
        found = _by_svd(X.toarray() if sparse.issparse(X) else np.asarray(X, float), k, given)
    else:
        found = _by_iteration(X, k, given)
    found = _completed(found, k, given)
    # The sign of a direction is arbitrary: the largest entry is made positive.
    largest = np.abs(found).argmax(axis=0)
    return found * np.where(found[largest, np.arange(k)] < 0, -1.0, 1.0)


def _by_svd(X: Floats, k: int, given: Floats) -> Floats:
    centred = X - X.mean(axis=0)
    centred = centred - (centred @ given) @ given.T
    _, length, directions = np.linalg.svd(centred, full_matrices=False)
    return directions[:k][length[:k] > 1e-12 * max(length.max(initial=0.0), 1e-300)].T


def _by_iteration(X: MatrixLike, k: int, given: Floats) -> Floats:
    """Return the same for many features, by products with X, which may be sparse."""
    n, d = X.shape
    mean = np.asarray(X.mean(axis=0)).ravel()

    def forward(v: Floats) -> Floats:
        v = np.ravel(v)
        v = v - given @ (given.T @ v)
        return np.asarray(X @ v - mean @ v)

    def backward(u: Floats) -> Floats:
        u = np.ravel(u)
        v = X.T @ u - mean * u.sum()
        return np.asarray(v - given @ (given.T @ v))

    if min(n, d) <= k + 1:
        return np.zeros((d, 0))
    operator = LinearOperator((n, d), matvec=forward, rmatvec=backward, dtype=float)
    start = np.random.RandomState(0).standard_normal(min(n, d))
    _, length, directions = svds(operator, k=k, v0=start)
    order = np.argsort(-length)
    return directions[order][length[order] > 1e-12 * max(length.max(), 1e-300)].T


def _completed(found: Floats, k: int, given: Floats) -> Floats:
    """Add orthonormal directions until there are k."""
    for axis in range(found.shape[0]):
        if found.shape[1] >= k:
            break
        both = np.hstack([given, found])
        candidate = -both @ both[axis]
        candidate[axis] += 1.0
        length = np.linalg.norm(candidate)
        if length > 1e-6:
            found = np.hstack([found, (candidate / length)[:, None]])
    return found


def resolution_for(model: FigureModel) -> int:
    """Return the points of a lattice along each axis: fewer for very many support vectors."""
    n_support = 0 if model.is_linear or model.support is None else len(model.support)
    most = int(np.sqrt(MOST_LATTICE_VALUES / max(n_support, 1)))
    return int(np.clip(most, LEAST_RESOLUTION, RESOLUTION))


def answers_at(model: FigureModel, data: FigureData, view: View, points: Floats) -> Integers:
    """Return the class number of the region at points of the picture."""
    return _on_view(model, data, view, points)[1]


def grid_of(
    model: FigureModel, data: FigureData, view: View, limits: Limits, resolution: int
) -> Grid:
    """Return scores and class numbers on a lattice of points of the picture."""
    lattice = Lattice.over(limits, resolution)
    scores, codes = _on_view(model, data, view, lattice.points)
    shape = (resolution, resolution)
    return Grid(lattice.x, lattice.y, scores.T.reshape(-1, *shape), codes.reshape(shape))


def _on_view(
    model: FigureModel, data: FigureData, view: View, points: Floats
) -> tuple[Floats, Integers]:
    """Return scores (m, n_planes) and class numbers of points of the picture, block by block."""
    planes = model.affine(view.origin, data.fill) if model.is_binary else None
    if planes is not None:
        # One plane is a line in the picture: no need to lift the points.
        W, b = planes
        g = (points - view.offset) @ (W @ view.basis).T + (W @ view.origin + b)
        return g, (g[:, 0] >= 0).astype(np.intp)
    step = max(1, BLOCK_VALUES // max(data.n_features, 1))
    scores, codes = [], []
    for start in range(0, len(points), step):
        rows = data.fill(view.lift(points[start : start + step]))
        scores.append(model.scores(rows))
        codes.append(model.answers(rows, scores[-1]))
    return np.concatenate(scores), np.concatenate(codes)
