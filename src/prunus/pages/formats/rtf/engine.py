"""``rtf``: Rich Text Format from word processors and mail programs."""

from __future__ import annotations

from ....core.errors import BadPage
from ....core.types import Page
from ...clean.parse import MAX_BYTES


class Engine:
    """Rich Text (.rtf). Hidden and deleted text, headers and embedded objects are left out; comments are asides."""

    name = "rtf"
    media_types = ("application/rtf", "text/rtf", "text/richtext")
    suffixes = (".rtf",)

    def to_html(self, page: Page) -> str:
        """Return the document as HTML.

        :raises BadPage: the page is no RTF, shows no text, is too large, or is nested too deep.
        """
        from .._common.allowance import Allowance
        from .._common.body import Body  # lazy: a program that reads no such file does not load it
        from .._common.write import document
        from .reader import MAX_DEPTH, RtfReader, TooDeep

        name = page.url or "page"
        content = page.content.encode("latin-1", "replace") if isinstance(page.content, str) else page.content
        if not _is_rtf(content):
            raise BadPage(f"{name}: this is no RTF document", subject=page.url)
        if len(content) > MAX_BYTES:
            raise BadPage(
                f"{name}: the RTF document is over the limit of {MAX_BYTES >> 20} MiB; split it", subject=page.url
            )
        reader = RtfReader(content, Allowance(page.url))
        try:
            reader.read()
        except TooDeep as error:
            raise BadPage(
                f"{name}: groups are nested more than {MAX_DEPTH} deep; save it anew as .docx or .pdf", subject=page.url
            ) from error
        body = Body()
        body.add(reader.story.html())
        if reader.notes:
            body.add(f"<section><ol>{''.join(f'<li>{note}</li>' for note in reader.notes)}</ol></section>")
        html = body.html()
        if not html:
            raise BadPage(f"{name}: the RTF document shows no text", subject=page.url)
        meta = {key: reader.metadata.get(key, "") for key in ("author", "published")}
        return document([html], reader.metadata.get("title", ""), **meta)


def _is_rtf(content: bytes) -> bool:
    return content[:100].lstrip(b"\xef\xbb\xbf \r\n\t\0").startswith(b"{\\rtf")
