"""The variables of many dual problems on a device, one task per row."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

if TYPE_CHECKING:
    from ..base import TaskArrays


# Variables of a task are padded to a multiple of this: vectors then begin at whole words.
ALIGNED = 16


class Survey(NamedTuple):
    """f of what may grow, of what may shrink, and the extremes of both, per task."""

    up: Any
    down: Any
    top: Any
    low: Any


class Measures(NamedTuple):
    """Numbers of every task: the bias, the objective, the duality gap and its scale, errors."""

    b: Any
    value: Any
    gap: Any
    scale: Any
    errors: Any


@dataclass
class TaskState:
    """β = sα, its bounds and f = −sp − (K + D)β of every task, padded to one length.

    The last column of every task is a variable that cannot move: it stands for no variable.
    """

    index: Any  # the row of X of each variable
    signs: Any
    target: Any  # −sp
    ridge: Any
    lower: Any
    upper: Any
    curve: Any  # the diagonal of K + D
    beta: Any
    f: Any
    steps: Any  # one number per task
    has_ridge: bool

    @classmethod
    def of(cls, tasks: TaskArrays, diagonal: Any) -> TaskState:
        """Bring the variables of tasks to the device of ``diagonal``; f is that of β = 0."""
        n_tasks, width = tasks.sizes.size, int(tasks.sizes.max()) + 1
        width += -width % ALIGNED
        device, wide = diagonal.device, torch.float64
        sizes = torch.from_numpy(tasks.sizes).to(device)
        # The place of each variable: that in its task, and those of the tasks before.
        start = torch.arange(n_tasks, device=device) * width
        start -= torch.cumsum(sizes, 0) - sizes
        place = torch.arange(len(tasks.index), device=device)
        place += torch.repeat_interleave(start, sizes, output_size=len(tasks.index))

        def padded(values: Any, dtype: Any = wide) -> Any:
            """Return one row of values per task; a number that is the same for all is not sent."""
            out = torch.zeros(n_tasks * width, dtype=dtype, device=device)
            first = values[0]
            is_one = bool((values == first).all())
            out[place] = first.item() if is_one else torch.from_numpy(values).to(device, dtype)
            return out.view(n_tasks, width)

        s = padded(tasks.signs)
        rows, ridge = padded(tasks.index, torch.int64), padded(tasks.ridge)
        low, high = padded(tasks.lower), padded(tasks.upper)
        is_positive, target = s > 0.0, -s * padded(tasks.p)
        return cls(
            index=rows, signs=torch.where(s == 0.0, 1.0, s), target=target, ridge=ridge,
            lower=torch.where(is_positive, low, -high), upper=torch.where(is_positive, high, -low),
            beta=s * padded(tasks.alpha), f=target.clone(),
            curve=diagonal.to(wide)[rows] + ridge,
            steps=torch.zeros(n_tasks, dtype=torch.int32, device=device),
            has_ridge=bool(tasks.ridge.any()),
        )  # fmt: skip

    def restrict(self, tasks: Any) -> TaskState:
        """Return some of the tasks."""
        named = ((each.name, getattr(self, each.name)) for each in fields(self))
        return TaskState(
            **{name: value if name == "has_ridge" else value[tasks] for name, value in named}
        )

    def put(self, tasks: Any, part: TaskState) -> None:
        """Take over β, f and the steps of some tasks."""
        for name in ("beta", "f", "steps"):
            getattr(self, name)[tasks] = getattr(part, name)

    def survey(self) -> Survey:
        """Return what may move, and how far apart the extremes are."""
        up = torch.where(self.beta < self.upper, self.f, -torch.inf)
        down = torch.where(self.beta > self.lower, self.f, torch.inf)
        return Survey(up, down, up.amax(1), down.amin(1))

    def value(self) -> Any:
        """Return the objective ½βᵀ(K + D)β + pᵀα of every task."""
        return -0.5 * torch.linalg.vecdot(self.beta, self.f + self.target)

    def measures(self, seen: Survey, room: Any, total: float) -> Measures:
        """Return the numbers of every task at the mean f of its free variables.

        ``room`` is by how much the bias may differ from the middle of its bounds.
        """
        beta, f, D = self.beta, self.f, self.ridge
        free = (beta < self.upper) & (beta > self.lower)
        count = free.sum(1)
        mean = torch.where(free, f, 0.0).sum(1) / count.clamp_min(1)
        middle = 0.5 * (seen.top + seen.low)
        middle = torch.where(torch.isfinite(seen.top), middle, seen.low)
        middle = torch.where(torch.isfinite(seen.low), middle, seen.top)
        b = torch.where(count > 0, mean.clamp(middle - room, middle + room), middle)
        t = f + D * beta - b[:, None]
        best = torch.where(t > 0.0, self.upper, torch.where(t < 0.0, self.lower, beta))
        if self.has_ridge:
            bent = torch.maximum(torch.minimum(t / D, self.upper), self.lower)
            best = torch.where(D > 0.0, bent, best)
        gap = ((best - beta) * (t - 0.5 * D * (best + beta))).sum(1)
        value = self.value()
        scale = (gap - value).abs()
        if total:
            scale = scale.maximum(total * -b)
        scores = self.target - f - D * beta + b[:, None]
        errors = ((self.signs * scores <= 0.0) & (self.upper > self.lower)).sum(1)
        return Measures(b, value, gap, scale.clamp_min(1e-300), errors)
