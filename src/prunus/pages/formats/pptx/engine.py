"""``pptx``: PowerPoint slides: a section each, shapes in the order in which they stand, notes below."""

from __future__ import annotations

from ....core.types import Page


class Engine:
    """PowerPoint presentations (.pptx, .pptm, .ppsx). Macros and embedded files are never opened.

    The title of slide N stands in ``<data value="slide-N">``. Hidden slides and shapes stay out.
    """

    name = "pptx"
    media_types = (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.openxmlformats-officedocument.presentationml.slideshow",
        "application/vnd.ms-powerpoint.presentation.macroenabled.12",
    )
    suffixes = (".pptx", ".pptm", ".ppsx")

    def to_html(self, page: Page) -> str:
        """Return the presentation as HTML.

        :raises BadPage: it is no presentation, damaged, encrypted, or over a limit.
        """
        from .slides import slides_html  # here: others need not load it

        return slides_html(page)
