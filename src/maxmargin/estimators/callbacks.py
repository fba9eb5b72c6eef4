"""The listeners of a fit: the caller's callback, ``verbose``, and scikit-learn's callbacks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..arrays import Labels, Matrix
from ..progress import Step
from ..solution import Solution

__all__ = ["CallbackSupportMixin", "Printer", "sklearn_callbacks"]

try:
    from sklearn.callback import CallbackSupportMixin
except ImportError:  # scikit-learn before 1.9 has no callbacks

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""


class Printer:
    """Print one line per pass, step or round: what ``verbose=True`` does.

    Where there are no classes there are no errors to count.
    """

    def __init__(self, task_names: list[str], has_classes: bool) -> None:
        self.task_names, self.has_classes = task_names, has_classes

    def __call__(self, step: Step) -> None:
        state = f"violation {step.violation:.2g}"
        if self.has_classes:
            state = f"{'errors' if step.exact else 'errors met'} {step.errors}"
        print(
            f"[{self.task_names[step.task]}] {step.iteration:6d}  objective {step.objective:.6g}  "
            f"{state}  {step.seconds:.2f} s",
            flush=True,
        )


class SklearnCallbacks:
    """Hand the steps of a fit to the callbacks set by scikit-learn's ``set_callbacks``.

    The tree of tasks is fit → one task per plane → one per pass: ProgressBar shows all three.
    """

    def __init__(
        self,
        estimator: CallbackSupportMixin,
        X: Matrix,
        y: Labels,
        n_tasks: int,
        max_iter: int | None,
    ) -> None:
        self.estimator = estimator
        self.data = {"X": X, "y": y}
        self.max_iter = max_iter
        self.root = estimator._init_callback_context(max_subtasks=n_tasks)
        self.root.call_on_fit_task_begin(estimator=estimator, **self.data)
        self.task: Any = None

    def begin_task(self, name: str, attributes: Callable[[Solution], dict[str, object]]) -> None:
        """Begin the next plane; ``attributes(solution)`` makes a fitted estimator of a step."""
        self.attributes = attributes
        self.task = self.root.subcontext(task_name=name, max_subtasks=self.max_iter)
        self.task.call_on_fit_task_begin(estimator=self.estimator, **self.data)

    def __call__(self, step: Step) -> bool:
        """Tell of a pass."""
        if step.sample is not None:
            return False
        context = self.task.subcontext(task_name="pass")
        context.call_on_fit_task_begin(estimator=self.estimator, **self.data)
        return bool(
            context.call_on_fit_task_end(
                estimator=self.estimator,
                reconstruction_attributes=lambda: self.attributes(step.snapshot()),
                **self.data,
            )
        )

    def end_task(self) -> None:
        """End a plane."""
        self.task.call_on_fit_task_end(estimator=self.estimator, **self.data)

    def end(self) -> None:
        """End the fit."""
        self.root.call_on_fit_task_end(
            estimator=self.estimator, reconstruction_attributes={}, **self.data
        )


def sklearn_callbacks(
    estimator: CallbackSupportMixin, X: Matrix, y: Labels, n_tasks: int, max_iter: int | None
) -> SklearnCallbacks | None:
    """Return the adapter where scikit-learn has callbacks and some are set, else None."""
    if not getattr(estimator, "_skl_callbacks", None):
        return None
    return SklearnCallbacks(estimator, X, y, n_tasks, max_iter)
