"""scikit-learn's own checks, for every estimator in every way of updating and reducing."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

import maxmargin as mm

# A row of weight 2 and a row given twice differ for rules that visit rows one after the other:
# the second visit finds the plane already corrected.
VISITS_ROWS = {
    f"check_sample_weight_equivalence_on_{kind}_data": "single-sample rules visit rows in order"
    for kind in ("dense", "sparse")
}

# Σα is ν/2 in each class, whatever they weigh: no weight makes a class count for next to nothing.
KEEPS_NU = {"check_class_weight_classifiers": "ν limits the weight of a class"}
# The weights of that check leave the lightest class less than a quarter of the weight of a pair.
INFEASIBLE = {
    f"check_sample_weight_equivalence_on_{kind}_data": "ν = 0.5 is infeasible, by the check's data"
    for kind in ("dense", "sparse")
}

# Of some machines the checks ask for more digits than the root of their tol has.
ROOT_OF_TOL = {
    f"check_sample_weight_equivalence_on_{kind}_data": "planes are known to the root of tol"
    for kind in ("dense", "sparse")
}
# Whatever the classes weigh, planes through the origin leave rows on both sides of them.
NO_BIAS = {"check_class_weight_classifiers": "planes through the origin, as scikit-learn's own"}

ONLINE = [
    mm.Perceptron(),
    mm.Perceptron(bias="radius"),
    mm.Perceptron(multi_class="ovo", shuffle=True, init="random"),
    mm.Perceptron(multi_class="kesler"),
    mm.Pocket(),
    mm.Relaxation(),
    mm.LMS(),
    mm.KernelPerceptron(),
    mm.KernelPerceptron(kernel="precomputed"),
]
BATCH = [
    mm.Perceptron(update="batch"),
    mm.Relaxation(update="batch"),
    mm.LMS(update="batch"),
    mm.Pseudoinverse(),
    mm.Pseudoinverse(ridge=1.0, multi_class="kesler"),
    mm.HoKashyap(),
]
MARGIN = [
    mm.SVC(),
    mm.SVC(kernel="linear"),
    mm.SVC(kernel="precomputed"),
    mm.SVC(loss="squared_hinge"),
    mm.SVC(fit_intercept=False),
    mm.SVC(solver="active-set", break_ties=True),
    mm.NuSVC(),
    mm.NuSVC(nu=0.2, multi_class="ovr"),
    mm.LinearSVC(),
    # Two fits of a linear machine agree to the root of tol, the checks ask for seven digits.
    mm.LinearSVC(tol=1e-10),
    mm.LinearSVC(tol=1e-10, loss="hinge", multi_class="ovo"),
    mm.LinearSVC(tol=1e-10, solver="interior-point", class_weight="balanced"),
    mm.LinearSVC(tol=1e-10, solver="coordinate-descent", loss="hinge", penalize_intercept=True),
    mm.LinearSVC(tol=1e-10, warm_start=True, fit_intercept=False),
    mm.LinearSVC(tol=1e-10, loss="hinge", multi_class="crammer_singer"),
]
OTHERS = [
    mm.SVR(),
    mm.SVR(kernel="linear", loss="squared_epsilon_insensitive"),
    mm.SVR(kernel="precomputed"),
    mm.SVR(fit_intercept=False),
    mm.NuSVR(),
    mm.NuSVR(kernel="linear", solver="active-set"),
    mm.OneClassSVM(),
    mm.OneClassSVM(kernel="linear", nu=0.1),
    mm.LinearSVR(),
    mm.LinearSVR(loss="squared_epsilon_insensitive"),
    mm.LinearSVR(tol=1e-10),
    mm.LinearSVR(tol=1e-10, solver="coordinate-descent", penalize_intercept=True),
    mm.LinearSVR(tol=1e-10, solver="interior-point", epsilon=0.1),
    mm.LinearSVR(tol=1e-10, warm_start=True, fit_intercept=False),
]

# Combinations of what the estimators above are checked with one by one.
ONLINE_COMBINATIONS = [
    mm.Pocket(multi_class="kesler"),
    mm.Relaxation(multi_class="kesler", relaxation=0.5),
    mm.LMS(multi_class="kesler"),
    mm.KernelPerceptron(kernel="linear", multi_class="ovo"),
]
COMBINATIONS = [
    *ONLINE_COMBINATIONS,
    mm.Perceptron(update="batch", multi_class="kesler"),
    mm.LMS(update="batch", multi_class="ovo"),
    mm.Pseudoinverse(margins="fisher", multi_class="ovo"),
    mm.HoKashyap(multi_class="kesler"),
    mm.SVC(multi_class="ovr", class_weight="balanced"),
    mm.NuSVC(kernel="linear", nu=0.2),
]


def expected_failures(estimator):
    """Return the documented exceptions, for the rules that they are about."""
    if isinstance(estimator, mm.LinearSVC):
        joint = estimator.multi_class == "crammer_singer"
        return (ROOT_OF_TOL if joint else {}) | ({} if estimator.fit_intercept else NO_BIAS)
    if isinstance(estimator, mm.LinearSVR):
        return ROOT_OF_TOL if estimator.get_params() == mm.LinearSVR().get_params() else {}
    if isinstance(estimator, mm.NuSVC):
        return KEEPS_NU | INFEASIBLE if estimator.nu == 0.5 else KEEPS_NU
    is_online = any(
        estimator.get_params() == online.get_params() for online in ONLINE + ONLINE_COMBINATIONS
    )
    return VISITS_ROWS if is_online else {}


# Most data of the checks are not separable: a rule without an end of its own stops at the limit.
UNLIMITED = mm.LMS | mm.HoKashyap | mm.SVC | mm.NuSVC
for rule in ONLINE + BATCH + COMBINATIONS:
    if "max_iter" in rule.get_params() and not isinstance(rule, UNLIMITED):
        rule.set_params(max_iter=100)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(ONLINE + BATCH + MARGIN + OTHERS, expected_failed_checks=expected_failures)
def test_sklearn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(COMBINATIONS, expected_failed_checks=expected_failures)
def test_sklearn_check_of_combinations(estimator, check):
    check(estimator)
