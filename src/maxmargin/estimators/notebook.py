"""How a fitted estimator is shown in a notebook: scikit-learn's diagram, and what was proved."""

from __future__ import annotations

from importlib import import_module
from typing import Any

# Imported by name when something is shown: it reads fitted models and draws, far above estimators.
VIEW = "maxmargin.notebook"


class NotebookMixin:
    """Adds the certificate to the HTML of scikit-learn, which stays as ``set_config`` has it.

    Both methods exist in all versions of scikit-learn from 1.6 on; diagrams of pipelines and
    searches call neither of them.
    """

    def _repr_html_inner(self) -> str:
        """Return what ``_repr_html_`` returns where diagrams are on."""
        diagram: str = super()._repr_html_inner()  # type: ignore[misc]
        return diagram + self._proof_html()

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """Return what notebooks show."""
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._proof_html()
        return bundle

    def _proof_html(self) -> str:
        view = import_module(VIEW)
        html: str = view.described(self)
        return html
