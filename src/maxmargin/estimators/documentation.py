"""Entries of docstrings that several estimators share, written once and inserted at import."""

from __future__ import annotations

import re
from textwrap import indent
from typing import TypeVar

Class = TypeVar("Class", bound=type)

# A line of a docstring that stands for one of the entries below: {{ name }}.
_PLACE = re.compile(r"^( *)\{\{ (\w+) \}\}$", re.MULTILINE)


def documented(cls: Class) -> Class:
    """Insert shared entries into the docstring of a class, where it has ``{{ name }}``."""
    if cls.__doc__ is not None:  # python -OO has none
        cls.__doc__ = _PLACE.sub(lambda place: indent(ENTRIES[place[2]], place[1]), cls.__doc__)
    return cls


ENTRIES = {
    name: text.strip("\n")
    for name, text in {
        # Parameters of linear rules.
        "update": """
update : {"single", "batch"}, default="single"
    Correct the plane after every sample, or after a pass over all of them.
""",
        "bias": """
bias : {"plain", "radius"}, default="plain"
    "radius" is Novikoff's convention: b moves by ρR², R = max‖x‖ (of a batch in ``partial_fit``).
""",
        "init": """
init : {"zeros", "random"}, default="zeros"
    Where a starts.
""",
        "fit_intercept": """
fit_intercept : bool, default=True
    Whether there is a bias b.
""",
        "multi_class": """
multi_class : {"ovr", "ovo", "kesler"}, default="ovr"
    One plane per class against the rest, one per pair of classes, or a linear machine by Kesler's
    construction, which Dask collections of more than two classes do not take.
""",
        "shuffle": """
shuffle : bool, default=True
    Visit the rows in a new random order in every pass. False visits them as they come, which is
    the textbook's order, and a poor one for rows that are sorted by class. Batch updates do not
    depend on the order.
""",
        "visited_in_partitions": """
Of Dask collections the single-sample rule visits one partition after the other; the plane travels
from worker to worker, and a pass is one round. With ``shuffle=False`` partitions and rows are
visited as they come: the fit is that of the same rows in memory. With ``shuffle=True`` every pass
visits the partitions in a random order, and the rows of each in a random order: those of pass p
are drawn from the seeds (s, p) and (s, p, number of the first row of the partition), where s is
drawn from ``random_state``. A batch rule takes one round per step. Callbacks are called once per
pass, and ``partial_fit`` takes no Dask collection.
""",
        "passes": """
max_iter : int, default=1000
    Passes over the data.
""",
        "class_weight": """
class_weight : dict, "balanced" or None, default=None
    Weight of each class, times that of the sample. "balanced" gives every class the same total.
""",
        "warm_planes": """
warm_start : bool, default=False
    Start at the planes of the last fit.
""",
        "random_state": """
random_state : int, RandomState or None, default=0
    For ``shuffle`` and ``init="random"``: the same number makes the same fit; None takes another
    one every time.
""",
        "callback": """
callback : callable, optional
    Called with a `Step` after each pass or step, and after each update if it has a true attribute
    ``every_update``; a true return value stops the fit.
""",
        "verbose": """
verbose : bool, default=False
    Print a line per pass, step or round.
""",
        # Parameters of kernels and machines.
        "kernel": """
kernel : str, callable or Kernel, default="rbf"
    "linear", "poly", "rbf", "sigmoid", "precomputed", a callable f(X, Z) that returns the matrix
    of values, or a `maxmargin.kernels` object.
""",
        "degree": """
degree : int, default=3
    p of the polynomial kernel (γ⟨x,z⟩ + r)^p.
""",
        "gamma": """
gamma : "scale", "auto" or float, default="scale"
    γ of rbf, poly and sigmoid: 1/(d·Var X), rows weighted, 1/d, or the number itself.
""",
        "coef0": """
coef0 : float, default=0.0
    r of the polynomial and of the sigmoid kernel.
""",
        "cost": """
C : float, default=1.0
    Cost of a unit of slack, times the weight of the sample and of its class. ``np.inf`` is the
    hard margin, which raises `NotSeparableError` with a verified proof where no plane separates.
    Where float64 shows neither a plane nor such a proof, a ConvergenceWarning says that the
    question is undecided, and the certificate's primal value is ∞.
""",
        "regression_cost": """
C : float, default=1.0
    Cost of a unit of slack, times the weight of the sample. ``np.inf`` allows none: every target
    must lie in the tube.
""",
        "dual_solver": """
solver : {"auto", "decomposition", "smo", "active-set", "coordinate-ascent", "qp"}, default="auto"
    "auto" solves a linear kernel with more samples than features as the linear machine, takes
    "active-set" for small hard margins, and "decomposition" otherwise; where that is slow on up to
    some thousand samples, an interior point method goes on, and where samples are few "active-set"
    takes the answer to the last digit. "smo", "active-set", "coordinate-ascent" (with
    ``fit_intercept=False``) and "qp" (a QP library, ``pip install "maxmargin[qp]"``) are for small
    problems and for learners; with up to 3000 samples they give up after some seconds.
""",
        "kkt_tol": """
tol : float, default=1e-3
    The largest violation of the KKT conditions.
""",
        "regression_tol": """
tol : float, default=1e-3
    The largest violation of the KKT conditions, relative to half the range of the targets.
""",
        "warm_alpha": """
warm_start : bool, default=False
    Begin with the α of the last fit; on the same samples.
""",
        "warm_alpha_of_cost": """
warm_start : bool, default=False
    Begin with the α of the last fit, scaled by the change of C; on the same samples.
""",
        "cache_size": """
cache_size : "auto" or float, default="auto"
    Megabytes for kernel values that are kept; by default a quarter of the free memory at most.
""",
        "steps": """
max_iter : int, default=-1
    Steps (moves of a pair of α) per task; −1 sets no limit.
""",
        "time_limit": """
time_limit : float, optional
    Seconds for all tasks together, the proof included; the model is then the best one seen, and
    never worse than w = 0.
""",
        "pairs": """
multi_class : {"ovo", "ovr"}, default="ovo"
    One machine per pair of classes, or one per class against the rest.
""",
        "decision_function_shape": """
decision_function_shape : {"ovr", "ovo"}, default="ovr"
    Of several classes: one confidence per class, or the score of every pair.
""",
        "break_ties": """
break_ties : bool, default=False
    Whether equal votes are decided by the confidences.
""",
        "shrinking": """
shrinking : bool, default=True
    Set samples far from the margin aside for some rounds; the answer is the same.
""",
        "n_jobs": """
n_jobs : int, optional
    Cores to use, all by default.
""",
        "device": """
device : {"auto", "cpu", "cuda", "cuda:1", ...}, default="auto"
    Where to fit and to predict. "cuda" is a GPU, "cuda:1" the second one of several; both need
    ``pip install "maxmargin[gpu]"``. "auto" leaves arrays of torch and CuPy that are on a GPU there
    and uses the CPU for all others. What has no solver on a GPU is computed on the CPU, and a model
    that was fitted on one predicts without it, with a warning.
""",
        "fold_random_state": """
random_state : int, RandomState instance or None, default=None
    Deals the samples to the folds of ``probability=True``; the fit itself has no randomness.
""",
        "probability": """
probability : bool, default=False
    Whether to fit what ``predict_proba`` needs: sigmoids of the scores, from five more fits of each
    task on four fifths of its samples. `sklearn.calibration.CalibratedClassifierCV` is the better
    choice: it knows other shapes than the sigmoid, and averages over its folds. "deprecated", which
    is scikit-learn's default, means False.
""",
        # Attributes.
        "classes": """
classes_ : ndarray of shape (n_classes,)
    The labels, in order.
""",
        "certified_attributes": """
n_features_in_ : int
    Features of the training data.
feature_names_in_ : ndarray of shape (n_features_in_,)
    Their names, where X had names.
certificates_ : list of Certificate
    One per task.
certificate_ : Certificate
    The worst of them.
statuses_ : list of Status
    Which rule ended each task.
status_ : Status
    That of the task with the worst certificate.
traces_ : list of Trace
    Objective, errors and time after each iteration, one trace per task. `maxmargin.solution.Trace`
    says what an iteration is and what errors are.
trace_ : Trace
    The longest of them.
n_updates_ : int
    Corrections made in all tasks.
fit_report_ : FitReport
    Of a fit to a Dask collection only: rounds, passes over the data, bytes moved and seconds. A
    pickle keeps it, a file of `maxmargin.save` does not.
""",
        "plane_attributes": """
coef_ : ndarray of shape (n_planes, n_features)
    w of every plane.
intercept_ : ndarray of shape (n_planes,)
    b of every plane.
hyperplane_ : Hyperplane
    The plane of two classes.
n_iter_ : int
    Passes or steps of the longest task.
""",
        "separates": """
separates_ : bool
    Whether every task's plane has all of its samples strictly on their side.
""",
        "machine_attributes": """
support_ : ndarray of shape (n_support,)
    Rows of X that are support vectors, class by class.
support_vectors_ : array or CSR matrix of shape (n_support, n_features)
    These rows (empty for a precomputed kernel).
n_support_ : ndarray of shape (n_classes,)
    Support vectors of each class.
dual_coef_ : ndarray of shape (n_classes - 1, n_support) or (n_classes, n_support)
    α y, in LIBSVM's order; a row per class for "ovr", and for "crammer_singer": α_i^k of
    w_k = Σ_i α_i^k φ(x_i). CSR where X is.
intercept_ : ndarray of shape (n_planes,)
    b of every plane.
coef_ : ndarray of shape (n_planes, n_features)
    w of every plane, of a linear kernel only.
hyperplane_ : Hyperplane
    The plane of two classes, of a linear kernel only.
kernel_ : Kernel
    The kernel with its parameters resolved.
fit_status_ : int
    0 where every task converged, else 1.
n_iter_ : ndarray of shape (n_planes,)
    Steps of each task.
shape_fit_ : tuple of int
    Shape of the training data.
class_weight_ : ndarray of shape (n_classes,)
    Weight of each class.
probA_ : ndarray of shape (n_planes,)
    Of ``probability=True``: the first class of a pair has the probability 1/(1 + exp(A f + B)), f
    being its score, which is −g of two classes.
probB_ : ndarray of shape (n_planes,)
    B of these.
""",
        "regression_attributes": """
support_ : ndarray of shape (n_support,)
    Rows of X that are support vectors, in order.
support_vectors_ : array or CSR matrix of shape (n_support, n_features)
    These rows (empty for a precomputed kernel).
n_support_ : ndarray of shape (1,)
    The number of support vectors.
dual_coef_ : ndarray of shape (1, n_support)
    Coefficients of the support vectors in w: α − α* of a regression. CSR where X is.
intercept_ : ndarray of shape (1,)
    b.
coef_ : ndarray of shape (1, n_features)
    w, of a linear kernel only.
kernel_ : Kernel
    The kernel with its parameters resolved.
fit_status_ : int
    0 where the fit converged, else 1.
n_iter_ : int
    Steps of the solver.
shape_fit_ : tuple of int
    Shape of the training data.
""",
    }.items()
}
