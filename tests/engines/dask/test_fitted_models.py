"""Models fitted to Dask collections: files, pickles, diagnostics and figures."""

import pickle
import subprocess
import sys

import numpy as np
import pytest

import maxmargin as mm
from maxmargin.diagnostics.summary import summarize

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")

N = 240


@pytest.fixture(scope="module")
def rows():
    """Return rows of two features, and two classes that no plane separates."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, 2))
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(N) > 0, "yes", "no")


def collections(X, y):
    """Return rows and labels as collections."""
    return da.from_array(X, chunks=(80, -1)), da.from_array(y, chunks=80)


@pytest.fixture(scope="module", params=["two", "three", "targets"])
def fitted(request, rows):
    """Return a model that was fitted to collections, and the rows and labels in memory."""
    X, y = rows
    if request.param == "three":
        y = np.where(X[:, 1] > 1.0, "maybe", y)
    if request.param == "targets":
        y = X[:, 0] + 0.1 * X[:, 1] ** 2
        return mm.LinearSVR().fit(*collections(X, y)), X, y
    return mm.LinearSVC(loss="hinge").fit(*collections(X, y)), X, y


def parts_of(value, seen):
    """Yield an object and everything that it holds."""
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        held = list(value.values())
    elif isinstance(value, (list, tuple)):
        held = list(value)
    else:
        held = list(vars(value).values()) if hasattr(value, "__dict__") else []
    for each in held:
        yield from parts_of(each, seen)


def test_attributes_hold_nothing_of_dask(fitted):
    model, _, _ = fitted
    modules = {type(each).__module__.partition(".")[0] for each in parts_of(vars(model), set())}
    assert "maxmargin" in modules
    assert not modules & {"dask", "distributed", "dask_expr", "tornado"}
    assert not hasattr(model, "support_")


def test_pickles_open_without_dask(fitted, tmp_path):
    model, X, _ = fitted
    (tmp_path / "model").write_bytes(pickle.dumps((model, X[:5])))
    code = (
        "import pickle, sys\n"
        "sys.modules['dask'] = sys.modules['distributed'] = None\n"
        "model, X = pickle.load(open(sys.argv[1], 'rb'))\n"
        "print(*model.predict(X), model.fit_report_.rounds)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *labels, rounds = done.stdout.split()
    assert [str(each) for each in model.predict(X[:5])] == labels
    assert int(rounds) == model.fit_report_.rounds > 0


def test_files_keep_the_planes_and_the_proof(fitted, tmp_path):
    model, X, _ = fitted
    path = tmp_path / "model.mm"
    mm.save(model, path)
    loaded = mm.load(path)
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    assert loaded.certificate_.gap == model.certificate_.gap
    assert not hasattr(loaded, "support_")
    assert not hasattr(loaded, "fit_report_")  # a file says how good a fit is, not what it took
    assert mm.persistence.to_json(model)["model"] == type(model).__name__


def test_a_file_with_half_of_the_support_vectors_is_refused(rows, tmp_path):
    X, y = rows
    model = mm.LinearSVC(loss="hinge").fit(X, y)
    del model.dual_coef_
    with pytest.raises(ValueError, match="without the other"):
        mm.save(model, tmp_path / "model.mm")


def test_libsvm_files(rows, tmp_path):
    X, y = rows
    model = mm.LinearSVC().fit(*collections(X, (y == "yes").astype(int)))
    mm.persistence.save_libsvm(model, tmp_path / "model")
    loaded = mm.persistence.load_libsvm(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))


def test_what_needs_no_alpha_works(fitted):
    model, X, y = fitted
    found = summarize(model)
    assert found.n_support is None
    assert mm.diagnostics.scaling_advice(model, X, y) == []
    assert "fit" in repr(model.fit_report_).lower()


def test_what_needs_alpha_says_so(fitted):
    model, X, y = fitted
    for diagnose in (mm.diagnostics.margin_report, mm.diagnostics.support_table):
        with pytest.raises(ValueError, match="was fitted to a Dask collection, whose α"):
            diagnose(model, X, y)
    with pytest.raises(ValueError, match="was fitted to a Dask collection, whose α"):
        mm.diagnostics.margin_report(model)


def test_figures_and_report(fitted):
    pytest.importorskip("matplotlib")
    from matplotlib.figure import Figure

    model, X, y = fitted
    is_regression = isinstance(model, mm.LinearSVR)
    draw = mm.plots.regression if is_regression else mm.plots.boundary
    assert draw(model, X, y, ax=Figure().subplots()).support_ is None
    page = mm.report.render(model, X, y)
    assert "fitted to a Dask collection" in page  # in place of the figure of support vectors
    assert "no attribute" not in page


def test_a_fit_in_memory_leaves_nothing_of_the_fit_before(rows):
    X, y = rows
    model = mm.LinearSVC(loss="hinge").fit(X, y)
    assert model.support_.size
    model.fit(*collections(X, y))
    assert not hasattr(model, "support_")
    assert not hasattr(model, "dual_coef_")
    assert model.fit_report_.n_samples == N
    model.fit(X, y)
    assert not hasattr(model, "fit_report_")
    assert model.support_.size


REFUSED = {
    "labels": lambda X, y: mm.LinearSVC().fit(X.compute(), y),
    "score": lambda X, y: mm.LinearSVC().fit(X.compute(), y.compute()).score(X.compute(), y),
    "l1_min_c": lambda X, y: mm.l1_min_c(X, y),
    "support_table": lambda X, y: mm.diagnostics.support_table(in_memory(X, y), X, y),
    "margin_report": lambda X, y: mm.diagnostics.margin_report(in_memory(X, y), X, y),
    "scaling_advice": lambda X, y: mm.diagnostics.scaling_advice(in_memory(X, y), X, y),
    "boundary": lambda X, y: mm.plots.boundary(in_memory(X, y), X, y),
    "margins": lambda X, y: mm.plots.margins(in_memory(X, y), X, y),
    "path": lambda X, y: mm.plots.path(mm.Perceptron(), X, y),
    "gram": lambda X, y: mm.plots.gram("rbf", X, y),
    "report": lambda X, y: mm.report.render(in_memory(X, y), X, y),
    "qp": lambda X, y: mm.qp.dual_qp(X, y),
}


def in_memory(X, y):
    """Return a model of the same rows in memory."""
    return mm.LinearSVC(loss="hinge").fit(X.compute(), y.compute())


@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_rows_in_memory_refuses_collections(name, rows):
    pytest.importorskip("matplotlib")
    with pytest.raises(TypeError, match=r"Got a dask Array where rows in the memory"):
        REFUSED[name](*collections(*rows))


def test_models_are_sent_to_workers(rows):
    """Vectors that stay on the workers do not: to wait for them would end in a deadlock."""
    X, y = rows
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=2, processes=False, dashboard_address=None
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        model = mm.HoKashyap(max_iter=20).fit(*collections(X, y))
        sent = client.submit(lambda each: each.coef_, model).result(timeout=30)
        np.testing.assert_array_equal(sent, model.coef_)
        assert np.asarray(model.margins_[0]).shape == y.shape
        assert not hasattr(pickle.loads(pickle.dumps(model)), "margins_")
