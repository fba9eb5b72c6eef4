"""`tune` and `fit --C auto`, end to end."""

import json

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import StratifiedKFold, cross_val_score

import maxmargin as mm
from tests.helpers.command_line import bad, call, good, is_picture, on_terminal

FRUITS = ["tune", "fruit.csv", "--target", "fruit"]
SMALL = [*FRUITS, "--Cs", "1,10,100", "--gammas", "0.1,1", "--cv", 3]


def scores_of(pipeline, n_folds, parameters):
    """Scores of scikit-learn on the folds of the command line."""
    bunch = mm.datasets.load_fruit()
    folds = StratifiedKFold(n_folds, shuffle=True, random_state=0)
    model = clone(pipeline).set_params(**{f"model__{k}": v for k, v in parameters.items()})
    return cross_val_score(model, bunch.data, bunch.target_names[bunch.target], cv=folds)


def test_scores_are_those_of_the_saved_pipeline(here):
    record = json.loads(good(call(*SMALL, "--out", "m.mm", "--json")))
    search, pipeline = record["search"], mm.load("m.mm")
    assert search["complete"]
    assert search["candidates"] == 6  # listed values are taken as they are
    assert type(pipeline[-1]) is mm.SVC
    for line in search["best"]:
        expected = scores_of(pipeline, 3, line["parameters"])
        assert line["score"] == pytest.approx(expected.mean(), abs=1e-12)
        assert line["standard_error"] == pytest.approx(expected.std(ddof=1) / np.sqrt(3))
        assert line["certified"]
    chosen = search["chosen"]
    assert chosen == search["best"][0]
    assert chosen["score"] == max(line["score"] for line in search["best"])
    assert {k: pipeline[-1].get_params()[k] for k in ("C", "gamma")} == chosen["parameters"]
    assert record["holds"]


def test_coarse_then_fine(here):
    record = json.loads(good(call(*FRUITS, "--cv", 3, "--Cs", 3, "--gammas", 3, "--json")))
    coarse, fine = record["search"]["grids"]
    assert (len(coarse["parameters"]), len(fine["parameters"])) == (9, 25)
    best = coarse["parameters"][int(np.argmax(np.mean(coarse["scores"], axis=1)))]
    assert best == pytest.approx(fine["parameters"][12])
    step = fine["parameters"][17]["C"] / fine["parameters"][12]["C"]
    assert step == pytest.approx(2.0 ** (10.0 / 3.0), rel=1e-4)


def test_for_people_with_test_picture_and_report(here):
    text = good(call(*SMALL, "--test", 0.25, "--plot", "s.png", "--out", "m.mm"))
    for words in ("the best 6 of 6 candidates (accuracy, mean ± standard error of 3 folds)",
                  "test error", "cross-validation", "certificate", "picture: s.png"):  # fmt: skip
        assert words in text
    is_picture(here / "s.png")
    assert "38 rows" in text
    assert "apple" in good(call("predict", "m.mm", "fruit.csv"))
    assert "error" in good(call("evaluate", "m.mm", "fruit.csv"))
    assert "cross-validation" in good(call("inspect", "m.mm"))
    good(call("report", "m.mm", "fruit.csv", "--out", "m.html"))
    page = (here / "m.html").read_text(encoding="utf-8")
    assert "<h3>The search</h3>" in page


def test_several_models(here):
    args = [*SMALL, "--model", "svc", "--model", "linear-svc", "--model", "nusvc"]
    record = json.loads(good(call(*args, "--out", "m.mm", "--json")))
    by_model = {line["model"]: line for line in record["search"]["by_model"]}
    assert set(by_model) == {"svc", "linear-svc", "nusvc"}
    assert set(by_model["linear-svc"]["parameters"]) == {"C"}
    assert set(by_model["nusvc"]["parameters"]) == {"nu", "gamma"}
    best = max(line["score"] for line in by_model.values())
    assert record["search"]["chosen"]["score"] == best
    winner = {"svc": "SVC", "linear-svc": "LinearSVC", "nusvc": "NuSVC"}
    assert record["model"] == winner[record["search"]["chosen"]["model"]]
    assert "the best of each model" in good(call(*args))


def test_one_standard_error(here):
    record = json.loads(good(call(*SMALL, "--one-standard-error", "--json")))
    best, chosen = record["search"]["best"], record["search"]["chosen"]
    least = best[0]["score"] - best[0]["standard_error"]
    near = [line for line in best if line["score"] >= least]
    key = [(line["parameters"]["C"], line["parameters"]["gamma"]) for line in near]
    assert (chosen["parameters"]["C"], chosen["parameters"]["gamma"]) == min(key)


@pytest.mark.parametrize("strategy", ["bounded", "halving"])
def test_strategies_drop_candidates(here, strategy):
    every = json.loads(good(call(*SMALL, "--json")))["search"]
    some = json.loads(good(call(*SMALL, "--strategy", strategy, "--json")))["search"]
    assert some["candidates"] == every["candidates"] == len(every["best"])
    if strategy == "bounded":
        assert some["chosen"]["parameters"] == every["chosen"]["parameters"]
    else:
        assert len(some["best"]) < len(every["best"])


def test_scoring(here):
    record = json.loads(good(call(*SMALL, "--scoring", "balanced_accuracy", "--json")))
    assert record["search"]["scoring"] == "balanced_accuracy"
    bad(call(*SMALL, "--scoring", "acuracy"), "'acuracy'", "scorer of scikit-learn", code=2)
    bad(call(*SMALL, "--scoring", "neg_log_loss"), "needs probabilities", code=2)


def test_time_limit(here):
    bad(call(*FRUITS, "--time-limit", 1e-6), "raise --time-limit")


def test_fit_with_auto(here):
    args = ["fit", "fruit.csv", "--target", "fruit", "--C", "auto", "--cv", 3]
    both = json.loads(good(call(*args, "--gamma", "auto", "--out", "m.mm", "--json")))
    assert both["search"]["folds"] == 3
    assert set(both["search"]["chosen"]["parameters"]) == {"C", "gamma"}
    assert both["search"]["chosen"]["parameters"]["C"] == mm.load("m.mm")[-1].C
    cost = json.loads(good(call(*args, "--kernel", "linear", "--test", 0.2, "--json")))
    assert set(cost["search"]["chosen"]["parameters"]) == {"C"}
    assert cost["test"]["rows"] == 30
    fit = ["fit", "fruit.csv", "--target", "fruit"]
    bad(call(*fit, "--C", "auto", "--model", "nusvc"), "not for nusvc", code=2)
    # Without --C auto it is 1/d, as in scikit-learn.
    alone = json.loads(good(call(*fit, "--gamma", "auto", "--json")))
    assert "search" not in alone


def test_bad_input(here):
    bad(call(*FRUITS, "--Cs", "0,1"), "positive numbers", code=2)
    bad(call(*FRUITS, "--Cs", "many"), "'many'", code=2)
    bad(call(*FRUITS, "--gammas", "1,2", "--kernel", "linear"), "--gammas needs", code=2)
    bad(call(*FRUITS, "--model", "nusvc", "--Cs", "1,2"), "nusvc", code=2)
    bad(call(*FRUITS, "--model", "linear-svc", "--kernel", "rbf"), "kernel", code=2)
    bad(call(*FRUITS, "--cv", 1000), "at most the number of rows", code=2)
    bad(call(*FRUITS, "--plot", "s.doc"), "suffix", code=2)
    bad(call("tune", "nothing.csv"), "no such file")


def write_rows(path, labels):
    """Write rows of two features, with these labels."""
    X = np.random.default_rng(0).normal(size=(len(labels), 2))
    rows = [f"{a:.4f},{b:.4f},{label}" for (a, b), label in zip(X, labels, strict=True)]
    path.write_text("a,b,kind\n" + "\n".join(rows) + "\n", encoding="utf-8")


def test_folds_without_a_class(here):
    few = ["tune", "few.csv", "--target", "kind", "--Cs", "1.0", "--gammas", "scale"]
    write_rows(here / "few.csv", ["x"] * 20 + ["y"])
    bad(call(*few), "--cv 5 leaves a fold", "y has 1 of 21 rows", "Add rows of it.", code=2)
    # Two classes are left in every fold.
    write_rows(here / "few.csv", ["x"] * 10 + ["y"] * 10 + ["z"])
    assert "one candidate (accuracy" in good(call(*few))


def test_scorers_of_other_classes(here):
    bad(call(*SMALL, "--scoring", "roc_auc"), "does not take the 5 classes", "f1_macro", code=2)
    bad(call(*SMALL, "--scoring", "f1"), "does not take the 5 classes of fruit.csv", code=2)
    write_rows(here / "two.csv", ["x", "y"] * 10)
    two = ["tune", "two.csv", "--target", "kind", "--Cs", "1.0,2", "--gammas", "1.0"]
    bad(call(*two, "--scoring", "f1"), "2 classes", "pos_label", code=2)
    assert "candidates (" in good(call(*two, "--scoring", "roc_auc", "--cv", 2))
    # A fold with held-out rows of one class has no ROC curve.
    for model in (), ("--model", "linear-svc"), ("--model", "nusvc"):
        given = [word for word in two if model == () or word not in ("--gammas", "1.0")]
        given = [*given[:4], *model] if "nusvc" in model else [*given, *model]
        said = ("roc_auc is not a number", "use fewer folds than --cv 20")
        bad(call(*given, "--scoring", "roc_auc", "--cv", 20), *said)


def test_grid_of_one(here):
    one = [*FRUITS, "--Cs", "1.0", "--gammas", "scale", "--cv", 3]
    assert "in 3 folds\n" in good(call(*one))
    assert json.loads(good(call(*one, "--json")))["search"]["candidates"] == 1
    bad(call(*FRUITS, "--Cs", ""), "number of values", code=2)


def test_interrupted(here):
    done = on_terminal(*FRUITS, "--cv", 50, "--Cs", 7, cwd=here, interrupted_at="best 0.")
    assert done.code == 130
    assert "candidates" in done.out
    assert "to fit the best so far: maxmargin fit" in done.err
    assert "Traceback" not in done.err
