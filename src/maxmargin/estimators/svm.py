"""Support vector machines with any kernel: SVC and NuSVC."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property, partial
from hashlib import blake2b
from numbers import Integral, Real
from threading import Event
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import get_tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from .. import validation
from ..certificate import MarginCertificate, NotSeparableError, certify
from ..certificate.margin import best_rho
from ..certificate.multipliers import FeatureSpaceRefutation
from ..certificate.scores import kernel_scores
from ..kernels import KERNELS, Custom, Kernel, Linear, Precomputed, resolve
from ..multiclass import OneVsOne, Task
from ..problem import MarginProblem
from ..samples import Floats, Integers
from ..solution import Callback, Limits, Progress, Solution, Status
from ..threads import at_most, in_parallel, single_threaded_blas
from .base import CertifiedClassifier, ClaimsOptimality, Training, with_kernel

# Kernel values that a certificate recomputes without thinking twice: some hundredths of a second.
# Beyond, the solver's scores are checked on so many samples in all.
THOROUGH = 1 << 23
SAMPLES = 512
# Samples up to which tasks of many classes are solved side by side, each on its whole Gram matrix.
SMALL = 3000
# Samples up to which a hard margin is solved by the active-set method.
EXACT = 20_000
# α max K(x, x) that a hard margin of a hundredth of the largest ‖φ(x)‖ does not exceed.
COSTLY = 1e4
# The tolerance down to which float32 kernel values, with float64 corrections, are of use.
FINEST = 1e-5
# Samples up to which float64, and numbers up to which dense rows, take no longer: the answer is
# then the same for X dense or sparse, and for K computed by us or by the caller.
FEW = 256
NUMBERS = 1 << 20
# Steps of decomposition a sample before the active-set method takes over, of few and of up to so
# many samples; its steps, and the violation it ends at.
ENOUGH, PLENTY, NEWTON = 100, 1000, 5000
POLISH, EXACTLY = 2000, 1e-10
# Rows and support vectors whose kernel values are computed together in a prediction.
ROWS, VECTORS = 256, 2048

Solver = Literal["auto", "decomposition", "smo", "active-set", "coordinate-ascent", "qp"]


class WarmStart(NamedTuple):
    """α of the rows of a task to begin with, and the scores that it had."""

    alpha: Floats
    scores: Floats | None


class KernelMachine(ClaimsOptimality, CertifiedClassifier):
    """What SVC and NuSVC share: a MarginProblem a task, a solver, support vectors."""

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
        "kernel": [StrOptions(set(KERNELS)), callable, Kernel],
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [StrOptions({"scale", "auto"}), Interval(Real, 0.0, None, closed="left")],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "solver": [
            StrOptions({"auto", "decomposition", "smo", "active-set", "coordinate-ascent", "qp"})
        ],
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
        with at_most(self.n_jobs), single_threaded_blas():
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
        self._engines = _Engines(self.kernel_, training, self.tol, budget)
        self._start_clock()

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
        del self._engines, self._clock

    def _tasks(self, training: Training) -> list[Task]:
        if len(self.classes_) == 2:
            return super()._tasks(training)
        # The positive class first: blocks of K between classes are then whole.
        orders = [
            (task, np.argsort(-task.labels, kind="stable")) for task in super()._tasks(training)
        ]
        return [replace(task, rows=task.rows[k], labels=task.labels[k]) for task, k in orders]

    def _side_by_side(self, training: Training, tasks: list[Task]) -> bool:
        return self.kernel_.elementwise and max(task.rows.size for task in tasks) <= SMALL

    def _answer(
        self,
        problem: MarginProblem,
        start: WarmStart | None,
        progress: Progress,
        training: Training,
        max_iter: int,
    ) -> Solution:
        limits = self._limits(max_iter)
        if _is_hard(problem) and self._solver_for(problem) not in ("active-set", "qp"):
            solution = self._within_bounds(problem, start, progress, limits)
        else:
            solution = self._solver(problem, limits)(problem, start, progress)
        if solution.status is Status.INSEPARABLE:
            raise _not_separable(problem, solution)
        return solution

    def _solver(
        self, problem: MarginProblem, limits: Limits
    ) -> Callable[[MarginProblem, Any, Progress], Solution]:
        """Return the solver that was asked for, or the one that suits."""
        from ..margin.active_set import ActiveSet
        from ..margin.decomposition import WORKING_SET, Decomposition
        from ..margin.qp import QuadraticProgram

        n = problem.y.size
        name = self._solver_for(problem)
        if name == "decomposition":
            gram, exact = self._engines.fast(problem), self._engines.corrections(problem)
            working_set = n if n <= SMALL and gram.is_whole else WORKING_SET
            alone = problem.index.size == problem.X.shape[0]  # pairs of classes are many
            solver = Decomposition(
                gram, exact, self.tol, limits, working_set, self.shrinking, often=alone
            )
            if self.solver == "auto" and n <= NEWTON:
                return partial(_to_the_end, solver, self._engines.few)
            return lambda problem, start, progress: solver.solve(
                problem, start and start.alpha, progress, start and start.scores
            )
        gram = self._engines.exact(problem)
        if name in ("smo", "coordinate-ascent"):
            _refuse_large(name, n, gram)
            gram.whole()
            whole = Decomposition(gram, None, self.tol, limits, n, often=True)
            return lambda problem, start, progress: whole.solve(
                problem, start and start.alpha, progress
            )
        chosen: Any
        if name == "qp":
            _refuse_large(name, n, gram)
            chosen = QuadraticProgram(gram, min(self.tol, 1e-12), limits)
        else:
            chosen = ActiveSet(gram, min(self.tol, 1e-10), limits)
        return lambda problem, start, progress: chosen.solve(
            problem, start and start.alpha, progress
        )

    def _within_bounds(
        self, problem: MarginProblem, start: Any, progress: Progress, limits: Limits
    ) -> Solution:
        """Solve a hard margin as a costly soft one, for a while, which cannot run away.

        Where no α meets its bound the answer is the hard margin's. Else the active-set method goes
        on from there, and finds the plane or the proof that there is none.
        """
        from ..margin.active_set import ActiveSet

        largest = max(float(problem.kernel.diagonal(problem.X)[problem.index].max()), 1e-300)
        bound = np.minimum(problem.upper, COSTLY / largest)
        steps = min(100 * problem.y.size, limits.iterations or 2**62)
        solver = self._solver(problem, replace(limits, iterations=steps))
        solution = solver(replace(problem, upper=bound), start, progress)
        assert solution.alpha is not None
        ended = solution.status in (Status.STOPPED, Status.TIME_LIMIT) or (
            solution.n_iter == limits.iterations
        )
        met = solution.alpha >= bound
        if ended or (solution.status is Status.CONVERGED and not met.any()):
            return solution
        exact = ActiveSet(self._engines.exact(problem), min(self.tol, 1e-10), limits)
        return exact.solve(problem, solution.alpha, progress)

    def _solver_for(self, problem: MarginProblem) -> str:
        if self.solver == "coordinate-ascent" and problem.balanced:
            raise ValueError(
                "solver='coordinate-ascent' moves one α at a time, which yᵀα = 0 forbids: use "
                "fit_intercept=False, or solver='smo'."
            )
        if self.solver == "smo" and not problem.balanced:
            raise ValueError(
                "solver='smo' moves pairs of α, which only a machine with a bias needs: use "
                "solver='coordinate-ascent' with fit_intercept=False."
            )
        if self.solver != "auto":
            return self.solver
        small = problem.y.size <= EXACT
        return "active-set" if _is_hard(problem) and small else "decomposition"

    def _restart(self, X: Any, tasks: list[Task]) -> list[Any]:
        if self._memory is None:  # the last fit was told to forget
            return [None] * len(tasks)
        sizes = [alpha.size for alpha, _ in self._memory]
        if X.shape[0] != self.shape_fit_[0] or sizes != [task.rows.size for task in tasks]:
            raise ValueError(
                f"warm_start=True with {X.shape[0]} samples after {self.shape_fit_[0]}, or others "
                "of a class or of positive weight: the dual variables belong to the samples. Use "
                "warm_start=False or the same samples."
            )
        by, same = self._rescale(), _fingerprint(X) == self._fitted_on
        return [
            WarmStart(alpha * by, scores * by if same and scores is not None else None)
            for alpha, scores in self._memory
        ]

    def _rescale(self) -> float:
        """By how much a start grows: α scales with C."""
        return 1.0

    def _certify(self, problems: list[Any], solutions: list[Solution]) -> list[Any]:
        """Recompute every proof, thoroughly where that takes no time to speak of."""
        work = sum(s.alpha.size * int(np.count_nonzero(s.alpha)) for s in solutions)  # type: ignore
        sample = None if work <= THOROUGH else max(32, SAMPLES // int(len(problems) ** 0.5))

        def one(k: int, stop: Event) -> MarginCertificate:
            certificate: MarginCertificate = certify(problems[k], solutions[k], sample=sample)
            converged = solutions[k].status is Status.CONVERGED
            if sample is not None and converged and not certificate.holds(self.tol):
                return certify(problems[k], solutions[k])  # type: ignore[no-any-return]
            return certificate

        side_by_side = len(problems) > 1 and self.kernel_.elementwise
        return in_parallel(one, range(len(problems)), alone=not side_by_side)

    def _publish_claims(self) -> None:
        super()._publish_claims()
        self.fit_status_ = int(any(status is not Status.CONVERGED for status in self.statuses_))

    def _attributes(
        self, training: Training, tasks: list[Task], solutions: list[Solution]
    ) -> dict[str, Any]:
        X, n_classes = training.X, len(training.classes)
        scaled = [self._scaled(training, *pair) for pair in zip(tasks, solutions, strict=True)]
        is_support = np.zeros(X.shape[0], dtype=bool)
        for task, (alpha, _) in zip(tasks, scaled, strict=True):
            is_support[task.rows[alpha > 0]] = True
        support = np.flatnonzero(is_support)
        # Class by class, as LIBSVM orders them.
        support = support[np.argsort(training.codes[support], kind="stable")]
        place = np.full(X.shape[0], -1)
        place[support] = np.arange(support.size)
        pairs = isinstance(self._reduction(), OneVsOne)
        dual = np.zeros((n_classes - 1 if pairs else len(tasks), support.size))
        ends = OneVsOne.pairs(n_classes) if pairs else []
        for k, (task, (alpha, _)) in enumerate(zip(tasks, scaled, strict=True)):
            used = np.flatnonzero(alpha)
            at = place[task.rows[used]]
            if pairs:
                i, j = ends[k]
                dual[np.where(task.labels[used] > 0, j - 1, i), at] = (alpha * task.labels)[used]
            else:
                dual[k, at] = (alpha * task.labels)[used]
        precomputed = isinstance(self.kernel_, Precomputed)
        remember = [(solution.alpha, solution.scores) for solution in solutions]
        return {
            "support_": support.astype(np.int32),
            "support_vectors_": X[:0] if precomputed else X[support],
            "n_support_": np.bincount(training.codes[support], minlength=n_classes).astype(
                np.int32
            ),
            "dual_coef_": sparse.csr_matrix(dual) if sparse.issparse(X) else dual,
            "intercept_": np.array([b for _, b in scaled]),
            "n_iter_": np.array([solution.n_iter for solution in solutions], dtype=np.int32),
            "shape_fit_": X.shape,
            "class_weight_": training.class_weights,
            "_memory": remember if self.warm_start else None,
            "_fitted_on": _fingerprint(X) if self.warm_start else None,
        }

    def _scaled(self, training: Training, task: Task, solution: Solution) -> tuple[Floats, float]:
        """Return α and b of the machine whose margin is 1."""
        assert solution.alpha is not None
        return solution.alpha, float(solution.b[0])

    def _remedy(self, status: Status) -> str:
        if status is Status.TIME_LIMIT:
            return f"Raise time_limit={self.time_limit}, or go on with warm_start=True."
        if status is Status.PATIENCE:
            return "Rounding, or an indefinite kernel, allows no further descent: raise tol."
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
        if self.decision_function_shape == "ovo" and isinstance(self._reduction(), OneVsOne):
            return scores
        return self._reduction().confidences(scores, len(self.classes_))

    def _scores(self, X: Any) -> Floats:
        """Return g of every plane, (n, n_planes); each support vector is evaluated once."""
        with at_most(self.n_jobs):
            return self._checked_scores(X)

    def _checked_scores(self, X: Any) -> Floats:
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
        pairs = isinstance(self._reduction(), OneVsOne)
        dual = self.dual_coef_.toarray() if sparse.issparse(self.dual_coef_) else self.dual_coef_
        ends = np.cumsum([0, *self.n_support_]) if pairs else np.array([0, self.support_.size])
        # Σ α y K(x, ·) of every row of dual_coef_, over the support vectors of one class each.
        sums = np.zeros((X.shape[0], ends.size - 1, dual.shape[0]))

        def work(start: int, stop: Event) -> None:
            rows = slice(start, start + ROWS)
            for c in range(ends.size - 1):
                for first in range(ends[c], ends[c + 1], VECTORS):
                    if stop.is_set():
                        return
                    some = slice(first, min(first + VECTORS, ends[c + 1]))
                    sums[rows, c] += self._values(X[rows], some) @ dual[:, some].T

        in_parallel(work, range(0, X.shape[0], ROWS), alone=not self.kernel_.elementwise)
        if not pairs:
            return sums[:, 0] + self.intercept_
        columns = [sums[:, i, j - 1] + sums[:, j, i] for i, j in OneVsOne.pairs(len(self.classes_))]
        return np.column_stack(columns) + self.intercept_

    def _values(self, X: Any, some: slice) -> Floats:
        """K(x, z) in float64 for some support vectors z."""
        if isinstance(self.kernel_, Precomputed):
            return np.asarray(X[:, self.support_[some]], dtype=np.float64)
        z = self.support_vectors_[some].astype(np.float64, copy=False)
        if sparse.issparse(X) != sparse.issparse(z):
            # Products of one kind are the faster ones; these are small blocks.
            X = X.toarray() if sparse.issparse(X) else X
            z = z.toarray() if sparse.issparse(z) else z
        return self.kernel_(X.astype(np.float64, copy=False), z)

    @property
    def coef_(self) -> Any:
        """The planes of a linear kernel, one a row."""
        check_is_fitted(self)
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        if not isinstance(self._reduction(), OneVsOne):
            return self._read_only(self.dual_coef_ @ self.support_vectors_)
        ends = np.cumsum([0, *self.n_support_])
        parts = [slice(ends[c], ends[c + 1]) for c in range(len(self.classes_))]
        rows = [
            self.dual_coef_[[j - 1], parts[i]] @ self.support_vectors_[parts[i]]
            + self.dual_coef_[[i], parts[j]] @ self.support_vectors_[parts[j]]
            for i, j in OneVsOne.pairs(len(self.classes_))
        ]
        stack = sparse.vstack(rows).tocsr() if sparse.issparse(rows[0]) else np.vstack(rows)
        return self._read_only(stack)

    @staticmethod
    def _read_only(coef: Any) -> Any:
        """Refuse changes, which would change nothing."""
        (coef.data if sparse.issparse(coef) else coef).flags.writeable = False
        return coef

    def __sklearn_tags__(self) -> Any:
        return with_kernel(super().__sklearn_tags__(), self.kernel)


def _to_the_end(
    solver: Any, few: bool, problem: MarginProblem, start: WarmStart | None, progress: Progress
) -> Solution:
    """Solve by decomposition, and on by the active-set method where that creeps or samples are few.

    From there it takes some steps to the optimum, to rounding. The answer for few samples is then
    one and the same for rows in another order, and for a row given twice or with a weight of 2.
    """
    from ..margin.active_set import ActiveSet

    limits, n = solver.limits, problem.y.size
    most = np.inf if limits.iterations is None else limits.iterations
    enough = min((ENOUGH if few else PLENTY) * n, most)
    solution: Solution = replace(solver, limits=replace(limits, iterations=int(enough))).solve(
        problem, start and start.alpha, progress, start and start.scores
    )
    creeps = solution.status is Status.ITERATION_LIMIT and solution.n_iter < most
    done = few and solution.status is Status.CONVERGED
    if not (creeps or done or solution.status is Status.PATIENCE):
        return solution
    exact = ActiveSet(solver.exact or solver.gram, EXACTLY, Limits(POLISH, limits.seconds))
    polished = exact.solve(problem, solution.alpha, Progress())
    assert polished.alpha is not None
    balance = abs(float(problem.y @ polished.alpha)) if problem.balanced else 0.0
    feasible = balance <= 1e-9 * float(polished.alpha.sum())  # an indefinite kernel may spoil it
    if polished.status is Status.CONVERGED and feasible:
        return replace(
            solution, status=polished.status, alpha=polished.alpha, b=polished.b, scores=None
        )
    if not creeps:
        return solution
    rest = None if limits.iterations is None else limits.iterations - solution.n_iter
    last: Solution = replace(solver, limits=replace(limits, iterations=rest)).solve(
        problem, solution.alpha, progress, solution.scores
    )
    return replace(last, n_iter=solution.n_iter + last.n_iter)


class _Engines:
    """What the tasks of a fit share: the ways to kernel values, and those within a class."""

    def __init__(
        self, kernel: Kernel, training: Training, tol: float, budget: float | None
    ) -> None:
        self.kernel, self.X, self.budget = kernel, training.X, budget
        self.few = self.X.shape[0] <= FEW
        if (
            self.few
            and sparse.issparse(self.X)
            and kernel.elementwise
            and np.prod(self.X.shape) <= NUMBERS
        ):
            self.X = self.X.toarray()
        self.codes, self.n_classes = training.codes, len(training.classes)
        # float32 rows of K where float64 corrections make up for it; given values as they are.
        coarse = tol >= FINEST and kernel.elementwise and not self.few and _moderate(kernel, self.X)
        self.dtype: Any = np.float32 if coarse else np.float64
        self._within: dict[int, Floats] = {}
        if coarse and not self._fine_enough():
            self.dtype = np.float64
            del self._all_fast

    def _fine_enough(self) -> bool:
        """Whether float32 makes about the right values, as seen on some rows."""
        n = self.X.shape[0]
        rows = np.linspace(0, n - 1, min(n, 64)).astype(int)
        with np.errstate(all="ignore"):
            rough = self._all_fast.block(rows)
        some = self.X[rows].astype(np.float64)
        exact = self.kernel(some.toarray() if sparse.issparse(some) else some)
        return bool(np.abs(rough - exact).max() <= 1e-4 * np.abs(exact).max())

    def fast(self, problem: MarginProblem) -> Any:
        """Return the engine of a task, with all of K where that is small."""
        small = problem.y.size <= SMALL
        if small and self.n_classes > 2 and self.kernel.elementwise:
            return self._assembled(problem)
        index = _unless_all(problem.index, self.X)
        gram = self._all_fast if index is None else self._gram(self.dtype, index)
        if small and gram.fits:
            gram.whole()
        return gram

    def exact(self, problem: MarginProblem) -> Any:
        """Return the engine of a task in float64."""
        return self._gram(np.float64, _unless_all(problem.index, self.X))

    def corrections(self, problem: MarginProblem) -> Any:
        """Return float64 values for what the fast engine lacks; None where it lacks nothing."""
        from ..engines.cpu import Selected

        if self.dtype == np.float64:
            return None
        return Selected(self._all_exact, problem.index)

    def _gram(self, dtype: Any, index: Integers | None = None) -> Any:
        from ..engines.cpu import Gram

        return Gram(self.kernel, self.X, index, self.budget, dtype)

    @cached_property
    def _all_exact(self) -> Any:
        return self._gram(np.float64)

    @cached_property
    def _all_fast(self) -> Any:
        return self._gram(self.dtype)

    def _assembled(self, problem: MarginProblem) -> Any:
        """Return an engine on K put together from blocks within and between two sets of rows."""
        from ..engines.cpu import assembled

        n_first = int(np.count_nonzero(problem.y > 0))  # they come first
        first, second = problem.index[:n_first], problem.index[n_first:]
        between = np.ascontiguousarray(self._all_fast.block(first, second))
        return assembled(self._block_within(first), between, self._block_within(second))

    def _block_within(self, rows: Integers) -> Floats:
        """Return K of rows; that of a whole class is kept, for every pair needs it."""
        label = int(self.codes[rows[0]])
        if label in self._within and self._within[label].shape[0] == rows.size:
            return self._within[label]
        K: Floats = np.ascontiguousarray(self._all_fast.block(rows))
        if (self.codes[rows] == label).all():
            self._within[label] = K
        return K


def _moderate(kernel: Kernel, X: Any) -> bool:
    """Whether squares of X and kernel values are far from float32's overflow."""
    values = X.data if sparse.issparse(X) else X
    largest = max(float(values.max(initial=0.0)), -float(values.min(initial=0.0)))
    return largest < 1e15 and float(kernel.diagonal(X).max()) < 1e30


def _fingerprint(X: Any) -> bytes:
    """Return a digest of the numbers in X: scores of a last fit belong to them."""
    digest = blake2b()
    for part in (X.data, X.indices, X.indptr) if sparse.issparse(X) else (X,):
        digest.update(np.ascontiguousarray(part).data)
    return digest.digest()


def _is_hard(problem: MarginProblem) -> bool:
    """Whether some α has nothing that keeps it from growing."""
    return bool((np.isinf(problem.upper) & (problem.ridge == 0.0)).any())


def _unless_all(index: Integers, X: Any) -> Integers | None:
    """Return None where the index names every row in turn: rows then need not be picked."""
    return None if np.array_equal(index, np.arange(X.shape[0])) else index


def _refuse_large(solver: str, n: int, gram: Any) -> None:
    if not gram.fits:
        raise ValueError(
            f"solver={solver!r} needs the whole Gram matrix, {n}² float64 values, which does not "
            "fit: use solver='decomposition', or raise cache_size."
        )


def _not_separable(problem: MarginProblem, solution: Solution) -> NotSeparableError:
    assert solution.multipliers is not None
    proof = FeatureSpaceRefutation.of(problem, solution.multipliers)
    return NotSeparableError(
        f"C=inf asks for a hard margin, but no plane separates these classes: {proof}. "
        "Use a finite C, or another kernel.",
        proof,
    )


class SVC(KernelMachine):
    """The support vector machine with soft margin, C = ∞ for the hard one.

    min ½‖w‖² + Σ C_i ξ_i (``loss="hinge"``) or Σ C_i ξ_i² (``"squared_hinge"``) subject to
    y_i (w·φ(x_i) + b) ≥ 1 − ξ_i, ξ_i ≥ 0, solved in its dual
    min ½αᵀ(Q + D)α − 1ᵀα, 0 ≤ α ≤ u, yᵀα = 0, Q_ij = y_i y_j K(x_i, x_j). Every fit is certified:
    after a converged one the worst violation of the KKT conditions is at most ``tol`` and the
    relative duality gap at most 2·tol.

    A drop-in for scikit-learn's SVC: samples of negative weight do not count, and a model of dense
    data refuses sparse ones. ``probability`` is not offered: use
    `sklearn.calibration.CalibratedClassifierCV`.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a unit of slack, times the weight of the sample and of its class. ``np.inf`` is the
        hard margin, which raises `NotSeparableError` with its proof where no plane separates.
    kernel : str, callable or Kernel, default="rbf"
        "linear", "poly", "rbf", "sigmoid", "precomputed", a callable f(X, Z) that returns the
        matrix of values (X may then be a list of strings or other objects), or a
        `maxmargin.kernels` object.
    gamma : "scale", "auto" or float, default="scale"
        γ of rbf, poly and sigmoid: 1/(d·Var X), rows weighted, 1/d, or the number itself.
    degree, coef0 : int, float
        p and r of (γ⟨x,z⟩ + r)^p, r also of the sigmoid.
    loss : {"hinge", "squared_hinge"}, default="hinge"
    solver : {"auto", "decomposition", "smo", "active-set", "coordinate-ascent", "qp"}
        "auto" takes "active-set" for small hard margins, else "decomposition", which "active-set"
        takes to the last digit where samples are few. "smo", "active-set", "coordinate-ascent"
        (with ``fit_intercept=False``) and "qp" (a QP library, ``pip install "maxmargin[qp]"``) are
        for small problems and for learners.
    tol : float, default=1e-3
        The largest violation of the KKT conditions.
    cache_size : "auto" or float, default="auto"
        Megabytes for kernel values that are kept; a quarter of the free memory at most by default.
    class_weight : dict, "balanced" or None
    max_iter : int, default=-1
        Steps (moves of a pair of α) a task; −1 sets no limit.
    time_limit : float, optional
        Seconds for all tasks together; the model is then the best one so far.
    warm_start : bool, default=False
        Begin with the α of the last fit, scaled by the change of C; on the same samples.
    multi_class : {"ovo", "ovr"}, default="ovo"
        One machine a pair of classes, or one a class against the rest.
    decision_function_shape : {"ovr", "ovo"}, default="ovr"
        Of many classes: one confidence a class, or the score of every pair.
    break_ties : bool, default=False
        Whether equal votes are decided by the confidences.
    shrinking : bool, default=True
        Leave samples alone for a while that are far from the margin; the answer is the same.
    n_jobs : int, optional
        Cores to use, all by default.
    fit_intercept : bool, default=True
        Whether there is a bias.
    callback : callable, optional
        Called with a `Step` after every round; a true answer stops the fit.
    verbose : bool, default=False
    random_state : int, RandomState instance or None
        Unused: the fit has no randomness. There for scikit-learn's sake.

    Attributes
    ----------
    support_ : ndarray of shape (n_support,)
        Rows of X that are support vectors, class by class.
    support_vectors_ : array or CSR matrix (empty for a precomputed kernel)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_classes − 1, n_support), (n_classes, n_support) for "ovr"
        α y, in LIBSVM's order; CSR where X is.
    intercept_ : ndarray of shape (n_planes,)
    coef_ : ndarray of shape (n_planes, n_features)
        Of a linear kernel.
    fit_status_ : int
        0 where every task converged.
    n_iter_ : ndarray of shape (n_planes,)
        Steps made.
    kernel_ : Kernel
        The kernel with its parameters resolved.
    certificates_, certificate_, statuses_, status_, traces_, trace_
        As of every estimator; see `MarginCertificate`.

    References
    ----------
    Cortes, Vapnik, *Machine Learning* 20 (1995); Chang, Lin, *LIBSVM* (2011).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> model = mm.SVC(C=float("inf"), kernel="linear").fit(X, y)
    >>> print(model.coef_.round(6), model.intercept_.round(6))
    [[-0.333333  0.2     ]] [0.133333]
    >>> model.certificate_.holds(1e-10)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "fit_intercept": ["boolean"],
    }

    def __init__(
        self,
        C: float = 1.0,
        *,
        kernel: str | Callable[[Any, Any], Any] | Kernel = "rbf",
        degree: int = 3,
        gamma: Literal["scale", "auto"] | float = "scale",
        coef0: float = 0.0,
        loss: Literal["hinge", "squared_hinge"] = "hinge",
        solver: Solver = "auto",
        tol: float = 1e-3,
        cache_size: Literal["auto"] | float = "auto",
        class_weight: Any = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        warm_start: bool = False,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        shrinking: bool = True,
        n_jobs: int | None = None,
        fit_intercept: bool = True,
        callback: Callback | None = None,
        verbose: Any = False,
        random_state: Any = None,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.loss = loss
        self.solver = solver
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.shrinking = shrinking
        self.n_jobs = n_jobs
        self.fit_intercept = fit_intercept
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def _pose(self, training: Training, task: Task) -> MarginProblem:
        n = task.rows.size
        hinge = self.loss == "hinge" or np.isinf(self.C)
        costs = np.full(n, np.inf) if np.isinf(self.C) else self.C * training.weights[task.rows]
        return MarginProblem(
            self.kernel_,
            training.X,
            task.labels,
            task.rows,
            upper=costs if hinge else np.full(n, np.inf),
            ridge=np.zeros(n) if hinge else 0.5 / costs,
            balanced=self.fit_intercept,
        )

    def _rescale(self) -> float:
        ratio = self.C / self._fitted_with
        return float(ratio) if np.isfinite(ratio) and ratio > 0.0 else 1.0

    def _attributes(
        self, training: Training, tasks: list[Task], solutions: list[Solution]
    ) -> dict[str, Any]:
        return {**super()._attributes(training, tasks, solutions), "_fitted_with": self.C}


class NuSVC(KernelMachine):
    """The support vector machine with ν in place of C.

    min ½‖w‖² − νρ + Σ u_i ξ_i subject to y_i (w·φ(x_i) + b) ≥ ρ − ξ_i, ξ_i, ρ ≥ 0, u_i = 1/n (in
    proportion to the weights); its dual is min ½αᵀQα, 0 ≤ α ≤ u, yᵀα = 0, Σα ≥ ν. ν bounds the
    fraction of margin errors from above and that of support vectors from below. The fitted model is
    divided by ρ, so that its margin is 1: it is then the machine of C = 1/(nρ).

    Parameters
    ----------
    nu : float, default=0.5
        At most 2·min(n₊, n₋)/n of every pair of classes.
    class_weight : dict, "balanced" or None
        Makes the u_i of a class larger, and others smaller as far as ν remains feasible.
    kernel, degree, gamma, coef0, solver, tol, cache_size, max_iter, time_limit
        As of `SVC`, and so are all others.

    References
    ----------
    Schölkopf, Smola, Williamson, Bartlett, *Neural Computation* 12 (2000).

    Examples
    --------
    >>> import maxmargin as mm
    >>> X, y = mm.datasets.load_six_points(return_X_y=True)
    >>> mm.NuSVC(nu=0.5, kernel="linear").fit(X, y).predict(X)
    array([ 1,  1,  1, -1, -1, -1])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **KernelMachine._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }

    def __init__(
        self,
        nu: float = 0.5,
        *,
        kernel: str | Callable[[Any, Any], Any] | Kernel = "rbf",
        degree: int = 3,
        gamma: Literal["scale", "auto"] | float = "scale",
        coef0: float = 0.0,
        solver: Solver = "auto",
        tol: float = 1e-3,
        cache_size: Literal["auto"] | float = "auto",
        class_weight: Any = None,
        max_iter: int = -1,
        time_limit: float | None = None,
        warm_start: bool = False,
        multi_class: Literal["ovo", "ovr"] = "ovo",
        decision_function_shape: Literal["ovr", "ovo"] = "ovr",
        break_ties: bool = False,
        shrinking: bool = True,
        n_jobs: int | None = None,
        callback: Callback | None = None,
        verbose: Any = False,
        random_state: Any = None,
    ) -> None:
        self.nu = nu
        self.kernel = kernel
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.solver = solver
        self.tol = tol
        self.cache_size = cache_size
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.time_limit = time_limit
        self.warm_start = warm_start
        self.multi_class = multi_class
        self.decision_function_shape = decision_function_shape
        self.break_ties = break_ties
        self.shrinking = shrinking
        self.n_jobs = n_jobs
        self.callback = callback
        self.verbose = verbose
        self.random_state = random_state

    def _check_training(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> Training:
        try:
            return super()._check_training(X, y, sample_weight, reset=reset)
        except validation.OneClassError as error:
            raise ValueError(f"specified nu is infeasible: {error}") from None

    def _pose(self, training: Training, task: Task) -> MarginProblem:
        weights = training.sample_weights[task.rows]
        signs = [task.labels == sign for sign in (1.0, -1.0)]
        totals = [float(weights[of_sign].sum() / weights.sum()) for of_sign in signs]
        if self.nu > 2.0 * min(totals) * (1.0 + 1e-12):
            raise ValueError(
                f"specified nu is infeasible: nu={self.nu}, but at most {2.0 * min(totals):g} for "
                f"'{task.name}', whose classes weigh {totals[0]:.3g} and {totals[1]:.3g} (2·min)."
            )
        upper = training.weights[task.rows]
        upper = upper / upper.sum()
        for of_sign in signs:
            # Weights of classes count as far as ν leaves room: each class has Σα = ν/2.
            upper[of_sign] *= max(1.0, 0.5 * self.nu / upper[of_sign].sum())
        return MarginProblem(
            self.kernel_, training.X, task.labels, task.rows, upper, np.zeros(upper.size),
            linear=0.0, total=float(self.nu),
        )  # fmt: skip

    def _scaled(self, training: Training, task: Task, solution: Solution) -> tuple[Floats, float]:
        assert solution.alpha is not None
        problem, b = self._pose(training, task), float(solution.b[0])
        scores = solution.scores
        if scores is None:
            scores, _ = kernel_scores(problem, solution.alpha * task.labels)
        rho = best_rho(problem, task.labels * (scores + b))
        # Without a margin there is nothing to divide by.
        largest = problem.total * float(problem.kernel.diagonal(problem.X)[problem.index].max())
        return (solution.alpha / rho, b / rho) if rho > 1e-12 * largest else (solution.alpha, b)
