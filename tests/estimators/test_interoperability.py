"""The estimators as scikit-learn, data frames, callbacks, threads and processes use them."""

from __future__ import annotations

import multiprocessing
import pickle
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import sklearn
from joblib import Parallel, delayed
from scipy import sparse
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import BaggingClassifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import _get_feature_names

import maxmargin as mm
from maxmargin.data.normalised_samples import SignedSamples
from maxmargin.solvers.separating import compiled_passes
from tests.helpers.algorithms import ALGORITHMS, blobs, cloud, falling, over, quiet, weights_of

pytestmark = quiet

X, Y = blobs(60, 3, seed=1)
X3, Y3 = blobs(90, 4, 3, seed=2)
ONLINE = [a for a in ALGORITHMS if hasattr(a.make(), "partial_fit")]


def quickly(algorithm, **options):
    return algorithm.make(**{"max_iter": 20, **options})


# scikit-learn's tools -----------------------------------------------------------------------------


@over(ALGORITHMS)
def test_pipeline_grid_search_and_clone(algorithm):
    model = make_pipeline(StandardScaler(), quickly(algorithm))
    name = type(algorithm.make()).__name__.lower()
    search = GridSearchCV(model, {f"{name}__max_iter": [5, 30]}, cv=3).fit(X, Y)
    assert search.best_score_ > 0.9
    assert clone(search.best_estimator_)[-1].get_params() == search.best_estimator_[-1].get_params()
    with pytest.raises(NotFittedError):
        clone(search.best_estimator_).predict(X)


LABELS = {
    "whole numbers": Y3.astype(int),
    "whole floats": Y3.astype(float),
    "booleans": np.equal(Y3, Y3[0]),
    "far apart": 1000 * Y3.astype(int),
    "text": Y3.astype(str),
    "a list": Y3.astype(int).tolist(),
}


@pytest.mark.parametrize("kind", LABELS)
def test_score_is_the_accuracy(kind):
    y, weights = LABELS[kind], np.arange(len(X3), dtype=float)
    model = mm.SVC(C=0.01, gamma=10.0).fit(X3[::2], y[::2])
    for some in (slice(0, 40), slice(0, 2)):
        expected = accuracy_score(y[some], model.predict(X3[some]))
        assert model.score(X3[some], y[some]) == expected
    expected = accuracy_score(y, model.predict(X3), sample_weight=weights)
    assert model.score(X3, y, weights) == expected


def test_score_refuses_what_accuracy_does():
    model = mm.SVC().fit(X3, Y3)
    for strange in (Y3[:-1], Y3 + 0.5, np.column_stack([Y3, Y3])):
        with pytest.raises(ValueError, match=r"inconsistent numbers|Classification metrics"):
            model.score(X3, strange)


def test_meta_estimators():
    assert cross_val_score(mm.Perceptron(), X3, Y3, cv=3).min() > 0.9
    bag = BaggingClassifier(mm.Pocket(patience=50), n_estimators=4, random_state=0).fit(X3, Y3)
    assert bag.score(X3, Y3) > 0.9
    calibrated = CalibratedClassifierCV(mm.Pseudoinverse(), cv=3).fit(X, Y)
    assert calibrated.predict_proba(X).shape == (60, 2)


@over(ALGORITHMS)
def test_pickle_of_a_fitted_model_with_a_recorder(algorithm):
    recorder = mm.Recorder(every_update=True)
    model = quickly(algorithm, callback=recorder).fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.decision_function(X), model.decision_function(X))
    assert again.certificate_ == model.certificate_
    assert again.status_ is model.status_
    steps = again.callback.steps
    assert len(steps) == len(recorder.steps) > 0
    if algorithm.kesler:
        np.testing.assert_array_equal(steps[-1].planes()[0], recorder.steps[-1].planes()[0])
    else:
        np.testing.assert_array_equal(steps[-1].alpha(), recorder.steps[-1].alpha())


def test_schedules_are_values():
    assert clone(mm.Perceptron(learning_rate=mm.Harmonic(2.0, 3.0))).learning_rate == mm.Harmonic(
        2.0, 3.0
    )
    model = pickle.loads(pickle.dumps(mm.Perceptron(learning_rate=falling).fit(X, Y)))
    assert model.learning_rate(4) == 0.5


@over(ALGORITHMS)
def test_fit_does_not_touch_the_parameters(algorithm):
    model = quickly(algorithm)
    before = model.get_params()
    model.fit(X3, Y3)
    assert model.get_params() == before


# Frames -------------------------------------------------------------------------------------------


@over(ALGORITHMS)
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(algorithm, library):
    module = pytest.importorskip(library)
    names = ["mass", "width", "height"]
    frame = module.DataFrame(dict(zip(names, X.T, strict=True)))
    if _get_feature_names(frame) is None:
        pytest.skip(f"this scikit-learn does not see the names of {library}'s columns")
    labels = module.Series(np.where(Y == 1, "apple", "pear"))
    model = quickly(algorithm).fit(frame, labels)
    np.testing.assert_array_equal(model.feature_names_in_, names)
    plain = quickly(algorithm).fit(X, np.where(Y == 1, "apple", "pear"))
    np.testing.assert_array_equal(model.predict(frame), plain.predict(X))
    assert set(model.predict(frame)) <= {"apple", "pear"}


def test_frames_to_separability():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=list("abc"))
    assert mm.separability(frame, pandas.Series(np.where(Y == 1, "yes", "no"))).separable


# partial_fit --------------------------------------------------------------------------------------


def test_partial_fit_is_there_for_single_samples_only():
    assert {a.name for a in ONLINE} == {
        a.name for a in ALGORITHMS if a.online and a.kesler and a.name != "pocket"
    }
    for model in (mm.Perceptron(update="batch"), mm.LMS(update="batch"), mm.Pocket()):
        assert not hasattr(model, "partial_fit")


@over(ONLINE)
@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "kesler"])
def test_partial_fit_is_one_pass_of_fit(algorithm, multi_class):
    once = algorithm.make(max_iter=1, multi_class=multi_class).fit(X3, Y3)
    part = algorithm.make(multi_class=multi_class).partial_fit(X3, Y3, classes=np.unique(Y3))
    np.testing.assert_array_equal(weights_of(part), weights_of(once))
    assert part.n_updates_ == once.n_updates_
    assert part.n_iter_ == 1


@over([a for a in ONLINE if a.name in ("perceptron", "perceptron-harmonic", "perceptron-callable",
                                       "relaxation", "relaxation-over", "lms-rate")])  # fmt: skip
@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "kesler"])
def test_batches_are_one_pass_over_all(algorithm, multi_class):
    """Schedules go on where the last batch ended, and a batch may miss classes."""
    order = np.argsort(Y3, kind="stable")  # whole batches of one class
    whole = algorithm.make(max_iter=1, multi_class=multi_class).fit(X3[order], Y3[order])
    model = algorithm.make(multi_class=multi_class)
    for rows in np.array_split(order, 9):
        model.partial_fit(X3[rows], Y3[rows], classes=[0, 1, 2])
    np.testing.assert_allclose(weights_of(model), weights_of(whole), rtol=1e-12, atol=1e-12)
    assert model.n_updates_ == whole.n_updates_
    assert len(model.predict(X3)) == 90


@pytest.mark.parametrize("bias", ["plain", "radius"])
def test_perceptron_converges_by_partial_fit(bias):
    model = mm.Perceptron(bias=bias, shuffle=False)
    for _ in range(200):
        model.partial_fit(X, Y, classes=[0, 1])
    assert model.separates_
    at_once = mm.Perceptron(bias=bias, shuffle=False).fit(X, Y)
    np.testing.assert_array_equal(weights_of(model), weights_of(at_once))


def test_partial_fit_after_fit_continues():
    model = mm.Perceptron(shuffle=False, max_iter=2).fit(X, Y)
    updates = model.n_updates_
    model.partial_fit(X, Y)
    three = mm.Perceptron(shuffle=False, max_iter=3).fit(X, Y)
    np.testing.assert_array_equal(weights_of(model), weights_of(three))
    assert model.n_updates_ == three.n_updates_ >= updates


def test_partial_fit_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="classes must be passed"):
        mm.Perceptron().partial_fit(X, Y)
    with pytest.raises(ValueError, match="2 classes"):
        mm.Perceptron().partial_fit(X, Y, classes=[0])
    model = mm.Perceptron().partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match=r"\[0, 1, 2\]"):
        model.partial_fit(X, Y, classes=[0, 1, 2])
    with pytest.raises(ValueError, match="not in classes"):
        model.partial_fit(X, Y + 5)
    with pytest.raises(ValueError, match="features"):
        model.partial_fit(X[:, :2], Y)
    with pytest.raises(ValueError, match="balanced"):
        mm.Perceptron(class_weight="balanced").partial_fit(X, Y, classes=[0, 1])


def test_partial_fit_with_strings_and_weights():
    names = np.array(["apple", "pear"])
    weight = np.where(Y == 1, 3.0, 1.0)
    model = mm.Perceptron().partial_fit(X, names[Y], classes=names, sample_weight=weight)
    by_class = mm.Perceptron(class_weight={"pear": 3.0}).partial_fit(X, names[Y], classes=names)
    np.testing.assert_array_equal(weights_of(model), weights_of(by_class))
    assert set(model.predict(X)) <= set(names)


# warm_start ---------------------------------------------------------------------------------------


@over([a for a in ALGORITHMS if a.name in (
    "perceptron", "perceptron-radius", "perceptron-batch", "perceptron-batch-radius", "relaxation",
    "relaxation-under", "relaxation-over", "lms-rate", "lms-batch", "ho-kashyap", "kernel-linear",
    "kernel-rbf")])  # fmt: skip
@pytest.mark.parametrize("multi_class", ["ovr", "ovo"])
def test_warm_start_continues(algorithm, multi_class):
    rows, y = cloud(60, 3, 3, seed=3)
    options = {"multi_class": multi_class}
    if "tol" in algorithm.make().get_params():
        options["tol"] = 0.0
    at_once = algorithm.make(**{**options, "max_iter": 6}).fit(rows, y)
    resumed = algorithm.make(**{**options, "max_iter": 2, "warm_start": True})
    for _ in range(3):
        resumed.fit(rows, y)
    g, h = resumed.decision_function(rows), at_once.decision_function(rows)
    np.testing.assert_allclose(g, h, rtol=1e-7, atol=1e-9 * np.abs(h).max())


@over([a for a in ALGORITHMS if "warm_start" in a.make().get_params() and a.guaranteed])
def test_warm_start_at_the_solution_stays(algorithm):
    model = algorithm.make(warm_start=True, max_iter=5000).fit(X, Y)
    before = model.decision_function(X)
    model.fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), before, rtol=1e-9, atol=1e-9)
    assert model.status_ is mm.Status.CONVERGED
    assert model.n_iter_ == 1


def test_warm_start_refuses_other_data():
    model = mm.Perceptron(warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="other classes"):
        model.fit(X, Y + 1)
    with pytest.raises(ValueError, match="2 features after 3"):
        model.fit(X[:, :2], Y)
    kernel = mm.KernelPerceptron(warm_start=True).fit(X, Y)
    with pytest.raises(ValueError, match="10 samples after 60"):
        kernel.fit(X[:10], Y[:10])


@pytest.mark.parametrize("make", [mm.Perceptron, mm.HoKashyap, mm.KernelPerceptron])
def test_warm_start_with_another_reduction_is_refused_or_right(make, monkeypatch):
    # As plain Python, which refuses an index out of bounds where compiled code writes there.
    passes = compiled_passes.PASSES[SignedSamples]
    plain = replace(passes, correct=passes.correct.py_func)
    monkeypatch.setitem(compiled_passes.PASSES, SignedSamples, plain)
    rows, y = blobs(40, 4, 4, seed=4)
    model = make(warm_start=True, multi_class="ovr").fit(rows, y).set_params(multi_class="ovo")
    try:
        model.fit(rows, y)
    except ValueError as error:
        refused = "multi_class" in str(error)
    else:
        refused = False
    assert refused or model.score(rows, y) == 1.0


def test_changing_the_reduction_after_fit_does_not_change_the_model():
    rows, y = blobs(60, 3, 3, seed=5)
    model = mm.Perceptron(multi_class="ovr").fit(rows, y)
    before = model.predict(rows)
    model.set_params(multi_class="ovo")
    np.testing.assert_array_equal(model.predict(rows), before)


# Callbacks ----------------------------------------------------------------------------------------


class StopAt:
    """Stop at the k-th step."""

    def __init__(self, k, every_update=False):
        self.k, self.seen, self.every_update = k, 0, every_update

    def __call__(self, step):
        self.seen += 1
        return self.seen >= self.k


@over([a for a in ALGORITHMS if a.name != "pseudoinverse"])
def test_callback_stops_the_fit(algorithm):
    rows, y = cloud(50, 3, seed=6)
    rows, y = np.vstack([rows, rows[:1]]), np.append(y, 1 - y[0])
    extra = {"tol": 0.0} if "tol" in algorithm.make().get_params() else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)  # a callback asked to stop: no warning
        model = algorithm.make(callback=StopAt(1), **extra).fit(rows, y)
    assert model.status_ is mm.Status.STOPPED or algorithm.name == "ho-kashyap"
    assert model.n_iter_ == 1
    assert len(model.trace_) == 1
    assert np.isfinite(model.decision_function(rows)).all()


@over([a for a in ALGORITHMS if a.online])
def test_callback_stops_between_updates(algorithm):
    rows, y = cloud(50, 3, seed=7)
    model = algorithm.make(callback=StopAt(3, every_update=True)).fit(rows, y)
    assert model.status_ is mm.Status.STOPPED
    assert model.n_updates_ == 3


@over(ALGORITHMS)
def test_trace_has_an_entry_an_iteration(algorithm):
    rows, y = cloud(50, 3, 3, seed=8)
    steps = []
    model = quickly(algorithm, callback=lambda step: steps.append(step)).fit(rows, y)
    assert len(model.traces_) == len(model.certificates_) == len(model.statuses_) == 3
    assert len(model.trace_) == model.n_iter_ == max(map(len, model.traces_))
    assert [step.task for step in steps] == sorted(step.task for step in steps)
    for task, trace in enumerate(model.traces_):
        own = [step for step in steps if step.task == task]
        np.testing.assert_array_equal(trace.iteration, np.arange(1, len(trace) + 1))
        np.testing.assert_array_equal(trace.objective, [step.objective for step in own])
        np.testing.assert_array_equal(trace.errors, [step.errors for step in own])
        assert (np.diff(trace.seconds) >= 0).all()


@over([a for a in ALGORITHMS if a.online])
def test_recorder_keeps_every_update(algorithm):
    rows, y = cloud(50, 3, seed=9)
    recorder = mm.Recorder(every_update=True)
    model = algorithm.make(max_iter=3, callback=recorder).fit(rows, y)
    updates = [step for step in recorder.steps if step.sample is not None]
    assert len(updates) == model.n_updates_
    assert all(0 <= step.sample < 50 for step in updates)
    same = algorithm.make(max_iter=3).fit(rows, y)
    np.testing.assert_allclose(
        model.decision_function(rows), same.decision_function(rows), rtol=1e-12, atol=1e-12
    )
    if algorithm.name == "perceptron":  # each correction is visible in the plane
        before = np.zeros(4)
        for step in updates:
            a = np.append(*step.planes())
            z = (2 * y[step.sample] - 1) * np.append(rows[step.sample], 1.0)
            np.testing.assert_allclose(a - before, z, atol=1e-12)
            before = a


def test_steps_hand_out_copies():
    planes = []
    mm.Perceptron(callback=lambda step: planes.append(step.plane()), max_iter=5).fit(*cloud(50, 3))
    assert len({plane.b for plane in planes}) > 1
    recorder = mm.Recorder()
    mm.Perceptron(callback=recorder, multi_class="kesler", max_iter=2).fit(X3, Y3)
    with pytest.raises(ValueError, match="3 weight vectors"):
        recorder.steps[0].plane()


def test_samples_of_steps_are_rows_of_X_in_every_task():
    recorder = mm.Recorder(every_update=True)
    mm.Perceptron(multi_class="ovo", callback=recorder).fit(X3, Y3)
    pairs = [(0, 1), (0, 2), (1, 2)]
    for step in recorder.steps:
        if step.sample is not None:
            assert Y3[step.sample] in pairs[step.task]


@over(ALGORITHMS)
def test_verbose_prints_a_line_an_iteration(algorithm, capsys):
    model = quickly(algorithm, verbose=True).fit(X3, Y3)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == sum(map(len, model.traces_))
    assert all("objective" in line and "errors" in line for line in lines)
    assert lines[0].startswith("[0 against the rest]")
    quickly(algorithm).fit(X3, Y3)
    assert capsys.readouterr().out == ""


# Attributes ---------------------------------------------------------------------------------------


@over([a for a in ALGORITHMS if a.kesler])
def test_hyperplane_is_for_two_classes(algorithm):
    model = quickly(algorithm).fit(X, Y)
    np.testing.assert_allclose(model.hyperplane_.decision(X), model.decision_function(X))
    assert not hasattr(quickly(algorithm).fit(X3, Y3), "hyperplane_")
    assert not hasattr(quickly(algorithm), "hyperplane_")


@over(ALGORITHMS)
@pytest.mark.parametrize("multi_class", ["ovr", "ovo", "kesler"])
def test_shapes(algorithm, multi_class):
    if multi_class == "kesler" and not algorithm.kesler:
        pytest.skip("a kernel has no linear machine")
    rows, y = blobs(80, 4, 4, seed=10)
    model = quickly(algorithm, multi_class=multi_class).fit(rows, y)
    n_planes = {"ovr": 4, "ovo": 6, "kesler": 4}[multi_class]
    assert model.intercept_.shape == (n_planes,)
    assert model.decision_function(rows).shape == (80, 4)
    np.testing.assert_array_equal(model.decision_function(rows).argmax(1), model.predict(rows))
    if algorithm.kesler:
        assert model.coef_.shape == (n_planes, 4)
    else:
        assert model.dual_coef_.shape == (n_planes, model.n_support_)
    assert isinstance(model.separates_, bool)
    assert model.separates_ == all(c.separates for c in model.certificates_)


def test_predict_answers_the_positive_class_on_the_plane():
    model = mm.Perceptron().fit([[-1.0], [1.0]], ["minus", "plus"])
    on_it = -model.intercept_ / model.coef_[0]
    assert model.decision_function(on_it[np.newaxis]) == 0.0
    assert model.predict(on_it[np.newaxis]) == ["plus"]


def test_kernel_perceptron_coef_is_for_linear_kernels():
    assert not hasattr(mm.KernelPerceptron().fit(X, Y), "coef_")
    linear = mm.KernelPerceptron(kernel="linear").fit(sparse.csr_array(X), Y)
    assert isinstance(linear.coef_, np.ndarray)
    np.testing.assert_allclose(X @ linear.coef_[0] + linear.intercept_, linear.decision_function(X))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("make", [mm.Perceptron, mm.SVC, mm.LinearSVC])
def test_arrays_of_other_libraries(make, monkeypatch):
    xp = pytest.importorskip("array_api_strict")
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")
    expected = make().fit(X, Y).predict(X)
    for dispatch in (False, True):
        with sklearn.config_context(array_api_dispatch=dispatch):
            model = make().fit(xp.asarray(X), xp.asarray(Y))
            np.testing.assert_array_equal(model.predict(xp.asarray(X)), expected)
            assert model.score(xp.asarray(X), xp.asarray(Y)) == np.mean(expected == Y)


# scikit-learn's callbacks -------------------------------------------------------------------------

callbacks = pytest.mark.skipif(
    tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9),
    reason="scikit-learn has callbacks since 1.9",
)


@callbacks
@over(ALGORITHMS)
def test_progress_bar(algorithm, capsys):
    from sklearn.callback import ProgressBar

    model = quickly(algorithm).set_callbacks(ProgressBar()).fit(X3, Y3)
    assert model.score(X3, Y3) > 0.5


@callbacks
@over(ALGORITHMS)
def test_a_fit_callback_sees_models_and_stops_the_fit(algorithm):
    scores = []

    class Watcher:
        def setup(self, estimator, context):
            pass

        def teardown(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context, **data):
            pass

        def on_fit_task_end(
            self, estimator, context, *, X=None, y=None, fitted_estimator=None, **_
        ):
            if context.task_name == "pass":
                scores.append(fitted_estimator.score(X, y))
                return len(scores) >= 2
            return False

    rows, y = cloud(50, 3, seed=11)
    rows, y = np.vstack([rows, rows[:1]]), np.append(y, 1 - y[0])
    model = algorithm.make().set_callbacks(Watcher()).fit(rows, y)
    assert scores
    assert model.n_iter_ <= 2
    if algorithm.name not in ("pseudoinverse", "ho-kashyap", "lms", "lms-batch", "lms-rate"):
        assert model.status_ is mm.Status.STOPPED
        assert scores[-1] == model.score(rows, y)


# Threads and processes ----------------------------------------------------------------------------


@over([a for a in ALGORITHMS if a.name in ("perceptron", "pocket", "pseudoinverse", "ho-kashyap",
                                           "kernel-rbf", "lms-batch")])  # fmt: skip
@pytest.mark.filterwarnings("ignore")  # here, not in the threads, which share the filters
def test_fits_in_threads_are_fits_one_after_another(algorithm):
    jobs = [cloud(200, 4, 3, seed=seed) for seed in range(6)]

    def work(job):
        return algorithm.make(max_iter=30).fit(*job).decision_function(job[0])

    expected = [work(job) for job in jobs]
    with ThreadPoolExecutor(4) as pool:
        for ours, theirs in zip(pool.map(work, jobs), expected, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


def fitted_weights(make, seed):
    rows, y = cloud(3000, 5, seed=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return weights_of(make().set_params(max_iter=5).fit(rows, y))


@pytest.mark.parametrize("make", [mm.Perceptron, mm.Pseudoinverse])
def test_fits_in_loky_processes(make):
    expected = [fitted_weights(make, seed) for seed in range(3)]
    found = Parallel(n_jobs=2)(delayed(fitted_weights)(make, seed) for seed in range(3))
    np.testing.assert_allclose(found, expected, rtol=1e-9)


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_fits_in_forked_children():
    expected = fitted_weights(mm.Pseudoinverse, 0)  # the parent has used its threads
    assert threading.active_count() >= 1
    with multiprocessing.get_context("fork").Pool(2) as pool:
        found = pool.starmap_async(
            fitted_weights, [(mm.Pseudoinverse, 0), (mm.Perceptron, 1), (mm.HoKashyap, 2)]
        ).get(timeout=600)
    np.testing.assert_allclose(found[0], expected, rtol=1e-9)
    np.testing.assert_allclose(found[1], fitted_weights(mm.Perceptron, 1), rtol=1e-9)
