"""What certificates prove, in words: never more than they do."""

from dataclasses import replace

import pytest

import maxmargin as mm
from maxmargin.diagnostics.fitted_model import FittedModel
from maxmargin.diagnostics.proofs import sentence, task_proofs, verdict_of
from maxmargin.report.internals import proof_of


@pytest.fixture
def model():
    X, y = mm.datasets.load_fruit(return_X_y=True)
    return mm.SVC().fit(X[y < 3], y[y < 3])


def test_a_sample_is_no_proof(model):
    assert verdict_of(task_proofs(FittedModel(model))) == "All 3 tasks proved"
    sampled = replace(model.certificates_[1], coverage="sampled", n_checked=7, n_samples=60)
    model.certificates_[1] = sampled
    proofs = task_proofs(FittedModel(model))
    assert [proof.is_proved for proof in proofs] == [True, False, True]
    assert proofs[1].verdict == "checked on a sample, not proved"
    assert proofs[1].checked == "7 of 60, a sample"
    assert verdict_of(proofs) == "2 of 3 tasks proved, 1 of 3 tasks checked on a sample, not proved"
    assert "not a proof for all rows" in sentence(False, "sampled")
    found = proof_of(FittedModel(model))
    assert not found.is_proved
    assert found.worst[0] == proofs[1]


def test_a_bounded_certificate_says_how_much_was_recomputed(model):
    some = {"coverage": "bounded", "n_checked": 40, "n_samples": 60}
    model.certificates_[0] = replace(model.certificates_[0], **some)
    proof = task_proofs(FittedModel(model))[0]
    assert proof.verdict == "proved"
    assert proof.checked == "40 of 60, the others bounded"


def test_tasks_that_fall_short_come_first(model):
    model.certificates_[2] = replace(model.certificates_[2], violation=0.5)
    found = proof_of(FittedModel(model))
    assert [proof.verdict for proof in found.worst] == ["not proved", "proved", "proved"]
    assert found.worst[0].name == "1 against 2"
    assert found.verdict == "2 of 3 tasks proved, 1 of 3 tasks not proved"
