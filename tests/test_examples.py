"""The examples run unchanged, as programs, print what they should, and draw their figures."""

import runpy
import sys
import warnings
from pathlib import Path

import matplotlib
import pytest
import sklearn
from matplotlib import pyplot as plt

EXAMPLES = Path(__file__).parent.parent / "examples"
# Script → what it prints, and the number of its figures.
EXPECTED = {
    "planes/perceptron_to_svm.py": (["hard margin            smallest distance   2.5725"], 1),
    "planes/perceptron_bound.py": (["2 corrections, at most 276", "bound"], 2),
    "planes/pocket_and_outlier.py": (["not separable", "Pocket      1 of 61 wrong"], 3),
    "planes/least_squares.py": (["4 of 46", "HoKashyap: separates all 46 samples"], 2),
    "planes/separability.py": (["combination of 4 of the 60", "combination of 5 of the 60"], 1),
    "machines/worked_examples.py": (["α = 8/225, 0, 1/25, 0, 17/225, 0", "w = -1/3, 1/5   b = 2/15",
                                     "α = 1/8, 1/8, 1/8, 1/8", "dual value = 1/4", "5.144957554"],
                                    2),
    "machines/fruit_laboratory.py": (["lemon against apple: hard", "orange against apple: soft",
                                      "ten lines: error 0.173"], 2),
    "machines/c_path.py": (["path of 96 breakpoints", "optimal to a relative gap"], 2),
    "machines/margins_and_kkt.py": (["57 support vectors of 200", "misclassified", "(span)"], 2),
    "machines/duality_gap.py": (["newton", "interior-point", "coordinate-descent", "D = 1194.13"],
                                2),
    "machines/stopped_early.py": (["ended at iteration limit", "not optimal", "converged |"], 1),
    "kernels/kernel_trick.py": (["positive semidefinite", "NOT a Mercer kernel", "separates all 4"],
                                1),
    "kernels/gamma.py": ([], 2),
    "kernels/gram_matrices.py": (["NOT a Mercer kernel on 150", "0.5 * RBF(gamma=0.5)"], 1),
    "kernels/nystroem.py": (["200 landmarks", "kernel error"], 2),
    "choosing/search_map.py": (["all fits certified: True", "test rows 0.9"], 1),
    "choosing/many_classes.py": (["one-vs-one      6 tasks", "Crammer–Singer  1 tasks"], 2),
    "choosing/imbalanced.py": (["none       accuracy 0.96", "recall 0.32", "recall 0.98"], 2),
    "choosing/probabilities.py": (["Platt's sigmoid", "isotonic", "Brier score 0.12"], 1),
    "regression/tube.py": (["SVR: the targets", "NuSVR: the targets", "within ε = 0.15",
                            "optimal to a relative gap", "standardise y"], 2),
    "regression/novelty.py": (["OneClassSVM: the region", "whole square accepted"], 2),
    "practice/real_data.py": (["chosen", "test error 0.0", "optimal to a relative gap",
                               "tumours.mm: ", "tumours.html: ", "same answers: True"], 1),
    "practice/pipelines.py": (["SVC after ColumnEncoder: accuracy 0.887", "colour=red",
                               "optimal to"], 1),
    "practice/text.py": (["test error 0.", "optimal to a relative gap"], 2),
    "practice/saving.py": (["same answers: True", "verified", "after a change of b: False",
                            "svm_type c_svc", "MatMul"], 1),
    "practice/cluster.py": (["LinearSVC on 200,000 rows in 8 partitions", "2 workers, 2 threads",
                             "passes over 200,000 rows", "a Array of 8 blocks",
                             "SVC on 3,000 rows"], 0),
}  # fmt: skip

# Script → what it imports besides the dependencies.
NEEDS = {"practice/cluster.py": "distributed", "practice/saving.py": "skl2onnx"}


def test_every_example_is_tested():
    found = {path.relative_to(EXAMPLES).as_posix() for path in EXAMPLES.rglob("*.py")}
    assert found == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.filterwarnings("error::UserWarning")
def test_example(name, tmp_path, monkeypatch, capsys):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    words, n_figures = EXPECTED[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(EXAMPLES / name)])
    with matplotlib.rc_context({"backend": "Agg"}), sklearn.config_context():
        warnings.filterwarnings("ignore", message="FigureCanvasAgg is non-interactive")
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
        figures = [plt.figure(number) for number in plt.get_fignums()]
        for figure in figures:
            figure.savefig("figure.png", dpi=50)
    printed = capsys.readouterr().out
    for part in words:
        assert part in printed, printed
    assert len(figures) == n_figures
    assert {path.name for path in tmp_path.iterdir()} == ({"figure.png"} if n_figures else set())
