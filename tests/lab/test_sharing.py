"""Links to a state of the lab."""

import base64
import json
import zlib
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("bokeh", reason="bokeh is not installed")

from maxmargin.lab import sharing
from maxmargin.lab.algorithms import ALGORITHMS
from maxmargin.lab.fitting import Request, answered
from maxmargin.lab.points import SAMPLES, checked
from maxmargin.lab.sharing import MOST_KEPT, code_of, link_of, restored
from maxmargin.lab.state import State
from tests.helpers.lab import ALL_KEYS, extremes, never, points_of

pytestmark = pytest.mark.filterwarnings("ignore")


def packed(record):
    content = record if isinstance(record, bytes) else json.dumps(record).encode()
    return base64.urlsafe_b64encode(zlib.compress(content, 9)).decode().rstrip("=")


RECORD = {
    "points": [[0, 0], [1, 0], [3, 3], [4, 3]], "codes": [0, 0, 1, 1],
    "names": ["A", "B"], "axes": ["x", "y"], "algorithms": [["svc", {}]],
}  # fmt: skip


@pytest.mark.parametrize("key", ALL_KEYS)
def test_links_restore_everything(key):
    algorithm = ALGORITHMS[key]
    values = {c.name: extremes(c)[-1] for c in algorithm.controls}
    points = SAMPLES["fruit: apple, pear"]()
    chosen = ((key, values), ("lms", ALGORITHMS["lms"].defaults()))
    state = State(
        points, chosen, compared=True, sample="fruit: apple, pear", lesson="xor", met=(0,),
        done=("c", "nu"), tab="points", subject=1, step=7, dark=False,
    )  # fmt: skip
    link = link_of(state)
    assert link.startswith("?lab=")
    found = restored(link.removeprefix("?lab="))
    back = found.points
    np.testing.assert_array_equal(back.X, points.X)
    np.testing.assert_array_equal(back.codes, points.codes)
    assert (back.names, back.axes) == (points.names, points.axes)
    assert replace(found, points=state.points).is_like(state)
    for name in ("met", "done", "tab", "subject", "step", "dark"):
        assert getattr(found, name) == getattr(state, name)


def test_links_restore_small_numbers():
    points = checked([[1e-8, 0], [3e-8, 1e-8]], [0, 1])
    back = restored(link_of(State(points, (("svc", {}),))).removeprefix("?lab="))
    np.testing.assert_allclose(back.points.X, points.X, rtol=1e-6)


def test_two_hundred_points_fit_a_link_and_two_thousand_say_no():
    chosen = (("svc", ALGORITHMS["svc"].defaults()),)
    assert len(link_of(State(SAMPLES["blobs, 200"](), chosen))) < 8000
    many = State(SAMPLES["blobs, 2,000"](), chosen)
    with pytest.raises(ValueError, match="CSV"):
        link_of(many)
    assert len(restored(sharing.packed(many), MOST_KEPT).points.X) == 2000


def test_links_that_name_two_algorithms_alone_show_both():
    assert not restored(packed(RECORD)).compared
    two = RECORD | {"algorithms": [["svc", {}], ["lms", {}]]}
    assert restored(packed(two)).compared
    assert not restored(packed(two | {"compared": False})).compared
    assert not restored(packed(RECORD | {"compared": True})).compared


@pytest.mark.parametrize(
    "change",
    [
        {"step": -1}, {"step": "x"}, {"step": 1e99}, {"tab": 3}, {"tab": ["points"]},
        {"dark": "yes"}, {"subject": 5}, {"lesson": "no-such"}, {"lesson": ["xor"]},
        {"sample": "no-such"}, {"sample": {}}, {"met": ["x", -1, 10**30]}, {"done": ["no-such"]},
    ],
)  # fmt: skip
def test_what_a_link_forges_about_the_page_is_left_out(change):
    assert link_of(restored(packed(RECORD | change))) == link_of(restored(packed(RECORD)))


@pytest.mark.parametrize(
    "text",
    [
        "", "garbage", "A" * 20_000, "%3Cscript%3E", packed(b""), packed(b"{}"), packed(b"[]"),
        packed(b" " * 5_000_000), packed(b"null"), packed(RECORD)[:-10],
        *(packed(RECORD | change) for change in (
            {"algorithms": []}, {"algorithms": [["eval", {}]]}, {"algorithms": [[["svc"], {}]]},
            {"algorithms": "svc"}, {"algorithms": [["svc", 3]]}, {"codes": [0, 0, 1]},
            {"codes": [0, 0, 1, 9]}, {"codes": [0, 0, 1, "x"]}, {"points": [[0, 0]] * 3000},
            {"points": [[0, 0], [1, 0], [3, 3], [4, 1e300]]}, {"points": "abcd"},
            {"points": [[0, 0], [1, 0], [3, 3], [4, None]]}, {"axes": ["x"]}, {"names": None},
        )),
    ],
)  # fmt: skip
def test_forged_links_are_refused(text):
    with pytest.raises(ValueError, match="link"):
        restored(text)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(packed(RECORD | {"codes": [0, 0, 1, 10**30]}), id="huge-class"),
        pytest.param(packed(RECORD | {"points": [[0, 0], [1, 0], [3, 3], [4, 10**400]]}),
                     id="huge-point"),
        pytest.param(packed(b"[" * 200_000), id="deep"),
    ],
)  # fmt: skip
def test_links_that_break_the_reader_are_refused(text):
    with pytest.raises(ValueError, match="link"):
        restored(text)


def test_foreign_settings_of_a_link_are_replaced():
    change = {"algorithms": [["svc", {"C": "1e9", "kernel": "os.system", "callback": "print"}]] * 5}
    chosen = restored(packed(RECORD | change)).chosen
    assert chosen == (("svc", ALGORITHMS["svc"].defaults()),) * 2


def scores(model, X):
    return model.decision_function(X) if hasattr(model, "decision_function") else model.predict(X)


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("key", ALL_KEYS)
def test_the_code_makes_the_same_model(key, n_classes):
    points = points_of(n_classes)
    values = ALGORITHMS[key].defaults()
    model = answered(Request(points, key, values), never).model
    space = {}
    exec(code_of(points, key, values), space)
    X, _ = points.training(ALGORITHMS[key].family)
    expected = scores(model, X)
    np.testing.assert_allclose(
        scores(space["model"], X), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max()
    )


@pytest.mark.parametrize("key", ALL_KEYS)
def test_the_code_of_the_last_of_every_control_runs(key):
    algorithm = ALGORITHMS[key]
    values = {c.name: extremes(c)[-1] for c in algorithm.controls}
    points = SAMPLES["six points"]()
    outcome = answered(Request(points, key, values), never)
    space = {}
    program = code_of(points, key, values)
    if outcome.model is None:
        with pytest.raises(ValueError, match=r".+"):
            exec(program, space)
    else:
        exec(program, space)
        X, _ = points.training(algorithm.family)
        np.testing.assert_array_equal(scores(space["model"], X), scores(outcome.model, X))


def test_names_in_code_are_only_names():
    bad = '"]); raise SystemExit("run") #'
    points = checked([[0, 0], [1, 1]], [0, 1], (bad, "B\n\\"))
    space = {}
    exec(code_of(points, "svc", ALGORITHMS["svc"].defaults()), space)
    assert set(space["y"].tolist()) == {bad, "B\n\\"}


def test_the_code_of_no_points_is_a_program():
    compile(
        code_of(checked(np.empty((0, 2)), []), "svc", ALGORITHMS["svc"].defaults()), "x", "exec"
    )
