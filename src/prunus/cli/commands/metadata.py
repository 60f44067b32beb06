"""``prunus metadata``: show what pages say about themselves."""

from __future__ import annotations

from contextlib import closing
from dataclasses import asdict
from typing import Any

import click

from ...api.pages import metadata_each
from ...core.errors import Failures, PrunusError
from ...core.settings import load_settings
from ..choices import PAGE, common
from ..inputs import pages_given
from ..output import emit, emit_json, one_line, settle


@click.command("metadata")
@click.argument("pages", nargs=-1, required=True, type=PAGE, metavar="PAGE...")
@common
def command(pages: tuple[str, ...], **flags: Any) -> None:
    """Show what pages say about themselves: title, authors, dates, language, site, description, canonical address.

    PAGE is a file, a folder (for all pages in it), an address, or - for standard input. Dates are ISO 8601. What a page
    does not say is left out.

    \b
    Examples:
      prunus metadata examples/site/faq.html
      prunus metadata examples/site --json
    """
    settings = load_settings()
    given = pages_given(pages, settings)
    failures = Failures()
    with closing(metadata_each([page.source for page in given], settings)) as result:
        for page, known in zip(given, result, strict=True):
            if isinstance(known, PrunusError):
                failures.note(known, page.name)
                if flags["as_json"]:
                    emit_json({"page": page.name, "error": str(known)})
            elif flags["as_json"]:
                emit_json({"page": page.name, **asdict(known)})
            else:
                emit(one_line(page.name))
                for name, value in asdict(known).items():
                    if value:
                        emit(f"  {name}: {one_line(value if isinstance(value, str) else ', '.join(value))}")
    settle(failures, len(given) - len(failures))
