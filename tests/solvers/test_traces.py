"""The bounds P and D that solvers report at every step are those of their snapshots.

Runs over the registries of the solvers' own tests: a new one is covered without a line here.
"""

from __future__ import annotations

import pickle
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.engines.cpu.features import Features
from maxmargin.engines.cpu.gram import Gram
from maxmargin.kernels import RBF, Linear
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits, Progress, Recorder, Step
from maxmargin.solution import Solution, Status, Trace
from maxmargin.solvers.dual import decomposition
from maxmargin.solvers.dual.active_set import ActiveSet, Tuning
from maxmargin.solvers.dual.decomposition import Decomposition
from maxmargin.solvers.joint import CrammerSinger
from maxmargin.solvers.primal import newton
from tests.helpers import dual_solvers as dual
from tests.helpers import joint_solvers as joint
from tests.helpers import primal_solvers as linear
from tests.helpers.algorithms import ALGORITHMS, blobs, cloud, over, quiet

# What adding up in another order makes of P and D, relative to them; of a hard margin α is large,
# and what cancels in P with it.
ROUNDING = 1e-12
HARD = 1e-9
# A certificate shrinks a class of α until yᵀα = 0, which a library leaves at its tolerance only.
SNAPSHOT = 1e-6
LIBRARY = 1e-5
FLOAT32 = float(np.finfo(np.float32).eps)
# Solvers whose D may fall: the proximal point method descends on P, and a penalised bias is found
# by a multiplier.
ASCENDING = ("active-set", "decomposition", "decomposition-in-parts", "smo", "coordinate-ascent")


def watched(solve):
    """Return what solve(progress) answers, and its steps."""
    recorder = Recorder()
    return solve(Progress([recorder])), recorder.steps


def size(certificate):
    return max(abs(v) for v in (certificate.primal, certificate.dual) if np.isfinite(v))


def known(*columns):
    return np.isfinite(columns).all(axis=0)


def assert_traces(problem, solution, steps, *, accuracy=ROUNDING, snapshot=SNAPSHOT, tol=1e-4):
    """P ≥ D; both are those of what the steps hand out, and in the end those of the certificate.

    ``accuracy`` is what rounding may make of them, ``tol`` what the solver was asked for.
    """
    trace, certificate = solution.trace, mm.certify(problem, solution)
    assert len(trace) == len(steps) == trace.primal.size == trace.dual.size
    scale = size(certificate)
    both = known(trace.primal, trace.dual)
    assert (trace.primal >= trace.dual - accuracy * scale)[both].all()
    for step, primal, lower in zip(steps, trace.primal, trace.dual, strict=True):
        # What is measured after a step is in the trace only, and better.
        assert np.isnan(step.primal) or primal <= step.primal + accuracy * scale
        assert np.isnan(step.dual) or lower >= step.dual - accuracy * scale
        assert_hands_out(problem, step, snapshot)
    assert trace.dual[-1] == pytest.approx(certificate.dual, abs=2.0 * tol * scale)
    if np.isfinite(trace.primal[-1]):
        assert trace.primal[-1] == pytest.approx(certificate.primal, abs=2.0 * tol * scale)


def assert_hands_out(problem, step, accuracy):
    """P and D of a step are those of its snapshot, recomputed."""
    found = step.snapshot()
    if not known(step.primal) and not known(step.dual):
        return
    certificate = mm.certify(problem, found)
    if callable(accuracy):
        accuracy = accuracy(found) / size(certificate)
    # P and D of certificates are bounds: what rounding may have done is part of them.
    near = max(accuracy, 1e-9) * size(certificate)
    if known(step.primal):
        assert step.primal == pytest.approx(certificate.primal, abs=near)
    if known(step.dual):
        assert step.dual == pytest.approx(certificate.dual, abs=near)


# Solvers of the dual ------------------------------------------------------------------------------


@pytest.fixture(params=dual.METHODS, ids=lambda method: method.name)
def method(request):
    pytest.importorskip(request.param.needs)
    return request.param


def in_float32(problem):
    """Return what float32 kernel values make of αᵀQα: each of n² terms is off by a rounding unit.

    P and D are good to that while a step stands; the solver makes up for it before the end.
    """
    largest = float(np.abs(problem.kernel.diagonal(problem.X)).max())
    return lambda solution: 4.0 * FLOAT32 * float(solution.alpha.sum()) ** 2 * largest


@pytest.mark.parametrize("name", dual.PROBLEMS)
def test_dual_solvers(method, name):
    problem = dual.posed(method, name)
    solution, steps = watched(lambda progress: dual.answer(method, problem, progress=progress))
    options = {"tol": max(method.holds, 1e-8), "accuracy": HARD}
    if "float32" in method.name:
        options["snapshot"] = in_float32(problem)
    elif method.needs != "numpy":
        options |= {"snapshot": LIBRARY, "accuracy": LIBRARY}
    assert_traces(problem, solution, steps, **options)
    trace = solution.trace
    np.testing.assert_array_equal(trace.dual, -trace.objective)
    if np.isfinite(problem.upper).all() or problem.ridge.all():
        assert known(trace.primal).all()  # of a hard margin only once a plane separates
    assert known(trace.primal)[-1]
    if method.name in ASCENDING:
        assert (np.diff(trace.dual) >= -ROUNDING * np.abs(trace.dual).max()).all()


@pytest.mark.parametrize("options", [{}, {"shrinking": False}], ids=["shrinking", "whole"])
@pytest.mark.parametrize("nu", [False, True], ids=["hinge", "nu"])
def test_primal_is_known_where_all_samples_are_looked_at(nu, options):
    tuning = decomposition.Tuning(restrict_from=100, restricted_share=0.8)
    X, y = dual.blobs(400, 3, 0, noise=0.2)
    problem = DualProblem.hinge(RBF(gamma=0.5), X, y, 10.0)
    if nu:
        problem = DualProblem.nu(RBF(gamma=0.5), X, y, 0.1)
    gram = Gram(problem.kernel, X)
    solver = Decomposition(gram, None, 1e-6, Limits(), 32, tuning=tuning, **options)
    solution, steps = watched(lambda progress: solver.solve(problem, None, progress))
    assert_traces(problem, solution, steps, tol=1e-5)
    trace = solution.trace
    assert known(trace.dual).all()
    assert (np.diff(trace.dual) >= -ROUNDING * np.abs(trace.dual).max()).all()
    assert known(trace.primal).any()
    assert known(trace.primal).all() != options.get("shrinking", True)
    scores = problem.signs * (problem.kernel(X) @ (problem.signs * solution.alpha) + solution.b)
    # All samples are counted, also those that the last steps did not look at.
    assert abs(trace.errors[-1] - (scores <= 0).sum()) <= 2
    assert trace.errors[len(trace) // 2 :].min() > 0.8 * (scores <= 0).sum()


def test_active_set_knows_the_primal_of_whole_chunks_only():
    X, y = dual.blobs(700, 4, 10)
    problem = DualProblem.hinge(RBF(gamma=0.3), X, y, 3.0)
    assert len(y) > Tuning.whole_up_to_variables + Tuning.violators_per_chunk
    solver = ActiveSet(Gram(problem.kernel, X))
    solution, steps = watched(lambda progress: solver.solve(problem, None, progress))
    assert_traces(problem, solution, steps)
    assert not known(solution.trace.primal).any()
    assert (np.diff(solution.trace.dual) >= -1e-10).all()


def test_steps_of_another_problem_say_nothing():
    """Where α grows without end the nearest points of the hulls are looked for instead."""
    problem = DualProblem.hard(Linear(), *mm.datasets.load_six_points(return_X_y=True))
    problem = replace(problem, signs=problem.signs.astype(float))
    solver = ActiveSet(Gram(problem.kernel, problem.X), tuning=Tuning(blurred_margin=1e-16))
    solution, steps = watched(lambda progress: solver.solve(problem, None, progress))
    assert solution.status is not Status.DIVERGED
    (first, *others) = np.flatnonzero(~known(solution.trace.dual))
    assert others == list(range(first + 1, len(steps)))
    assert not known(solution.trace.primal[first:]).any()
    for step in steps[:first]:
        assert_hands_out(problem, step, HARD)


def test_an_inseparable_hard_margin_has_no_primal():
    X, y = mm.datasets.load_xor(return_X_y=True)
    problem = DualProblem.hard(Linear(), X, y.astype(float))
    solution, steps = watched(
        lambda progress: ActiveSet(Gram(Linear(), X)).solve(problem, None, progress)
    )
    assert solution.status is Status.INSEPARABLE
    assert not known(solution.trace.primal).any()
    assert all(np.isnan(step.primal) for step in steps)


# Solvers of the linear machine --------------------------------------------------------------------


@pytest.fixture(params=linear.METHODS, ids=lambda method: method.name)
def plane_method(request):
    return request.param


@pytest.mark.parametrize("name", linear.WEIGHTS)
@pytest.mark.parametrize("bias", linear.BIASES)
@pytest.mark.parametrize("loss", linear.LOSSES)
def test_linear_solvers(plane_method, loss, bias, name):
    X, y = linear.cloud()
    problem = linear.posed(X, y, linear.weights(name), loss, bias)
    solution, steps = watched(
        lambda progress: linear.answer(plane_method, problem, tol=1e-6, progress=progress)
    )
    assert_traces(problem, solution, steps, snapshot=ROUNDING, tol=1e-6)
    trace = solution.trace
    assert known(trace.primal, trace.dual)[-1]
    if plane_method.name != "coordinate-descent":
        assert known(trace.primal, trace.dual).all()
        return
    looked = known(trace.primal)
    assert looked.any()
    assert not looked.all()
    np.testing.assert_array_equal(known(trace.dual), looked if bias == "free" else True)


@pytest.mark.parametrize("loss", linear.LOSSES)
def test_dual_coordinate_ascent_ascends(loss):
    X, y = linear.cloud(60, 80)  # so many features that Newton's method is not called
    problem = linear.posed(X, y, 1.0, loss, "none")
    solution = linear.answer(linear.METHODS[2], problem, tol=1e-8)
    assert (np.diff(solution.trace.dual) >= -ROUNDING * solution.trace.dual[-1]).all()


def test_best_so_far_is_monotone():
    X, y = linear.cloud()
    for bias in linear.BIASES:
        trace = linear.answer(linear.METHODS[1], linear.posed(X, y, 3.0, "hinge", bias)).trace
        assert (np.diff(trace.primal) <= 0.0).all()
        assert (np.diff(trace.dual) >= 0.0).all()


@pytest.mark.parametrize("way", linear.WAYS, ids=lambda way: way.name)
@pytest.mark.parametrize("bias", linear.BIASES)
@pytest.mark.parametrize("loss", linear.LOSSES)
def test_newton_on_some_rows_says_nothing_of_all(way, bias, loss):
    method = replace(linear.METHODS[0], make=partial(newton.SemismoothNewton, tuning=way.tuning))
    X, y = linear.cloud(linear.MANY, 6)
    problem = linear.posed(X, y, linear.weights("some zero", linear.MANY), loss, bias)
    solution, steps = watched(
        lambda progress: linear.answer(method, problem, tol=1e-7, progress=progress)
    )
    assert_traces(problem, solution, steps, snapshot=ROUNDING, tol=1e-7)
    assert known(solution.trace.primal, solution.trace.dual)[-1]
    for step in steps:
        assert (step.alpha() is None) == np.isnan(step.primal)
    if "samples" in way.name:
        assert not known(solution.trace.primal[0])


def test_a_stopped_descent_knows_what_it_publishes():
    X, y = linear.cloud()
    problem = linear.posed(X, y)
    for plane_method in linear.METHODS:
        stopped = linear.answer(plane_method, problem, progress=Progress([lambda step: True]))
        assert stopped.status is Status.STOPPED
        certificate = mm.certify(problem, stopped)
        assert stopped.trace.primal[-1] == pytest.approx(certificate.primal, rel=ROUNDING)
        assert stopped.trace.dual[-1] == pytest.approx(certificate.dual, rel=1e-9)


# The joint machine --------------------------------------------------------------------------------


@pytest.mark.parametrize("bias", joint.BIASES)
@pytest.mark.parametrize("way", joint.WAYS)
def test_crammer_singer(way, bias):
    X, labels = joint.blobs(100, 5, 3, seed=14)
    C = np.random.default_rng(2).uniform(0.1, 3.0, 100)
    C[::7] = 0.0
    problem = joint.posed(X, labels, C, bias)
    solver = CrammerSinger(Features(X), 1e-7, tuning=joint.WAYS[way])
    solution, steps = watched(lambda progress: solver.solve(problem, None, progress))
    assert solution.status is Status.CONVERGED
    assert_traces(problem, solution, steps, snapshot=ROUNDING, tol=1e-7)
    trace = solution.trace
    assert known(trace.primal, trace.dual)[-1]
    if bias != "free":
        assert known(trace.dual).all()
    if way == "sequential" and bias == "none":
        assert (np.diff(trace.dual) >= -ROUNDING * trace.dual[-1]).all()
    if way == "newton":
        assert known(steps[0].primal)


@pytest.mark.parametrize("bias", joint.BIASES)
def test_samples_of_many_rows_say_nothing(bias):
    X, labels = joint.blobs(900, 2, 3, seed=19)
    problem = joint.posed(X, labels, 1.0, bias)
    solver = CrammerSinger(Features(X), 1e-5, tuning=joint.FEW)
    solution, steps = watched(lambda progress: solver.solve(problem, None, progress))
    assert_traces(problem, solution, steps, snapshot=ROUNDING, tol=1e-5)
    for step in steps:
        if step.alpha() is None:
            assert np.isnan([step.primal, step.dual]).all()
    assert steps[0].alpha() is None
    assert known(solution.trace.primal, solution.trace.dual)[-1]


# Estimators, with and without a gap ---------------------------------------------------------------


MACHINES = {
    "svc": lambda: mm.SVC(C=2.0),
    "squared": lambda: mm.SVC(loss="squared_hinge"),
    "nu": lambda: mm.NuSVC(nu=0.3),
    "pairs": lambda: mm.SVC(multi_class="ovo"),
    "linear": lambda: mm.LinearSVC(),
    "hinge": lambda: mm.LinearSVC(loss="hinge", multi_class="ovo"),
    "interior point": lambda: mm.LinearSVC(solver="interior-point"),
    "descent": lambda: mm.LinearSVC(solver="coordinate-descent"),
    "joint": lambda: mm.LinearSVC(multi_class="crammer_singer"),
}


@pytest.mark.parametrize("name", MACHINES)
def test_estimators_publish_both_sides(name):
    X, y = blobs(150, 3, 3, gap=2.0)
    recorder = Recorder()
    model = MACHINES[name]().set_params(callback=recorder).fit(X, y)
    assert len(recorder.steps) == sum(map(len, model.traces_))
    for trace, certificate in zip(model.traces_, model.certificates_, strict=True):
        scale = abs(certificate.primal)
        assert trace.dual[-1] == pytest.approx(certificate.dual, abs=1e-2 * scale)
        assert trace.primal[-1] == pytest.approx(certificate.primal, abs=1e-2 * scale)
        both = known(trace.primal, trace.dual)
        assert (trace.primal >= trace.dual - 1e-9 * scale)[both].all()


def test_a_hard_linear_machine_ends_at_its_optimum():
    X, y = mm.datasets.load_six_points(return_X_y=True)
    for solver in ("newton", "interior-point", "coordinate-descent"):
        trace = mm.LinearSVC(C=np.inf, solver=solver, tol=1e-8).fit(X, y).trace_
        assert trace.primal[-1] == pytest.approx(17 / 225, rel=1e-6)
        assert trace.dual[-1] == pytest.approx(17 / 225, rel=1e-6)


@quiet
@over(ALGORITHMS)
def test_traces_of_separating_rules_have_no_bounds(algorithm):
    X, y = cloud(40, 2)
    recorder = Recorder(every_update=True)
    model = algorithm.make(max_iter=3, callback=recorder).fit(X, y)
    trace = model.trace_
    assert len(trace) == trace.primal.size == trace.dual.size > 0
    assert np.isnan([trace.primal, trace.dual]).all()
    assert np.isnan([[step.primal, step.dual] for step in recorder.steps]).all()


UNITS = {
    "perceptron": ("pass", lambda: mm.Perceptron(max_iter=5)),
    "batch": ("step", lambda: mm.Perceptron(update="batch", max_iter=5)),
    "pocket": ("pass", lambda: mm.Pocket(max_iter=5)),
    "relaxation": ("pass", lambda: mm.Relaxation(max_iter=5)),
    "lms": ("pass", lambda: mm.LMS(learning_rate=0.01, max_iter=5)),
    "kernel perceptron": ("pass", lambda: mm.KernelPerceptron(kernel="rbf", max_iter=5)),
    "pseudoinverse": ("step", lambda: mm.Pseudoinverse()),
    "ho-kashyap": ("step", lambda: mm.HoKashyap(max_iter=5)),
    "svc": ("round", lambda: mm.SVC()),
    "smo": ("round", lambda: mm.SVC(solver="smo", kernel="linear")),
    "active-set": ("step", lambda: mm.SVC(solver="active-set")),
    "nu": ("round", lambda: mm.NuSVC(nu=0.4)),
    "newton": ("step", lambda: mm.LinearSVC(solver="newton", loss="hinge")),
    "interior-point": ("step", lambda: mm.LinearSVC(solver="interior-point", loss="hinge")),
    "descent": ("pass", lambda: mm.LinearSVC(solver="coordinate-descent", tol=0.1)),
}
# Those that count the errors of the planes that they hand out, at least in the end.
COUNTING = ("pseudoinverse", "ho-kashyap", "svc", "smo", "nu", "newton", "interior-point")


@quiet
@pytest.mark.parametrize("name", UNITS)
def test_exact_errors_are_those_of_the_step(name):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=400) > 0, 1, -1)
    unit, make = UNITS[name]
    recorder = Recorder()
    model = make().set_params(callback=recorder).fit(X, y)
    trace = model.trace_
    assert trace.unit == unit
    np.testing.assert_array_equal(trace.exact, [step.exact for step in recorder.steps])
    assert trace.exact[-1] == (name in COUNTING)
    for step in recorder.steps:
        found = step.snapshot()
        if len(found.w):
            g = X @ found.w[0] + found.b[0]
        else:
            g = model.kernel_(X, X[step.rows]) @ (found.alpha * step.labels) + found.b[0]
        if step.exact:
            assert step.errors == (y * g <= 0).sum()


# The records --------------------------------------------------------------------------------------


def nothing():
    return Solution(np.zeros((1, 1)), np.zeros(1), Status.STOPPED)


def test_progress_keeps_what_is_finite():
    seen = []
    progress = Progress([seen.append])
    progress.measured(1.0, 1.0)  # of nothing
    assert len(progress.trace()) == progress.trace().primal.size == 0
    progress.iteration(1.0, 2, 3.0, nothing)
    progress.iteration(1.0, 2, 3.0, nothing, primal=np.inf, dual=-np.inf)
    progress.iteration(1.0, 2, 3.0, nothing, primal=np.float32(7.0), dual=5)
    progress.measured(6.0, np.nan)
    trace = progress.trace()
    np.testing.assert_array_equal(trace.primal, [np.nan, np.nan, 6.0])
    np.testing.assert_array_equal(trace.dual, [np.nan, np.nan, 5.0])
    assert (trace.primal.dtype, trace.dual.dtype) == (np.float64, np.float64)
    np.testing.assert_array_equal([step.primal for step in seen], [np.nan, np.nan, 7.0])
    assert [type(step.primal) for step in seen] == [float] * 3
    with pytest.raises(TypeError):
        progress.iteration(1.0, 2, 3.0, nothing, 7.0)


def test_a_trace_without_them_has_none():
    columns = np.arange(1, 4), np.ones(3), np.zeros(3, dtype=np.int64), np.ones(3), np.ones(3)
    trace = Trace(*columns)
    assert len(trace) == 3
    for side in (trace.primal, trace.dual):
        np.testing.assert_array_equal(side, np.full(3, np.nan))
    again = pickle.loads(pickle.dumps(Trace(*columns, np.arange(3.0), np.zeros(3))))
    np.testing.assert_array_equal(again.primal, [0.0, 1.0, 2.0])
    assert len(replace(trace, dual=np.zeros(3))) == 3
    assert (trace.exact.tolist(), trace.unit) == ([False] * 3, "step")


def test_a_step_without_them_has_none():
    step = Step(1, 2.0, 3, 4.0, 5.0, snapshot=nothing)
    assert np.isnan([step.primal, step.dual]).all()
    assert (step.task, step.sample) == (0, None)
