"""Solvers of the linear machine, and calls that tests watch."""

from __future__ import annotations

import pytest

from tests.helpers.primal_solvers import METHODS


@pytest.fixture(params=METHODS, ids=lambda method: method.name)
def method(request):
    return request.param


@pytest.fixture
def watched(monkeypatch):
    """Return watch(owner, name) ↦ a list that grows with every call of a method."""

    def watch(owner, name):
        calls, function = [], owner.__dict__[name]

        def watching(*args, **options):
            out = function(*args, **options)
            calls.append(out)
            return out

        monkeypatch.setattr(owner, name, watching)
        return calls

    return watch
