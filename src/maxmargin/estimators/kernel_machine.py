"""The kernel machine that SVC and NuSVC are: its fit, its claims and its predictions."""

from __future__ import annotations

from dataclasses import replace
from hashlib import blake2b
from numbers import Integral, Real
from threading import Event
from typing import Any, ClassVar, get_args

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .. import validation
from ..arrays import Floats
from ..certificates import MarginCertificate, certify
from ..kernels import KERNELS, Custom, Kernel, Linear, Precomputed, resolve
from ..multiclass import OneVsOne, Task
from ..problems import DualProblem
from ..progress import Progress
from ..runtime.threads import at_most, in_parallel, n_threads, single_threaded_blas
from ..solution import Solution, Status
from ..solvers.dual.choice import Dual, Solver, WarmStart
from ..solvers.dual.sizes import SMALL_SAMPLES
from .base import FOR_ALL, CertifiedClassifier, ClaimsOptimality, Training, with_kernel
from .expansion import Expansion, expanded

# Up to this many kernel values every score is recomputed: some hundredths of a second. Beyond, the
# bounds of the solver's scores are checked on so many samples of all tasks.
THOROUGH = 1 << 23
SAMPLES = 128
# Seconds of a core for a kernel value in float64, and for each of its products.
VALUE_SECONDS, PRODUCT_SECONDS = 5e-9, 1e-10


class KernelMachine(ClaimsOptimality, CertifiedClassifier):
    """What SVC and NuSVC share: a DualProblem a task, a solver, support vectors."""

    kernel: Any
    gamma: Any
    degree: int
    coef0: float
    solver: Solver
    tol: float
    cache_size: Any
    time_limit: float | None
    decision_function_shape: str
    break_ties: bool
    shrinking: bool
    n_jobs: int | None
    fit_intercept: bool
    _frames = 6

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "kernel": [StrOptions(KERNELS.keys()), callable, Kernel],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "solver": [StrOptions(set(get_args(Solver)))],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
        "time_limit": [Interval(Real, 0.0, None, closed="neither"), None],
        "warm_start": ["boolean"],
        "multi_class": [StrOptions({"ovo", "ovr"})],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
        "shrinking": ["boolean"],
        "n_jobs": [Integral, None],
        "callback": [callable, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    # Fitting -------------------------------------------------------------------------------

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> None:
        with at_most(self.n_jobs), single_threaded_blas(), self._timed():
            super()._fit(X, y, sample_weight)

    def _check_training(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Training:
        if get_tags(self).input_tags.pairwise and sparse.issparse(X):
            raise TypeError("Sparse precomputed kernels are not supported: pass X.toarray().")
        self._objects = None
        if self._is_function and validation.holds_objects(X):
            self._objects, X = X, self.kernel(X, X)
        sample_weight = validation.without_negative(sample_weight)
        try:
            return super()._check_training(X, y, sample_weight, reset=reset)
        except validation.OutOfRangeError as error:
            raise ValueError(
                f"The dual coefficients or intercepts are not finite: {error}"
            ) from None

    def _n_tasks(self, n_classes: int) -> int:
        if n_classes == 2:
            return 1
        return n_classes * (n_classes - 1) // 2 if self._of_pairs else n_classes

    @property
    def _may_centre(self) -> bool:
        """Whether rows of a linear kernel may be moved: the bias takes it up.

        Verdicts on hard margins are those on the rows as they are.
        """
        return bool(getattr(self, "fit_intercept", True) and np.isfinite(getattr(self, "C", 1.0)))

    @property
    def _is_function(self) -> bool:
        """Whether the kernel is the caller's own function."""
        return callable(self.kernel) and not isinstance(self.kernel, Kernel)

    def _begin(self, training: Training) -> None:
        self.kernel_ = self._resolve(training)
        if isinstance(self.kernel_, Precomputed):
            validation.check_precomputed(training.X)
        validation.warn_if_indefinite(self.kernel_, training.X, frames=self._frames + 1)
        budget = None if self.cache_size == "auto" else float(self.cache_size) * 2**20
        self._dual = Dual.of(
            self.kernel_,
            training.X,
            self.solver,
            self.tol,
            codes=training.codes if len(training.classes) > 2 else None,
            shrinking=self.shrinking,
            may_centre=self._may_centre,
            n_tasks=self._n_tasks(len(training.classes)),
            budget=budget,
            largest=self._largest_cost(training),
        )

    def _largest_cost(self, training: Training) -> float:
        """Return what α of a margin of 1 does not exceed, where that is known."""
        return 1.0

    def _resolve(self, training: Training) -> Kernel:
        if self._objects is not None:
            return Precomputed()
        X, weights = training.counted, training.sample_weights[training.rows]
        gamma = self.gamma
        if gamma == "scale" and (weights != weights[0]).any():
            # A sample of weight 2 counts as two samples.
            variance = validation.weighted_variance(X, weights)
            gamma = 1.0 / (X.shape[1] * variance) if variance else 1.0
        return resolve(self.kernel, gamma=gamma, degree=self.degree, coef0=self.coef0, X=X)

    def _end(self) -> None:
        # What engines keep may be as large as the memory allows.
        del self._dual

    def _tasks(self, training: Training) -> list[Task]:
        if len(self.classes_) == 2:
            return super()._tasks(training)
        # The positive class first: blocks of K between classes are then whole.
        orders = [
            (task, np.argsort(-task.labels, kind="stable")) for task in super()._tasks(training)
        ]
        return [replace(task, rows=task.rows[k], labels=task.labels[k]) for task, k in orders]

    def _side_by_side(self, training: Training, tasks: list[Task]) -> bool:
        return self.kernel_.elementwise and max(task.rows.size for task in tasks) <= SMALL_SAMPLES

    def _answer(
        self,
        problem: DualProblem,
        start: WarmStart | None,
        progress: Progress,
        training: Training,
        max_iter: int,
    ) -> Solution:
        return self._dual.solve(problem, start, progress, self._limits(max_iter))

    def _restart(self, X: Any, tasks: list[Task]) -> list[Any]:
        if self._memory is None:  # the last fit was told to forget
            return [None] * len(tasks)
        sizes = [alpha.size for alpha, *_ in self._memory]
        if X.shape[0] != self.shape_fit_[0] or sizes != [task.rows.size for task in tasks]:
            raise ValueError(
                f"warm_start=True with {X.shape[0]} samples after {self.shape_fit_[0]}, or others "
                "of a class or of positive weight: the dual variables belong to the samples. Use "
                "warm_start=False or the same samples."
            )
        by, same = self._rescale(), _fingerprint(X) == self._fitted_on
        return [
            WarmStart(alpha * by, scores * by, bounds * by)
            if same and scores is not None and bounds is not None
            else WarmStart(alpha * by, None)
            for alpha, scores, bounds in self._memory
        ]

    def _rescale(self) -> float:
        """By how much a start grows: α scales with C."""
        return 1.0

    def _certify(self, problems: list[Any], solutions: list[Solution]) -> list[Any]:
        """Recompute every proof: completely where that is quick, else as far as it takes.

        Where a time limit leaves no time for that, proofs claim no more than what is known.
        """
        vectors = [int(np.count_nonzero(s.alpha)) for s in solutions]  # type: ignore[arg-type]
        work = sum(p.n_variables * n for p, n in zip(problems, vectors, strict=True))
        sample = None if work <= THOROUGH else max(32, SAMPLES // int(len(problems) ** 0.5))
        seconds = self._seconds_left(FOR_ALL)
        affordable = np.inf if seconds is None else seconds * self._values_per_second(problems[0])
        hurried = sample is not None and work > affordable

        def one(k: int, stop: Event) -> MarginCertificate:
            most = int(affordable / len(problems) / max(vectors[k], 1)) if hurried else None
            certificate: MarginCertificate = certify(
                problems[k], solutions[k], sample=sample, at_most=most
            )
            unproved = solutions[k].status is Status.CONVERGED and not certificate.holds(self.tol)
            if certificate.coverage != "complete" and unproved and not hurried:
                return certify(problems[k], solutions[k])  # type: ignore[no-any-return]
            return certificate

        side_by_side = len(problems) > 1 and self.kernel_.elementwise
        return in_parallel(one, range(len(problems)), alone=not side_by_side)

    @staticmethod
    def _values_per_second(problem: DualProblem) -> float:
        """Return about how many float64 kernel values the cores compute in a second."""
        return n_threads() / (VALUE_SECONDS + PRODUCT_SECONDS * problem.X.shape[1])

    def _publish_claims(self) -> None:
        super()._publish_claims()
        self.fit_status_ = int(any(status is not Status.CONVERGED for status in self.statuses_))

    def _attributes(
        self, training: Training, tasks: list[Task], solutions: list[Solution]
    ) -> dict[str, Any]:
        scaled = [self._scaled(training, *pair) for pair in zip(tasks, solutions, strict=True)]
        alphas = [alpha for alpha, _ in scaled]
        planes = expanded(self.kernel_, training, tasks, alphas, self._of_pairs)
        remember = [(each.alpha, each.scores, each.score_bounds) for each in solutions]
        return {
            "support_": planes.support,
            "support_vectors_": planes.vectors,
            "n_support_": planes.counts,
            "dual_coef_": planes.dual,
            "intercept_": np.array([b for _, b in scaled]),
            "n_iter_": np.array([solution.n_iter for solution in solutions], dtype=np.int32),
            "shape_fit_": training.X.shape,
            "class_weight_": training.class_weights,
            "_memory": remember if self.warm_start else None,
            "_fitted_on": _fingerprint(training.X) if self.warm_start else None,
        }

    @property
    def _of_pairs(self) -> bool:
        """Whether there is a plane for every pair of many classes."""
        return isinstance(self._reduction(), OneVsOne)

    def _scaled(self, training: Training, task: Task, solution: Solution) -> tuple[Floats, float]:
        """Return α and b of the machine whose margin is 1."""
        assert solution.alpha is not None
        return solution.alpha, float(solution.b[0])

    @property
    def _undecided(self) -> str:
        return (
            "The margin, if there is one, is below what float64 kernel values show, or the limits "
            "came first: use a finite C, raise the limits, or, for a linear kernel, LinearSVC."
        )

    def _remedy(self, status: Status) -> str:
        if status is Status.TIME_LIMIT:
            return f"Raise time_limit={self.time_limit}, or go on with warm_start=True."
        if status is Status.PATIENCE and self.solver != "auto":
            return (
                f"solver={self.solver!r} came no further: use solver='auto', scale the features "
                "(StandardScaler), lower C, or raise tol."
            )
        if status is Status.PATIENCE:
            return (
                "Kernel values of this size leave float64 no digits, or an indefinite kernel no "
                "descent: scale the features (StandardScaler), lower C or gamma, or raise tol."
            )
        return (
            f"Solver terminated early (max_iter={self.max_iter}).  Consider pre-processing your "
            "data with StandardScaler or MinMaxScaler. Or raise max_iter; warm_start=True goes on "
            "from here."
        )

    # Prediction ----------------------------------------------------------------------------

    def predict(self, X: Any) -> NDArray[Any]:
        """Return the class of each row: by votes for "ovo", by the largest g for "ovr".

        Equal votes go to the first class, or with ``break_ties=True`` to the one of the largest
        confidence. On the plane itself the answer is the second class, of a pair too.
        """
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError("break_ties must be False when decision_function_shape is 'ovo'")
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return self.classes_[(scores[:, 0] >= 0).astype(int)]
        reduction = self._reduction()
        if isinstance(reduction, OneVsOne) and not self.break_ties:
            won = np.where(scores > 0, 1.0, -1.0)
            return self.classes_[reduction.votes(won, len(self.classes_)).argmax(1)]
        return self.classes_[reduction.confidences(scores, len(self.classes_)).argmax(1)]

    def decision_function(self, X: Any) -> Floats:
        """Return g(x): shape (n,) for two classes, else by ``decision_function_shape``.

        "ovr": one confidence a class, for "ovo" machines votes plus a fraction from the scores;
        "ovo": g of every pair of classes, positive for the first of them.
        """
        scores = self._scores(X)
        if len(self.classes_) == 2:
            return scores[:, 0]
        if self.decision_function_shape == "ovo" and self._of_pairs:
            return scores
        return self._reduction().confidences(scores, len(self.classes_))

    def _scores(self, X: Any) -> Floats:
        """Return g of every plane, (n, n_planes)."""
        with at_most(self.n_jobs):
            X = self._check_new_data(X)
            return self._expansion.scores(X) + self.intercept_

    def _check_new_data(self, X: Any) -> Any:
        check_is_fitted(self)
        if self._objects is not None:
            X = self.kernel(X, self._objects)
        X = validation.check_new_data(self, X)
        dense = not sparse.issparse(self.support_vectors_)
        if sparse.issparse(X) and dense and not isinstance(self.kernel_, Custom):
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense data: pass "
                "X.toarray()."
            )
        if isinstance(self.kernel_, Precomputed) and X.shape[1] != self.shape_fit_[0]:
            raise ValueError(
                f"X.shape[1] = {X.shape[1]} should be equal to {self.shape_fit_[0]}, the number of "
                "samples at training time"
            )
        return X

    @property
    def _expansion(self) -> Expansion:
        return Expansion(
            self.kernel_,
            self.support_,
            self.support_vectors_,
            self.n_support_,
            self.dual_coef_,
            self._of_pairs,
        )

    @property
    def coef_(self) -> Any:
        """The planes of a linear kernel, one a row."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        coef = self._expansion.planes()
        # Changes, which would change nothing, are refused.
        (coef.data if sparse.issparse(coef) else coef).flags.writeable = False
        return coef

    def __sklearn_tags__(self) -> Any:
        return with_kernel(super().__sklearn_tags__(), self.kernel)


def _fingerprint(X: Any) -> bytes:
    """Return a digest of the numbers in X: scores of a last fit belong to them."""
    digest = blake2b()
    for part in (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,):
        digest.update(np.ascontiguousarray(part).data)
    return digest.digest()
