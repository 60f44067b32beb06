"""Handlers of LaTeX commands that need code. Each handler reads its arguments from the source."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from ....core.text.numbers import bounded_int
from .._common.write import escape_attribute, escape_text
from . import words as vocabulary
from .acronyms import ACRONYM_HANDLERS
from .bib import entries
from .environments import begin
from .lists import LIST_HANDLERS, count_item
from .source import NO_VALUE, TRUE, Macro, TexSource
from .units import UNIT_HANDLERS

if TYPE_CHECKING:
    from .reader import TexReader

_SUM: Final = re.compile(r"[^\s<+−-]\s*[+−-]")
_NO_SPACE: Final = re.compile(r"\\(?:[\s/)]|footnote)")
_TAG: Final = re.compile(r"<[^<>]*>")


def line_break(reader: TexReader, source: TexSource) -> None:
    source.option()
    reader.line.append("<br>")


def inline_math(reader: TexReader, source: TexSource) -> None:
    reader.math(source.until("\\)"))


def display_math(reader: TexReader, source: TexSource) -> None:
    reader.math(source.until("\\]"), display=True)


def inline_verbatim(reader: TexReader, source: TexSource) -> None:
    reader.line.append(f"<code>{escape_text(source.delimited())}</code>")


def listing_inline(reader: TexReader, source: TexSource) -> None:
    source.option()
    inline_verbatim(reader, source)


def inline_minted(reader: TexReader, source: TexSource) -> None:
    source.option()
    source.argument()
    reader.line.append(f"<code>{escape_text(source.delimited())}</code>")


def item(reader: TexReader, source: TexSource) -> None:
    """Begin a list item; outside a list, end the paragraph."""
    option = source.option()
    if reader.items is None:
        reader.flush()
        return
    reader.close_item()
    reader.label = reader.inline(option) if option is not None else count_item(reader)
    reader.items.append(("", ""))


def footnote(reader: TexReader, source: TexSource) -> None:
    """Write the reference of a footnote, and keep its text for the end of the document."""
    source.option()
    position = len(reader.state.footnotes)
    reader.state.footnotes.append("")  # take the number before the text, which may hold footnotes itself
    reader.state.footnotes[position] = reader.inline(source.argument())
    reader.line.append(f"<sup>[{position + 1}]</sup>")


def set_label(reader: TexReader, source: TexSource) -> None:
    """Give the latest number (section, figure, equation) a label."""
    reader.state.set_label(source.argument(), reader.state.last)


def link_url(reader: TexReader, source: TexSource) -> None:
    write_link(reader, source.argument().replace("\\", ""), "")


def link_with_text(reader: TexReader, source: TexSource) -> None:
    source.option()
    target = source.argument().replace("\\", "")
    write_link(reader, target, reader.inline(source.argument()))


def write_link(reader: TexReader, target: str, shown: str) -> None:
    target = "".join(target.split())
    text = shown or escape_text(target)
    is_address = target.lower().startswith(("http://", "https://", "mailto:"))
    reader.line.append(f'<a href="{escape_attribute(target)}">{text}</a>' if is_address else text)


def include_picture(reader: TexReader, source: TexSource) -> None:
    """Add a picture, with the alt text from its options."""
    options = source.option() or ""
    name = source.argument().strip()
    alt = re.search(r"alt\s*=\s*\{?([^},]*)", options)
    reader.line.append(
        f'<img src="{escape_attribute(name)}" alt="{escape_attribute(alt[1] if alt else "")}">' if name else ""
    )


def caption(reader: TexReader, source: TexSource) -> None:
    """Keep the caption of a float; outside a float, add it as a paragraph."""
    source.option()
    text = reader.inline(source.argument())
    if reader.caption:
        text = f"{reader.caption} {text}"
    reader.caption = text
    if not reader.inside_float:
        reader.block(f"<p>{text}</p>")
        reader.caption = ""


def title_part(reader: TexReader, name: str, source: TexSource) -> None:
    source.option()
    setattr(reader.state, name, reader.inline(source.argument()).replace(" , ", ", "))


def make_title(reader: TexReader, source: TexSource) -> None:
    """Add title, author and date, once."""
    state = reader.state
    if state.shown_title:
        return
    state.shown_title = True
    reader.block(f"<h1>{state.title}</h1>" if state.title else "")
    for text in (state.author, state.date):
        if text.strip():
            reader.block(f"<p>{text}</p>")


def include_file(reader: TexReader, source: TexSource) -> None:
    """Read an included file next, or record a note."""
    name = source.argument().strip()
    full = name if name.lower().endswith((".tex", ".ltx", ".bbl")) else f"{name}.tex"
    text = reader.state.file(full)
    if text is None or not source.push(text):
        reader.state.remark(f"The file {full[:200]} is left out: it is not beside the document, or may not be read.")


def bibliography(reader: TexReader, source: TexSource) -> None:
    """Read the ``.bib`` files, or else the ``.bbl`` file beside the document, or record a note."""
    names = source.argument().split(",")
    result = {}
    for name in names:
        text = reader.state.file(name.strip() if name.strip().endswith(".bib") else f"{name.strip()}.bib")
        if text is not None:
            result.update(entries(text))
    if result:
        reader.state.bibliography = {**result, **reader.state.bibliography}
        reader.block("\ue000B\ue001")
        return
    # without .bib files, use the bibliography that BibTeX wrote beside the document
    text = reader.state.file(f"{reader.state.job}.bbl") if reader.state.job else None
    if text is not None:
        source.push(text)
    else:
        reader.state.remark("The bibliography is left out: its file is not beside the document.")


def bibliography_file(reader: TexReader, source: TexSource) -> None:
    """Read a ``.bib`` file of biblatex."""
    source.option()
    name = source.argument().strip()
    text = reader.state.file(name)
    if text is not None:
        reader.state.bibliography = {**entries(text), **reader.state.bibliography}


def print_bibliography(reader: TexReader, source: TexSource) -> None:
    """Mark the place of the bibliography."""
    source.option()
    reader.block("\ue000B\ue001")


def define_theorem(reader: TexReader, source: TexSource) -> None:
    """Record a theorem environment and its title."""
    name = source.argument().strip()
    source.option()
    reader.state.theorems[name] = reader.inline(source.argument())
    source.option()


def skip_false_branch(reader: TexReader, source: TexSource) -> None:
    source.until("\\fi")


def let(reader: TexReader, source: TexSource) -> None:
    """Record a ``\\let`` as a macro without arguments."""
    name = source.argument().lstrip("\\")
    if source.peek() == "=":
        source.next()
    target = source.argument()
    commands = reader.state.macros.commands
    known = commands.get(target.lstrip("\\"))  # its present definition: a later one does not count
    commands.setdefault(name, known or Macro(0, None, target if target != f"\\{name}" else ""))


def frame_title(reader: TexReader, source: TexSource) -> None:
    source.option()
    text = reader.inline(source.argument())
    reader.block(f"<h3>{text}</h3>" if text else "")


def begin_appendix(reader: TexReader, source: TexSource) -> None:
    """Restart the section numbers, which are letters from here on."""
    reader.state.appendix = True
    reader.state.counters[vocabulary.HEADINGS[1 if reader.state.chapters else 2]] = 0


def skip_argument(reader: TexReader, source: TexSource) -> None:
    """Drop the first argument and the option before it; the text of the next argument is kept."""
    source.option()
    source.argument()
    source.option()


def listing_file(reader: TexReader, source: TexSource) -> None:
    """Record a note: listings from other files are not read."""
    source.option()
    source.argument()
    reader.state.remark("A listing from another file is left out.")


def skip_character(reader: TexReader, source: TexSource) -> None:
    source.argument()


def end_paragraph(reader: TexReader, source: TexSource) -> None:
    reader.flush()


def caption_of(reader: TexReader, source: TexSource) -> None:
    source.argument()
    caption(reader, source)


def fraction(reader: TexReader, source: TexSource) -> None:
    """Write a fraction of text with a slash, apart from a whole number before it: 5 1/3, not 51/3."""
    source.option()
    parts = [reader.inline(source.argument()) for _ in range(2)]
    above, below = (f"({part})" if _SUM.search(part) else part for part in parts)
    before = _TAG.sub("", "".join(reader.line[-2:]))[-1:]
    reader.line.append(f"{' ' if before.isdigit() else ''}{above}/{below}")


def deleted(reader: TexReader, source: TexSource) -> None:
    """Write what the package changes shows as struck."""
    source.option()
    struck = reader.inline(source.argument())
    reader.line.append(f"<s>{struck}</s>" if struck else "")


def replaced(reader: TexReader, source: TexSource) -> None:
    """Write the old text, struck, and then the new text, which comes first in the source."""
    source.option()
    new = reader.inline(source.argument())
    deleted(reader, source)
    reader.line.append(f" {new}")


def table_note_mark(reader: TexReader, source: TexSource) -> None:
    """Write the mark of a note below a table in brackets: 5[2] is the number 5 with note 2."""
    mark = reader.inline(source.argument())
    reader.line.append(f"<sup>[{mark}]</sup>" if mark else "")


def dingbat(reader: TexReader, source: TexSource) -> None:
    """Write the sign of the font Zapf Dingbats that has this code; an unknown code stays a number."""
    code = source.argument().strip()
    reader.line.append(vocabulary.dingbat(bounded_int(code, 0, most=255)) or escape_text(f"({code})"))


def space_before_word(reader: TexReader, source: TexSource) -> None:
    """Write the space that LaTeX skipped after the name of the macro that ends here, unless a sign comes next."""
    after = source.following()
    if after and after[0] not in " \t\n.,;:!?'/)-~{}&" and not _NO_SPACE.match(after):
        reader.line.append(" ")


def box(reader: TexReader, source: TexSource) -> None:
    """Drop width and alignment of a box; its text is kept."""
    source.option()
    source.option()


def framed_box(reader: TexReader, source: TexSource) -> None:
    """Drop the colours of frame and ground of a box; its text is kept."""
    source.option()
    source.argument()
    skip_argument(reader, source)


def quotation(reader: TexReader, source: TexSource) -> None:
    """Write a text in quotes; a quotation inside another has single quotes."""
    state = reader.state
    state.quotes += 1
    text = reader.inline(source.argument())
    state.quotes -= 1
    reader.line.append(f"‘{text}’" if state.quotes % 2 else f"“{text}”")


def skip_two_arguments(reader: TexReader, source: TexSource) -> None:
    source.argument()
    source.argument()


def choose(has_false: bool, has_true: bool, tells: Callable[[str], bool]) -> Callable[[Any, TexSource], None]:
    """Return the handler that reads one of two branches, by what an argument of a macro is."""

    def handler(reader: TexReader, source: TexSource) -> None:
        is_true = tells(source.argument().strip())
        branches = {
            True: source.argument() if has_true else "",
            False: source.argument() if has_false else "",
        }
        branch = branches[is_true]
        reader.push_expansion(branch if reader.state.macros.spend(len(branch)) else None, source)

    return handler


_CHOICES: Final = {
    "IfNoValue": lambda text: text == NO_VALUE,
    "IfValue": lambda text: text != NO_VALUE,
    "IfBoolean": lambda text: text == TRUE,
}

HANDLERS: Final[dict[str, Callable[[Any, TexSource], object]]] = {
    "begin": begin, "\\": line_break, "newline": line_break,
    "linebreak": line_break, "(": inline_math, "[": display_math,
    "par": end_paragraph, "verb": inline_verbatim, "lstinline": listing_inline,
    "path": inline_verbatim, "mintinline": inline_minted, "item": item, "footnote": footnote,
    "footnotetext": footnote, "thanks": footnote, "label": set_label, "url": link_url,
    "nolinkurl": link_url, "href": link_with_text, "includegraphics": include_picture,
    "caption": caption, "captionof": caption_of,
    "subcaption": caption,
    "title": lambda reader, source: title_part(reader, "title", source),
    "author": lambda reader, source: title_part(reader, "author", source),
    "date": lambda reader, source: title_part(reader, "date", source), "maketitle": make_title,
    "input": include_file, "include": include_file, "subfile": include_file,
    "bibliography": bibliography, "addbibresource": bibliography_file,
    "printbibliography": print_bibliography, "newtheorem": define_theorem,
    "iffalse": skip_false_branch, "let": let, "frametitle": frame_title,
    "appendix": begin_appendix, "textcolor": skip_argument, "parbox": skip_argument,
    "scalebox": skip_argument, "raisebox": skip_argument, "resizebox": skip_two_arguments,
    "foreignlanguage": skip_argument, "lstinputlisting": listing_file,
    "verbatiminput": listing_file, "inputminted": listing_file, "symbol": skip_character,
    "ding": dingbat, "xspace": space_before_word, "makebox": box, "framebox": box, "fcolorbox": framed_box,
    "colorbox": skip_argument, "rotatebox": skip_argument, "enquote": quotation,
    "deleted": deleted, "replaced": replaced, "tnote": table_note_mark,
    **dict.fromkeys(("nicefrac", "sfrac", "frac", "tfrac", "dfrac", "cfrac"), fraction), **UNIT_HANDLERS,
    **{f"{name}{branches}": choose("F" in branches, "T" in branches, tells)
       for name, tells in _CHOICES.items() for branches in ("TF", "T", "F")},
    **LIST_HANDLERS,
    **ACRONYM_HANDLERS,
}  # fmt: skip
"""Handlers by command name."""
