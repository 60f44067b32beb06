"""``prunus check``: check the claims of a text against pages."""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

import click

from ...api.check import check
from ...core.errors import BadInput, NothingFound
from ...core.settings import load_settings
from ...core.types import CheckedClaim
from ..choices import PAGE, common, origin, shown_only
from ..inputs import pages_given, read_given
from ..output import counted, emit, emit_json, one_line, say, working

_WIDTH: Final = 200
"""Letters of a quote that are shown."""


@click.command("check")
@click.argument("text", metavar="TEXT")
@click.argument("pages", nargs=-1, required=True, type=PAGE, metavar="PAGE...")
@click.option("--llm", default="", metavar="SPEC", help="A language model as judge, as http://host/v1#model.")
@origin
@shown_only
@common
def command(text: str, pages: tuple[str, ...], **flags: Any) -> None:
    """Check the claims of a text against pages: a verdict for each sentence, and the sentences that decide.

    TEXT is a file, or - for standard input, as a model wrote it; "[2]" behind a claim means the second page. PAGE is a
    file, a folder (for all pages in it), or an address. A claim with a number or a name that no page has is never
    called supported, and a quotation must stand word for word. No model is asked unless --llm names one. Where a claim
    is not supported, the exit code is 4.

    \b
    Examples:
      prunus check answer.md examples/site
      prunus check answer.md https://example.org/report --json
      prunus check answer.md examples/site --llm openai:gpt-4o-mini
      echo "The pen drew for sixty-four years." | prunus check - examples/site/tide-rolls-story.html
    """
    settings = load_settings({"shown_only": flags["shown_only"] or None})
    written = _written(text)
    given = pages_given(pages, settings, url=flags["url"], kind=flags["kind"])
    with working("checking", flags["quiet"]):
        result = check(written, read_given(given, settings, flags["quiet"]), settings, llm=flags["llm"])
    if flags["as_json"]:
        emit_json(asdict(result))
    else:
        for claim in result.claims:
            emit(_shown(claim))
    counts = [f"{result.count(verdict)} {verdict}" for verdict in ("supported", "partly", "not supported")]
    told = f"{counted(len(result.claims), 'claim')}: {', '.join(counts)}"
    if result.count("not supported"):
        raise NothingFound(told)
    if not flags["quiet"]:
        say(told)


def _written(text: str) -> str:
    """Return the text of a file, or of standard input.

    :raises BadInput: there is no such file, or it holds no text.
    """
    try:
        content = sys.stdin.buffer.read() if text == "-" else Path(text).read_bytes()
        return content.decode("utf-8-sig")
    except OSError as error:
        raise BadInput(
            f"{text}: {error.strerror or error}; TEXT is a file, or - for standard input", subject=text
        ) from None
    except UnicodeDecodeError:
        raise BadInput(f"{text}: this is no text in UTF-8", subject=text) from None


def _shown(claim: CheckedClaim) -> str:
    lines = [f"{claim.verdict:13} {claim.support:.2f}  {one_line(claim.text)}"]
    if claim.by == "model":
        lines.append("    verdict of the model")
    if claim.reason:
        lines.append(f"    {claim.reason}")
    for citation in claim.citations:
        quote = one_line(citation.quote)
        cut = quote if len(quote) <= _WIDTH else f"{quote[:_WIDTH].rsplit(' ', 1)[0]} …"
        lines.append(f"    [{citation.number}] “{cut}”  {citation.url}  {citation.place}".rstrip())
    return "\n".join(lines)
