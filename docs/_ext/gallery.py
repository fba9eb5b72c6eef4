"""The order of the gallery: folders of examples/, and the programs of each."""

from __future__ import annotations

from pathlib import Path

ORDER = {
    "planes": ["perceptron_to_svm", "perceptron_bound", "pocket_and_outlier", "least_squares",
               "separability"],
    "machines": ["worked_examples", "fruit_laboratory", "margins_and_kkt", "c_path", "duality_gap",
                 "stopped_early"],
    "kernels": ["kernel_trick", "gamma", "gram_matrices", "nystroem"],
    "choosing": ["search_map", "many_classes", "imbalanced", "probabilities"],
    "regression": ["tube", "novelty"],
    "practice": ["real_data", "pipelines", "text", "saving", "cluster"],
}  # fmt: skip


class Listed:
    """The key by which sphinx-gallery sorts the programs of a folder."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder).name

    def __call__(self, file: str) -> int:
        return ORDER[self.folder].index(file.removesuffix(".py"))
