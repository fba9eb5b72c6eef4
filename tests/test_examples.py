"""The examples run unchanged and print what they should."""

import runpy
import sys
from pathlib import Path

import matplotlib
import pytest
import sklearn

EXAMPLES = Path(__file__).parent.parent / "examples"
# Script → what it prints, and the files it leaves.
EXPECTED = {
    "fruit_laboratory.py": (["lemon against apple: hard", "orange against apple: soft"],
                            ["fruit-pairs.png", "fruit-lines.png"]),
    "worked_examples.py": (["α = 8/225, 0, 1/25, 0, 17/225, 0", "w = -1/3, 1/5   b = 2/15",
                            "α = 1/8, 1/8, 1/8, 1/8", "dual value = 1/4", "5.144957554"], []),
    "kernel_trick.py": (["positive semidefinite", "NOT a Mercer kernel", "separates all 4"],
                        ["kernel-trick.png"]),
    "perceptron_to_svm.py": (["hard margin            smallest distance   2.5725", "Novikoff"],
                             ["perceptron-to-svm.png", "perceptron-path.png", "perceptron.gif"]),
    "real_data.py": (["chosen", "test error 0.0", "optimal to a relative gap"],
                     ["tumours.mm", "tumours.html"]),
    "regression.py": (["SVR: the targets", "NuSVR: the targets", "OneClassSVM: the region",
                       "within ε = 0.15", "optimal to a relative gap", "standardise y"],
                      ["regression.png"]),
    "cluster.py": (["LinearSVC on 200,000 rows in 8 partitions", "optimal to a relative gap",
                    "passes over 200,000 rows", "2 workers, 2 threads", "a Array of 8 blocks",
                    "SVC on 3,000 rows"], []),
    "pipelines.py": (["SVC after ColumnEncoder: accuracy 0.887", "colour=red", "optimal to"], []),
}  # fmt: skip

# Script → what it imports besides the dependencies.
NEEDS = {"cluster.py": "distributed"}


def test_every_example_is_tested():
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(EXPECTED)


@pytest.mark.parametrize("name", EXPECTED)
@pytest.mark.filterwarnings("error::UserWarning")
def test_example(name, tmp_path, monkeypatch, capsys):
    if name in NEEDS:
        pytest.importorskip(NEEDS[name])
    words, files = EXPECTED[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", [str(EXAMPLES / name), str(tmp_path)])
    with matplotlib.rc_context({"backend": "Agg"}), sklearn.config_context():
        runpy.run_path(str(EXAMPLES / name), run_name="__main__")
    printed = capsys.readouterr().out
    for part in words:
        assert part in printed, printed
    assert {path.name for path in tmp_path.iterdir()} == set(files)
    assert all((tmp_path / file).stat().st_size > 500 for file in files)
