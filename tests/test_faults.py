"""Bad input and faults: the rows of shared/faults.md that concern the separating algorithms."""

from __future__ import annotations

import ctypes
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path

import numba
import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

import maxmargin as mm
from maxmargin.runtime import row_access as rows_module
from tests.helpers.algorithms import (
    ALGORITHMS,
    LINEAR,
    Algorithm,
    blobs,
    cloud,
    over,
    quiet,
    weights_of,
)
from tests.helpers.interruption import interrupt

# What does not separate, but is given the same data.
MARGIN = [
    Algorithm(name, mm.LinearSVC, {"solver": name})
    for name in ("newton", "interior-point", "coordinate-descent")
]
X, Y = blobs(20, 3)
SCALES = np.array([1e-8, 1.0, 1e8])


def checks(model) -> None:
    """Every published number is finite."""
    assert np.isfinite(model.intercept_).all()
    assert np.isfinite(model.certificate_.violation)
    assert np.isfinite(model.certificate_.margin)


# 1: NaN and infinity -----------------------------------------------------------------------


@over(ALGORITHMS + MARGIN)
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("as_sparse", [False, True])
def test_1_not_finite(algorithm, value, as_sparse):
    bad = X.copy()
    bad[7, 2] = value
    bad = sparse.csr_array(bad) if as_sparse else bad
    with pytest.raises(ValueError, match=r"row 7, column 2"):
        algorithm.make().fit(bad, Y)
    model = algorithm.make(max_iter=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, Y)
    with pytest.raises(ValueError, match=r"row 7, column 2"):
        model.predict(bad)


def test_1_not_finite_in_a_named_column():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["mass", "width", "height"])
    frame.loc[3, "width"] = np.nan
    with pytest.raises(ValueError, match=r"row 3, column 'width'"):
        mm.Perceptron().fit(frame, Y)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_1_not_finite_to_separability(value):
    bad = X.copy()
    bad[7, 2] = value
    with pytest.raises(ValueError, match=r"row 7, column 2"):
        mm.separability(bad, Y)


# 2: overflow -------------------------------------------------------------------------------


@over(ALGORITHMS)
@pytest.mark.parametrize("scale", [1e110, 1e145, 1e152, 1e155, 1e200, 1e300])
def test_2_values_that_overflow(algorithm, scale):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model, message = algorithm.make(max_iter=50), ""
        try:
            model.fit(X * scale, Y)
        except ValueError as error:
            message = str(error)
        if message:
            assert "rescale" in message
        else:
            checks(model)
            assert np.isfinite(model.decision_function(X * scale)).all()


@over(LINEAR)
def test_2_large_float32(algorithm):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = algorithm.make(max_iter=50).fit((X * 1e30).astype(np.float32), Y)
    checks(model)
    if "rate" not in algorithm.name:
        assert np.isfinite(model.decision_function((X * 1e30).astype(np.float32))).all()


@pytest.mark.parametrize("scale", [1e120, 1e155, 1e200, 1e300])
@pytest.mark.parametrize("data", [blobs, cloud])
def test_2_separability_of_large_values(scale, data):
    rows, y = data(40, 3)
    truth = mm.separability(rows, y).separable
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        try:
            found = mm.separability(rows * scale, y).separable
        except ValueError as error:
            found = truth if "rescale" in str(error) else str(error)
    assert found in (truth, None)


# 3: scales ---------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [mm.Pseudoinverse, mm.HoKashyap])
def test_3_bad_scales_converge_and_certify(make):
    rows, y = blobs(40, 3, gap=8.0, seed=1)
    model = make().fit(rows * SCALES, y)
    plain = make().fit(rows, y)
    assert plain.separates_
    assert model.status_ is mm.Status.CONVERGED
    assert model.score(rows * SCALES, y) == 1.0
    assert model.certificate_.holds(1e-8)
    assert model.separates_, str(model.certificate_)


def test_3_bad_scales_and_separability():
    rows, y = blobs(40, 3, gap=8.0, seed=1)
    verdict = mm.separability(rows * SCALES[::-1], y)
    assert verdict.separable
    rows, y = cloud(60, 3, seed=1)
    assert mm.separability(rows, y).separable is False
    assert mm.separability(rows * SCALES, y).separable is False


@over([a for a in LINEAR if a.online and "rate" not in a.name])
def test_3_bad_scales_get_the_advice_and_the_ratio(algorithm):
    rows, y = cloud(40, 3, seed=1)
    with pytest.warns(ConvergenceWarning, match=r"1?\.?\d*e\+1[56] times.*StandardScaler"):
        algorithm.make(max_iter=10, **({"patience": 10**6} if "pocket" in algorithm.name else {})
                       ).fit(rows * SCALES, y)  # fmt: skip


# 5, 6, 7: too little -----------------------------------------------------------------------


@over(ALGORITHMS + MARGIN)
def test_5_one_class(algorithm):
    with pytest.raises(ValueError, match="1 class"):
        algorithm.make().fit(X, np.zeros(20))
    with pytest.raises(ValueError, match="1 class"):
        algorithm.make().fit(X, Y, (Y == 0).astype(float))


@over(ALGORITHMS)
def test_6_one_sample_and_two(algorithm):
    with pytest.raises(ValueError, match=r"1 class|1 sample"):
        algorithm.make().fit(X[:1], Y[:1])
    two = np.array([[1.0, 2.0], [4.0, -2.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = algorithm.make(max_iter=2000).fit(two, [0, 1])
    assert model.separates_
    if algorithm.name in ("pseudoinverse", "ho-kashyap"):
        assert model.decision_function(two.mean(axis=0)[np.newaxis]) == pytest.approx(0, abs=1e-9)


def test_6_bisector_of_two_samples():
    two = np.array([[1.0, 2.0], [4.0, -2.0]])
    verdict = mm.separability(two, [0, 1], maximum_margin=True)
    assert verdict.margin == pytest.approx(2.5)
    assert verdict.hyperplane.same_plane(mm.Hyperplane([3.0, -4.0], -7.5))
    with pytest.raises(ValueError, match="1 class"):
        mm.separability(two[:1], [0])


@over(ALGORITHMS + MARGIN)
def test_7_no_feature_and_no_row(algorithm):
    with pytest.raises(ValueError, match="0 feature"):
        algorithm.make().fit(np.empty((4, 0)), [0, 1, 0, 1])
    with pytest.raises(ValueError, match="0 sample"):
        algorithm.make().fit(np.empty((0, 2)), [])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = algorithm.make(max_iter=2).fit(X, Y)
    with pytest.raises(ValueError, match="0 sample"):
        model.predict(np.empty((0, 3)))


# 9, 10: no plane ---------------------------------------------------------------------------


@over(ALGORITHMS)
def test_9_the_same_point_with_both_labels(algorithm):
    rows, y = np.vstack([X, X[:1]]), np.append(Y, 1 - Y[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = algorithm.make(max_iter=60).fit(rows, y)
    assert not model.separates_
    checks(model)
    verdict = mm.separability(rows, y)
    assert verdict.separable is False
    np.testing.assert_allclose(verdict.common_point, X[0])


@pytest.mark.parametrize("algorithm", [a for a in ALGORITHMS if a.guaranteed and a.name not in (
    "pocket", "ho-kashyap", "kernel-rbf")], ids=lambda a: a.name)  # fmt: skip
def test_10_25_xor_reaches_the_limit_and_says_so(algorithm):
    rows, y = mm.datasets.load_xor(return_X_y=True)
    with pytest.warns(ConvergenceWarning) as caught:
        model = algorithm.make(max_iter=30).fit(rows, y)
    assert model.status_ is mm.Status.ITERATION_LIMIT
    assert not model.separates_
    message = str(caught[0].message)
    for told in ("max_iter=30", "of 4 samples", "times as far as the narrowest", "separability"):
        assert told in message


def test_25_the_warning_points_at_the_callers_line():
    with pytest.warns(ConvergenceWarning) as caught:
        mm.Perceptron(max_iter=3).fit(*mm.datasets.load_xor(return_X_y=True))
    assert caught[0].filename == __file__


# 11, 12: degenerate ------------------------------------------------------------------------


@over(ALGORITHMS)
@pytest.mark.parametrize("kind", ["n < d", "rank 1", "zero column", "all zero"])
def test_11_rank_deficient(algorithm, kind):
    rng = np.random.default_rng(11)
    rows = {
        "n < d": rng.normal(size=(6, 30)),
        "rank 1": np.outer(rng.normal(size=6), rng.normal(size=3)),
        "zero column": np.column_stack([rng.normal(size=6), np.zeros(6)]),
        "all zero": np.zeros((6, 2)),
    }[kind]
    y = np.array([0, 1, 0, 1, 0, 1])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", RuntimeWarning)
        if "rate" in algorithm.name:
            warnings.simplefilter("ignore", RuntimeWarning)
        model = algorithm.make(max_iter=500).fit(rows, y)
    checks(model)
    if kind == "n < d" and algorithm.guaranteed:
        assert model.separates_
    if kind == "all zero":
        assert not model.separates_


@pytest.mark.parametrize("n", [4, 100, 10_000])
@pytest.mark.parametrize("gap", [1e-16, 1e-15, 1e-14, 1e-13])
@pytest.mark.parametrize("at", [0.0, 1.0])
def test_12_a_margin_lost_in_rounding_is_undecided(n, gap, at):
    low, high = np.linspace(at - 1, at, n // 2), np.linspace(at, at + 1, n // 2)
    high[0] = np.nextafter(at, 2) if at + gap == at else at + gap
    assert low.max() < high.min()  # there is a plane, in exact arithmetic
    verdict = mm.separability(np.concatenate([low, high])[:, np.newaxis], np.repeat([0, 1], n // 2))
    assert verdict.separable is None
    assert "undecided at tolerance" in str(verdict)
    assert verdict.hyperplane is None
    assert verdict.multipliers is None


# 13, 14: labels ----------------------------------------------------------------------------

BAD_LABELS = {
    "continuous": np.linspace(0, 1, 20),
    "nan": np.where(np.arange(20) == 3, np.nan, Y),
    "mixed": np.array(["a" if k else 1 for k in Y], dtype=object),
    "none": np.array([None if k else 1 for k in Y], dtype=object),
    "two columns": np.column_stack([Y, Y]),
    "too few": Y[:-1],
}


@over(ALGORITHMS + MARGIN)
@pytest.mark.parametrize("kind", BAD_LABELS)
def test_13_bad_labels(algorithm, kind):
    with pytest.raises(ValueError, match=r"(?i)y |label|inconsistent|1d"):
        algorithm.make().fit(X, BAD_LABELS[kind])


@pytest.mark.parametrize("kind", ["nan", "mixed", "two columns", "too few"])
def test_13_bad_labels_to_separability(kind):
    with pytest.raises(ValueError, match=r"(?i)y |label|inconsistent|1d"):
        mm.separability(X, BAD_LABELS[kind])


@over(ALGORITHMS + MARGIN)
@pytest.mark.parametrize(
    "names",
    [
        np.array(["no", "yes"]),
        np.array([False, True]),
        np.array(["a", "b"], dtype=object),
        np.array([-1.0, 1.0]),
        np.array([3, 900], dtype=np.int16),
    ],
    ids=["str", "bool", "object", "float", "int16"],
)
def test_14_labels_of_any_type_come_back(algorithm, names):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = algorithm.make(max_iter=50).fit(X, names[Y])
    predicted = model.predict(X)
    assert predicted.dtype == names.dtype
    assert set(predicted.tolist()) <= set(names.tolist())
    assert (predicted == names[Y]).mean() > 0.9


# 15, 16: weights and parameters ------------------------------------------------------------


@over(ALGORITHMS + MARGIN)
@pytest.mark.parametrize(
    ("weight", "told"),
    [
        (np.where(np.arange(20) == 2, -1.5, 1.0), "-1.5"),
        (np.zeros(20), "zero"),
        (np.where(np.arange(20) == 2, np.nan, 1.0), "NaN"),
        (np.where(np.arange(20) == 2, np.inf, 1.0), "inf"),
        (np.ones(19), "19"),
        (np.ones((20, 2)), "1D"),
    ],
    ids=["negative", "zero", "nan", "inf", "short", "2-D"],
)
def test_15_bad_weights(algorithm, weight, told):
    with pytest.raises(ValueError, match=r"(?i)weight") as caught:
        algorithm.make().fit(X, Y, weight)
    assert told.lower() in str(caught.value).lower()


@pytest.mark.parametrize(
    "class_weight", [{0: 0.0, 1: 1.0}, {0: -1.0}, {0: np.nan}, "heavy", {7: 1.0}]
)
def test_15_bad_class_weights(class_weight):
    with pytest.raises(ValueError, match=r"class_weight|classes|not in class"):
        mm.Perceptron(class_weight=class_weight).fit(X, Y)


BAD_PARAMETERS = [
    *((mm.Perceptron, {"learning_rate": v}) for v in (0, -1.0, np.nan, np.inf, "1", None)),
    *((mm.LMS, {"learning_rate": v}) for v in (0, -1.0, np.nan, "1")),
    *((mm.HoKashyap, {"learning_rate": v}) for v in (0, 1.0, 1.5, np.nan, "1")),
    *((mm.KernelPerceptron, {"learning_rate": v}) for v in (0, -1.0, np.nan, "1")),
    *((mm.Relaxation, {"margin": v}) for v in (0, -1.0, np.nan, np.inf, "1")),
    *((mm.Pseudoinverse, {"ridge": v}) for v in (-1.0, np.nan, np.inf, "1")),
    *((mm.Pocket, {"patience": v}) for v in (0, -1, 2.5, "1")),
    *((make, {"max_iter": v}) for make in (mm.Perceptron, mm.Pocket) for v in (0, -3, 1.5)),
    *((mm.LMS, {"tol": v}) for v in (-1e-3, np.nan)),
    (mm.Relaxation, {"tol": 1.0}),
    (mm.Perceptron, {"update": "stochastic"}),
    (mm.Perceptron, {"bias": "none"}),
    (mm.Perceptron, {"init": 0}),
    (mm.Perceptron, {"multi_class": "all"}),
    (mm.KernelPerceptron, {"multi_class": "kesler"}),
    (mm.KernelPerceptron, {"kernel": "laplace"}),
    (mm.KernelPerceptron, {"gamma": 0.0}),
    (mm.KernelPerceptron, {"sigma": -1.0}),
    (mm.KernelPerceptron, {"degree": 0, "kernel": "poly"}),
    (mm.Perceptron, {"callback": 3}),
    (mm.Pseudoinverse, {"margins": "equal"}),
]


@pytest.mark.parametrize(
    ("make", "options"), BAD_PARAMETERS, ids=lambda v: v.__name__ if callable(v) else str(v)
)
def test_16_bad_parameters_are_named(make, options):
    name, value = next(iter(options.items()))
    with pytest.raises(ValueError, match=name) as caught:
        make(**options).fit(X, Y)
    assert repr(value) in str(caught.value)


BAD_SCHEDULES = {
    "zero": mm.Constant(0.0),
    "nan": mm.Constant(np.nan),
    "text": mm.Constant("1"),
    "negative": mm.Constant(-1),
    "harmonic-zero": mm.Harmonic(0.0),
    "harmonic-pole": mm.Harmonic(1.0, -1.0),
    "harmonic-negative": mm.Harmonic(1.0, -5.0),
    "harmonic-infinite": mm.Harmonic(np.inf),
    "function-negative": lambda t: -t,
    "function-nan": lambda t: np.nan,
    "function-text": lambda t: "fast",
}


@pytest.mark.parametrize("schedule", BAD_SCHEDULES.values(), ids=BAD_SCHEDULES)
@pytest.mark.parametrize("update", ["single", "batch"])
@pytest.mark.parametrize("make", [mm.Perceptron, mm.LMS])
def test_16_bad_schedules_are_named(make, schedule, update):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        with pytest.raises(ValueError, match="rate"):
            make(learning_rate=schedule, update=update).fit(X, Y)


@pytest.mark.parametrize(
    "margins", [np.ones(19), np.zeros(20), -np.ones(20), np.full(20, np.nan), np.ones((20, 2))]
)
def test_16_bad_margins(margins):
    with pytest.raises(ValueError, match=r"margins.*20 positive"):
        mm.Pseudoinverse(margins=margins).fit(X, Y)


# 18, 19, 20: kernels -----------------------------------------------------------------------


def test_18_precomputed_kernels():
    K = X @ X.T
    model = mm.KernelPerceptron(kernel="precomputed")
    with pytest.raises(ValueError, match=r"square.*\(20, 19\)"):
        model.fit(K[:, :-1], Y)
    lopsided = K.copy()
    lopsided[3, 4] += 1.0
    with pytest.raises(ValueError, match=r"not symmetric.*1"):
        model.fit(lopsided, Y)
    model.fit(K, Y)
    linear = mm.KernelPerceptron(kernel="linear").fit(X, Y)
    np.testing.assert_allclose(model.decision_function(K), linear.decision_function(X))
    with pytest.raises(ValueError, match="features"):
        model.predict(K[:, :-1])


def test_18_an_indefinite_gram_matrix_is_warned_of():
    K = X @ X.T
    K -= 5.0 * np.eye(20)
    smallest = np.linalg.eigvalsh(K)[0]
    with pytest.warns(UserWarning, match="eigenvalue") as caught:
        model = mm.KernelPerceptron(kernel="precomputed", max_iter=50).fit(K, Y)
    assert any(f"{smallest:.2g}"[:4] in str(w.message) for w in caught)
    assert model.n_iter_ <= 50


def test_18_an_indefinite_gram_matrix_terminates():
    K = X @ X.T - 1000.0 * np.eye(20)  # even the diagonal is negative
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = mm.KernelPerceptron(kernel="precomputed", max_iter=50).fit(K, Y)
    checks(model)
    assert np.isfinite(model.certificate_.radius)


@pytest.mark.parametrize(
    "kernel",
    [
        lambda A, B: np.full((len(A), len(B)), np.nan),
        lambda A, B: np.ones((len(A), len(B) + 1)),
        lambda A, B: np.ones(len(A)),
        lambda A, B: "kernel",
    ],
    ids=["nan", "wide", "flat", "text"],
)
def test_19_bad_callable_kernels(kernel):
    with pytest.raises(ValueError, match=r"(?i)lambda|shape|nan"):
        mm.KernelPerceptron(kernel=kernel).fit(X, Y)


@pytest.mark.parametrize("coef0", [-5.0, -1.0, 0.0, 2.0])
def test_20_an_indefinite_sigmoid_terminates(coef0):
    rows, y = cloud(40, 3, seed=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("error", RuntimeWarning)
        model = mm.KernelPerceptron(kernel="sigmoid", gamma=1.0, coef0=coef0, max_iter=40).fit(
            rows, y
        )
    assert model.n_iter_ <= 40
    checks(model)
    assert np.isfinite(model.certificate_.radius)
    right = (model.predict(rows) == y).sum()
    assert model.certificate_.n_errors == 40 - right
    assert model.separates_ == (right == 40)


# 23: Ctrl-C --------------------------------------------------------------------------------

LONG_FITS = {
    "perceptron": "mm.Perceptron(max_iter=10**9).fit(*many(200_000, 20))",
    "kesler": "mm.Perceptron(max_iter=10**9, multi_class='kesler').fit(*many(200_000, 20, 5))",
    "sparse": "X, y = many(20_000, 20); mm.Perceptron(max_iter=10**9).fit(sparse.csr_array(X), y)",
    "perceptron-batch": "mm.Perceptron(update='batch', max_iter=10**9).fit(*many(200_000, 20))",
    "pocket": "mm.Pocket(patience=10**9, max_iter=10**9).fit(*many(200_000, 20))",
    "lms": "mm.LMS(max_iter=10**9, tol=0.0).fit(*many(200_000, 20))",
    "ho-kashyap": "X = many(20_000, 20)[0]; "
    "mm.HoKashyap(max_iter=10**9, tol=0.0, learning_rate=1e-9).fit(X, X[:, 0] > 0)",
    "kernel": "mm.KernelPerceptron(max_iter=10**9).fit(*many(4_000, 20))",
}


@pytest.mark.parametrize("name", LONG_FITS)
def test_23_ctrl_c_stops_a_long_fit(name):
    seconds, out, err = interrupt(LONG_FITS[name])
    assert out == "interrupted, usable 3\n", err
    assert seconds < 2.0  # 0.5 s on an idle machine


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "mm.Pseudoinverse().fit(*many(20_000, 2500))",
        "mm.HoKashyap().fit(*many(20_000, 2500))",
        "mm.KernelPerceptron(max_iter=10**9).fit(*many(20_000, 50))",
        "mm.separability(*many(20_000, 400))",
    ],
)
def test_23_ctrl_c_stops_large_factorisations(statement):
    seconds, out, err = interrupt(statement, wait=1.5)
    assert out == "interrupted, usable 3\n", err
    assert seconds < 2.0


# 26: names ---------------------------------------------------------------------------------


def test_26_wrong_columns_in_predict():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["mass", "width", "height"])
    model = mm.Perceptron().fit(frame, Y)
    with pytest.raises(ValueError, match="order"):
        model.predict(frame[["width", "mass", "height"]])
    with pytest.raises(ValueError, match="colour"):
        model.predict(frame.rename(columns={"mass": "colour"}))
    with pytest.raises(ValueError, match="2 features"):
        model.predict(X[:, :2])
    with pytest.warns(UserWarning, match="feature names"):
        model.predict(X)


# 29: nowhere to write ----------------------------------------------------------------------


def test_29_no_place_for_the_cache(monkeypatch):
    real = numba.njit

    def refusing(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function 'f': no locator available")
        return real(*args, **options)

    monkeypatch.setattr(rows_module.numba, "njit", refusing)
    double = rows_module.compiled(lambda x: 2.0 * x)
    assert double(1.5) == 3.0


def bound_by_permissions():
    """Let go of the superuser's right to write everywhere, where we are the superuser."""
    drop_from_bounding_set, dac_override = 24, 1
    ctypes.CDLL(None).prctl(drop_from_bounding_set, dac_override, 0, 0, 0)


@pytest.mark.skipif(sys.platform != "linux", reason="drops a capability of Linux")
def test_29_a_read_only_install_without_a_home():
    """A copy of the package that the process may not write to, and a home that does not exist."""
    folder = Path(tempfile.mkdtemp())
    try:
        source = Path(mm.__file__).parent
        shutil.copytree(source, folder / "maxmargin", ignore=shutil.ignore_patterns("__pycache__"))
        for path in [folder, *folder.rglob("*")]:
            path.chmod(0o555 if path.is_dir() else 0o444)
        environment = {
            key: value for key, value in os.environ.items()
            if not key.startswith(("NUMBA", "XDG", "PYTHONPATH"))
        }  # fmt: skip
        environment |= {"HOME": "/proc/nobody", "PYTHONPATH": str(folder)}
        program = (
            f"import maxmargin as mm; assert mm.__file__.startswith({str(folder)!r});"
            "print(mm.Perceptron().fit([[0.0], [1.0]], [0, 1]).separates_);"
            "from maxmargin.solvers.separating.compiled_passes import signed_pass;"
            "print(signed_pass._cache.__class__.__name__)"
        )
        done = subprocess.run(
            [sys.executable, "-B", "-c", program], env=environment, cwd="/", text=True,
            capture_output=True, timeout=120, check=False, preexec_fn=bound_by_permissions,
        )  # fmt: skip
        assert done.stdout == "True\nNullCache\n", done.stderr
    finally:
        for path in [folder, *folder.rglob("*")]:
            if path.is_dir():
                path.chmod(0o755)
        shutil.rmtree(folder)


# Faults leave nothing half done -------------------------------------------------------------


def test_a_failed_first_partial_fit_can_be_repeated():
    model = mm.Perceptron()
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(X, np.where(Y == 1, 7, 0), classes=[0, 1])
    model.partial_fit(X, Y, classes=[0, 1])
    np.testing.assert_array_equal(
        weights_of(model), weights_of(mm.Perceptron().partial_fit(X, Y, classes=[0, 1]))
    )


def failing(t):
    raise ZeroDivisionError


@over([a for a in ALGORITHMS if a.name in ("perceptron", "pocket", "ho-kashyap", "kernel-rbf")])
@quiet
def test_a_failed_first_fit_can_be_repeated_warm(algorithm):
    model = algorithm.make(warm_start=True, max_iter=5, callback=failing)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y)
    model.set_params(callback=None).fit(X, Y)
    np.testing.assert_allclose(
        model.decision_function(X), algorithm.make(max_iter=5).fit(X, Y).decision_function(X)
    )


def test_a_failed_fit_is_no_fit():
    from sklearn.exceptions import NotFittedError

    model = mm.Perceptron(callback=failing)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, Y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_a_failed_fit_leaves_the_last_model_whole():
    model = mm.Perceptron().fit(X, Y)
    before = model.predict(X)
    model.set_params(callback=failing)
    with pytest.raises(ZeroDivisionError):
        model.fit(X, np.where(Y == 1, "b", "a"))
    after = model.predict(X)
    assert set(after.tolist()) == set(before.tolist()) or set(after.tolist()) == {"a", "b"}
    np.testing.assert_array_equal(after, before)


def test_13_mixed_labels_in_either_order():
    for labels in (["a", 1] * 10, [1, "a"] * 10):
        with pytest.raises(ValueError, match="type"):
            mm.Perceptron().fit(X, np.array(labels, dtype=object))


@pytest.mark.parametrize("make", [mm.Perceptron, mm.Relaxation, mm.LMS])
def test_a_batch_has_no_order_to_shuffle(make):
    shuffled, in_order = (make(update="batch", shuffle=s, max_iter=9) for s in (True, False))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        np.testing.assert_array_equal(shuffled.fit(X, Y).coef_, in_order.fit(X, Y).coef_)


def test_other_peoples_compiled_functions_are_left_alone():
    import numba

    mm.Perceptron().fit(X, Y)
    names = {}
    exec("def f(x): return x + 1", names)
    assert numba.njit(names["f"])(3) == 4
