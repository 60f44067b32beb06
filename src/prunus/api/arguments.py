"""The arguments that every call of the library shares: one line says which is wrong, and what it should be."""

from __future__ import annotations

import os
from typing import Any

from ..core.errors import BadBudget, BadInput
from ..core.options import Options
from ..core.settings import Settings
from ..pages.clean.parse import without_surrogates
from ..pages.sources import is_address


def question_of(question: Any, pages: Any, call: str) -> str:
    """Return a question without surrogates.

    :param pages: the pages of the same call; question and pages are easily swapped.
    :param call: the call as it should be, for the error, as ``ask(question, pages)``.
    :raises BadInput: the question is no text, or it is a page.
    """
    if not isinstance(question, str):
        raise BadInput(f"the question is text, not {type(question).__name__}: {call}", subject="question")
    if is_address(question) or _is_path(question) or _is_page(question, pages):
        raise BadInput(f"{question[:80]!r} is a page and no question: {call}", subject="question")
    return without_surrogates(question)


def _is_path(question: str) -> bool:
    """Tell whether a question is the path of a file or folder; a single word may be both."""
    return len(question) < 4096 and ("." in question or os.sep in question) and os.path.exists(question)


def _is_page(question: str, pages: Any) -> bool:
    """Tell whether the question is HTML, and the page is text that is none."""
    return question.lstrip()[:1] == "<" and isinstance(pages, str) and "<" not in pages and not is_address(pages)


def check_choices(budget: Any, options: Any, settings: Any) -> None:
    """Check the types of arguments; None is allowed for each.

    :raises BadBudget: the budget is no whole number.
    :raises BadInput: the options or the settings are of another type.
    """
    if budget is not None and (not isinstance(budget, int) or isinstance(budget, bool)):
        raise BadBudget(f"the budget is a whole number of tokens, not {budget!r}", subject="budget")
    for name, value, kind in (("options", options, Options), ("settings", settings, Settings)):
        if value is not None and not isinstance(value, kind):
            way = "prunus.Options(…)" if kind is Options else "prunus.load_settings({…})"
            raise BadInput(f"{name} is of type {type(value).__name__}; make it by {way}", subject=name)
