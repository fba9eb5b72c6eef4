"""Tasks side by side on a device: every answer is certified, whatever the memory and the types."""

from dataclasses import replace

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.engines.base import DeviceMemoryFull, TaskArrays, TaskGoal
from maxmargin.engines.registry import engine_for
from maxmargin.kernels import RBF
from maxmargin.problems import DualProblem
from maxmargin.progress import Limits
from maxmargin.solution import Solution, Status

from ...helpers.devices import marked

torch = pytest.importorskip("torch")

from maxmargin.engines.torch import engine as engine_module  # noqa: E402
from maxmargin.engines.torch import tasks as tasks_module  # noqa: E402

KERNEL = RBF(0.4)


def samples(n=700, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 4))
    noise = 0.4 * rng.standard_normal(n)
    first = np.where(X[:, 0] + X[:, 1] ** 2 - 1.0 + noise > 0, 1.0, -1.0)
    return X, first, np.where(X[:, 2] > noise, 1.0, -1.0)


def pair(index, y, C):
    zeros = np.zeros(index.size)
    X, _, _ = samples()
    return DualProblem.classification(KERNEL, X, y[index], zeros + C, zeros, index=index)


def posed(name):
    X, first, second = samples()
    some, others = np.arange(0, 700, 2), np.arange(100, 700)
    curve = np.sin(X[:, 0]) + 0.1 * X[:, 1]
    weights = np.random.default_rng(1).uniform(0.1, 4.0, 700)
    return {
        "one": lambda: [DualProblem.hinge(KERNEL, X, first, 3.0)],
        "weighted": lambda: [DualProblem.hinge(KERNEL, X, first, weights)],
        "pairs": lambda: [
            pair(some, first, 2.0),
            pair(others, second, 2.0),
            pair(some, second, 9.0),
        ],
        "squared": lambda: [DualProblem.squared_hinge(KERNEL, X, y, 3.0) for y in (first, second)],
        "regression": lambda: [DualProblem.regression(KERNEL, X, curve / 2.0, 3.0, 0.1)],
        "one class": lambda: [DualProblem.one_class(KERNEL, X, 0.3)],
        "costly": lambda: [DualProblem.hinge(KERNEL, X, first, 3000.0)],
        "lopsided": lambda: [DualProblem.hinge(KERNEL, X, first, np.where(first > 0, 0.01, 1.0))],
        "one-sided": lambda: [DualProblem.hinge(KERNEL, X, first, np.where(first > 0, 1e-6, 10.0))],
    }[name]()


NAMES = [
    "one", "weighted", "pairs", "squared", "regression", "one class", "costly", "lopsided",
    "one-sided",
]  # fmt: skip


def solved(problems, device="cpu", alpha=None, tol=1e-3, **options):
    tasks = TaskArrays.of(problems, _feasible(problems) if alpha is None else alpha)
    limits = options.pop("limits", Limits())
    goal = TaskGoal(tol, tol, np.full(len(problems), 10**9), 1e-14, limits)
    engine = engine_for(problems[0].X, "torch", device=device, **options)
    ended = engine.solve_small(KERNEL, tasks, "exact", goal)
    parts = zip(problems, np.split(ended.alpha, tasks.starts[1:-1]), ended.b, strict=True)
    answers = [
        (each, Solution(np.empty((0, 0)), np.array([b]), Status.CONVERGED, alpha=part))
        for each, part, b in parts
    ]
    return ended, [mm.certify(*answer) for answer in answers]


def _feasible(problems):
    """α = 0, or for one class the first of them at their bound."""
    starts = []
    for each in problems:
        alpha, left = np.zeros(each.n_variables), sum(each.sums)
        n_full = int(left)
        alpha[:n_full] = 1.0
        if left > n_full:
            alpha[n_full] = left - n_full
        starts.append(alpha)
    return np.concatenate(starts)


@pytest.fixture(params=["whole", "working sets", "few rows", "float32"])
def way(request, monkeypatch):
    """How much is in a working set, and what is stored of K."""
    tuning = tasks_module.TUNING
    if request.param != "whole":
        tuning = replace(
            tuning,
            whole_up_to_variables=64,
            working_set=128,
            small_working_set=128,
            large_working_set=128,
            few_tasks=3,
        )
    monkeypatch.setattr(tasks_module, "TUNING", tuning)
    if request.param == "float32":
        monkeypatch.setattr(engine_module, "value_type", lambda device: torch.float32)
    return {"budget": 3.5e6} if request.param == "few rows" else {}


@pytest.mark.parametrize("device", marked(["cpu", "cuda"]))
@pytest.mark.parametrize("name", NAMES)
def test_answers_are_certified(name, way, device):
    ended, certificates = solved(posed(name), device, **way)
    assert ended.converged.all()
    assert all(certificate.holds(1e-3) for certificate in certificates)
    assert all(certificate.balance < 1e-9 for certificate in certificates)


@pytest.mark.parametrize("device", marked(["cpu", "cuda"]))
def test_the_same_again(way, device):
    first, second = (solved(posed("pairs"), device, **way)[0] for _ in range(2))
    np.testing.assert_array_equal(first.alpha, second.alpha)
    np.testing.assert_array_equal(first.b, second.b)


def test_finer_tolerances():
    ended, certificates = solved(posed("one"), tol=1e-6)
    assert ended.converged.all()
    assert certificates[0].holds(1e-6)


def test_a_warm_start_takes_fewer_steps():
    problems = posed("pairs")
    cold, _ = solved(problems)
    warm, certificates = solved(problems, alpha=cold.alpha)
    assert warm.steps.sum() < 0.1 * cold.steps.sum()
    assert all(certificate.holds(1e-3) for certificate in certificates)


def test_tasks_in_turns(monkeypatch):
    made = []
    solve = tasks_module._solve

    def counted(rows, exact, tasks, goal, budget):
        made.append(tasks.sizes.size)
        return solve(rows, exact, tasks, goal, budget)

    monkeypatch.setattr(tasks_module, "_solve", counted)
    tuning = replace(tasks_module.TUNING, whole_up_to_variables=64, large_working_set=128)
    monkeypatch.setattr(tasks_module, "TUNING", tuning)
    problems = posed("pairs")
    ended, certificates = solved(problems, budget=2.2e6)
    assert made == [2, 1]
    assert ended.alpha.size == sum(each.n_variables for each in problems)
    assert all(certificate.holds(1e-3) for certificate in certificates)


def test_memory_that_is_too_small():
    with pytest.raises(DeviceMemoryFull, match="working set"):
        solved(posed("one"), budget=1e4)


def test_smaller_budgets_are_tried_where_memory_is_full(monkeypatch):
    asked = []
    solve = engine_module.solve_in_turns

    def full_at_first(rows, exact, tasks, goal, budget):
        asked.append(budget)
        if len(asked) < 3:
            raise torch.OutOfMemoryError
        return solve(rows, exact, tasks, goal, budget)

    monkeypatch.setattr(engine_module, "solve_in_turns", full_at_first)
    _, certificates = solved(posed("one"), budget=4e8)
    assert asked == [4e8, 2e8, 1e8]
    assert certificates[0].holds(1e-3)


def test_a_limit_of_seconds(way):
    ended, _ = solved(posed("costly"), limits=Limits(None, 0.0), **way)
    assert not ended.converged.any()
    assert np.isfinite(ended.alpha).all()


def test_newtons_method_shortens_long_rounds(monkeypatch):
    """Of a costly machine, whose steps of pairs are many and short."""
    tuning = replace(tasks_module.TUNING, whole_up_to_variables=64, working_set=256)
    steps = []
    for newton_from in (np.inf, 2.0):
        monkeypatch.setattr(tasks_module, "TUNING", replace(tuning, newton_from=newton_from))
        ended, certificates = solved(posed("costly"))
        assert certificates[0].holds(1e-3)
        steps.append(ended.steps.sum())
    assert steps[1] < 0.6 * steps[0]


def test_two_groups_and_no_bias_are_left_to_others():
    X, y, _ = samples()
    for problem in (
        DualProblem.nu(KERNEL, X, y, 0.3),
        DualProblem.hinge(KERNEL, X, y, 1.0, bias=False),
    ):
        goal = TaskGoal(1e-3, 1e-3, np.full(1, 10**9), 1e-14)
        engine = engine_for(X, "torch", device="cpu")
        order = np.concatenate(problem.groups) if problem.groups else np.arange(700)
        tasks = TaskArrays.of([problem.restrict(order)])
        assert engine.solve_small(KERNEL, tasks, "exact", goal) is None
