"""X of a linear machine on a device of torch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from ...arrays import Floats, Integers
from ...problems import JointProblem, PrimalProblem
from ..linear import JointState
from .device_rows import DeviceRows
from .device_vector import DeviceVector, on_device
from .primal_state import TorchPrimalState
from .row_products import Products, products_of
from .streamed_rows import StreamedProducts, StreamedRows

Tensor = Any


@dataclass(frozen=True)
class Tuning:
    """Sizes and seeds."""

    dense_columns: int = 2000  # up to which a CSR matrix is made dense
    dense_share: float = 0.25  # of the free memory that it may then take
    seed: int = 0  # of samples of the rows


TUNING = Tuning()


class TorchFeatures:
    """The rows of X on a device, dense or CSR.

    Coordinate descent and the interior point method are the host's.

    Parameters
    ----------
    products : Products
        Sums over the rows.
    device : torch.device
    is_dense : bool
    """

    on_device, random_access, by_rows = True, False, False
    slopes_at_once = 8
    holds_rows, whole_step_first, has_curvature = True, False, False

    def __init__(self, products: Products, device: Any, is_dense: bool) -> None:
        self.products, self.device, self.is_dense = products, device, is_dense
        self.n_rows, self.n_columns = products.n_rows, products.n_columns
        self.most_sampled = products.n_rows

    @classmethod
    def of(cls, X: DeviceRows | StreamedRows, index: Integers | None = None) -> TorchFeatures:
        """Return the rows of X named by ``index``, all of them by default."""
        products: Products
        if isinstance(X, StreamedRows):
            products = StreamedProducts(X)
        else:
            products = products_of(_dense_where_small(X.tensor))
        features = cls(products, X.device, not X.sparse)
        return features if index is None else features.restrict(features.place_rows(index))

    @property
    def stored_per_row(self) -> float:
        """The mean number of stored values per row."""
        return self.products.stored / max(self.n_rows, 1)

    def primal_state(self, problem: PrimalProblem) -> TorchPrimalState:
        """Return the state of a linear machine at w = 0, b = 0 and α = 0."""
        return TorchPrimalState.of(problem, self)

    def joint_state(self, problem: JointProblem) -> JointState:
        """Joint machines are solved on the host."""
        raise NotImplementedError("joint machines are solved by the CPU engine")

    def draw(self, size: int) -> Any:
        """Return a sample of the rows: one of each of ``size`` runs of consecutive rows."""
        ends = torch.arange(size + 1, device=self.device) * self.n_rows // size
        generator = torch.Generator(self.device).manual_seed(TUNING.seed)
        shares = torch.rand(size, device=self.device, generator=generator)
        lengths = ends.diff()
        return DeviceVector(
            ends[:-1] + torch.minimum((shares * lengths).long(), lengths - 1).clamp(min=0)
        )

    def place_rows(self, rows: Integers | DeviceVector) -> Tensor:
        """Return indices of rows as a tensor on the device."""
        if isinstance(rows, DeviceVector):
            return rows.tensor
        return torch.from_numpy(np.asarray(rows, dtype=np.int64)).to(self.device)

    def place_vector(self, values: Any) -> Tensor:
        """Return a vector as a float64 tensor on the device."""
        return on_device(values, self.device)

    def restrict(self, rows: Tensor) -> TorchFeatures:
        """Return some of the rows, in increasing order: a copy of them."""
        return TorchFeatures(self.products.take(rows), self.device, self.is_dense)

    def zeros(self) -> Tensor:
        """Return a number per row, 0."""
        return torch.zeros(self.n_rows, dtype=torch.float64, device=self.device)

    def scores(self, w: Floats, b: float, out: Tensor) -> None:
        """Fill in w·x_i + b of every row."""
        self.products.scores(self.place_vector(np.append(w, b)), out)


def _dense_where_small(tensor: Tensor) -> Tensor:
    """Return a CSR matrix of few columns as a dense array, where there is room for it."""
    if tensor.layout is not torch.sparse_csr or tensor.shape[1] > TUNING.dense_columns:
        return tensor
    if tensor.device.type == "cuda":
        free, _ = torch.cuda.mem_get_info(tensor.device)
        needed = tensor.shape[0] * tensor.shape[1] * tensor.values().element_size()
        if needed > TUNING.dense_share * free:
            return tensor
    return tensor.to_dense()
