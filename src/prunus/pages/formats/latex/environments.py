"""Convert LaTeX environments: lists, tables, floats, code, formulas, theorems, bibliographies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from .._common.write import escape_text
from . import words as vocabulary
from .columns import columns_of
from .lists import write_list
from .source import END, TexSource, expand

if TYPE_CHECKING:
    from .reader import TexReader

_LABEL: Final = re.compile(r"\\label\s*\{([^{}]*)\}")
_ROW: Final = re.compile(r"\\\\")
_UNNUMBERED: Final = ("displaymath", "math", "split", "aligned", "dmath")
_WITHOUT_WRAPPER: Final = ("equation", "displaymath", "math")
_MANY_ROWED: Final = ("align", "gather", "eqnarray", "flalign", "alignat", "IEEEeqnarray")
_EQUATION_TAG: Final = re.compile(r"\\tag\*?\s*\{([^{}$\\]{1,60})\}")
_BIBITEM: Final = re.compile(r"\\bibitem\b")
_LANGUAGE: Final = re.compile(r"language\s*=\s*\{?(?:\[[^\[\]]*\])?([A-Za-z0-9+#-]+)")
_CAPTION: Final = re.compile(r"\\caption\*?(?![a-zA-Z])")
_ITEM: Final = re.compile(r"\\item(?![a-zA-Z])")
_LONG: Final = ("longtable", "xltabular", "longtabu")
_REPEATED: Final = re.compile(r"\\end(firsthead|head|foot|lastfoot)(?![a-zA-Z])")
_ROW_END: Final = re.compile(r"\\\\\*?(?:\[[^\[\]]{0,20}\])?\s*$|\\tabularnewline\s*$")
_WITH_WIDTH: Final = ("tabularx", "tabulary", "tabular*", "xltabular")
_ARGUMENTS: Final = {
    "minipage": 1, "multicols": 1, "column": 1, "adjustbox": 1, "spacing": 1, "adjustwidth": 2, "textblock": 1,
}  # fmt: skip


def begin(reader: TexReader, source: TexSource) -> None:
    """Read an environment whose ``\\begin`` was read; its name comes next."""
    name = source.argument().strip()
    state, base = reader.state, name.rstrip("*")
    defined = state.macros.environments.get(name)
    if defined:
        body = TexSource(source.environment(name))
        first = expand(defined[0], body, state.macros) if state.macros.spend(len(defined[1])) else None
        reader.push_expansion(None if first is None else f"{first}{body.until(END)}{defined[1]}", source)
    elif name == "document":
        state.began = True
        reader.parts.clear()
        reader.line.clear()
    elif base in vocabulary.VERBATIM:
        _verbatim(reader, base, source.environment(name))
    elif base in vocabulary.MATH:
        _math(reader, name, source.environment(name))
    elif base in vocabulary.TABLES:
        _tabular(reader, name, source)
    elif base in vocabulary.LISTS or base == "description" or name in state.list_names:
        write_list(reader, state.list_names.get(name, base), source, name)
    elif base == "tablenotes":
        _table_notes(reader, source.environment(name))
    elif base in vocabulary.FLOATS:
        _float(reader, base, source, name)
    elif base in vocabulary.QUOTES:
        reader.block(f"<blockquote>{reader.inner(source.environment(name)).markup()}</blockquote>")
    elif base == "abstract":
        abstract = reader.inner(source.environment(name)).markup()
        reader.block(f"<section><h2>Abstract</h2>{abstract}</section>")
    elif base in state.theorems:
        _theorem(reader, base, name, source)
    elif base == "thebibliography":
        source.argument()
        _bibliography(reader, source.environment(name))
    elif base in vocabulary.SKIPPED:
        source.environment(name)
    else:
        reader.flush()
        source.option()
        for _ in range(_ARGUMENTS.get(base, 0)):
            source.argument()
        if base in ("frame", "block", "alertblock", "exampleblock") and source.peek() == "{":
            reader.state.handlers["frametitle"](reader, source)


def _verbatim(reader: TexReader, name: str, body: str) -> None:
    language = ""
    if name == "minted" or body.lstrip(" ")[:1] == "[":
        body_source = TexSource(body)
        match = _LANGUAGE.search(body_source.option() or "")
        language = body_source.argument() if name == "minted" else match[1].lower() if match else ""
        body = body_source.until(END)
    reader.code(body, language)


def _math(reader: TexReader, name: str, body: str) -> None:
    state, base = reader.state, name.rstrip("*")
    labels = _LABEL.findall(body)
    number = ""
    if base == name and base not in _UNNUMBERED and base != "subequations":
        rows = _ROW.split(body) if base in _MANY_ROWED else [body]
        for row in rows:
            if row.strip() and "\\nonumber" not in row and "\\notag" not in row:
                tag = _EQUATION_TAG.search(row)  # such an equation is not counted
                state.last = tag[1].strip() if tag else state.step("equation")
                for label in _LABEL.findall(row):
                    state.set_label(label, state.last)
                    number = number or state.last
    if base == "math":
        reader.math(body)
        return
    reader.display(
        body if base in _WITHOUT_WRAPPER else f"\\begin{{{name}}}{body}\\end{{{name}}}", number if labels else ""
    )


def _tabular(reader: TexReader, name: str, source: TexSource) -> None:
    body = source.environment(name)
    body_source = TexSource(body)
    body_source.option()
    if name in _WITH_WIDTH:
        body_source.argument()
    body_source.option()
    columns = columns_of(body_source.argument())
    body = body_source.until(END)
    if name in _LONG:
        body = _without_repeats(body)
    caption = ""
    match = _CAPTION.search(body)
    if match:  # a longtable holds its caption inside
        caption_source = TexSource(body[match.end() :])
        caption_source.option()
        caption = reader.inline(caption_source.argument())
        body = body[: match.start()] + caption_source.until(END)
        number = reader.state.step("table")
        caption = f"Table {number}: {caption}"
        for label in _LABEL.findall(body):
            reader.state.set_label(label, number, "table")
        body = _LABEL.sub("", body).lstrip()
    reader.table(body.removeprefix("\\\\") if caption else body, caption, columns)


def _without_repeats(body: str) -> str:
    """Return a table of many pages as it reads on one page: the first header, the rows, the last foot."""
    pieces = _REPEATED.split(body)
    parts = dict(zip(pieces[1::2], pieces[::2], strict=False))
    if not parts:
        return body
    head = parts.get("firsthead", parts.get("head", ""))
    rows, foot = pieces[-1], parts.get("lastfoot", parts.get("foot", ""))
    if foot.strip() and not _ROW_END.search(rows[-200:]):
        rows = f"{rows}\\\\"
    head += r"\endhead" if head.strip() else ""
    return head + rows + foot


def _table_notes(reader: TexReader, body: str) -> None:
    """Add the notes below a table, each after its mark in brackets, as the mark stands in the table."""
    body_source = TexSource(body)
    body_source.option()
    body = body_source.until(END)
    first = _ITEM.search(body)
    start = first.start() if first else len(body)
    reader.block(reader.inner(body[:start]).markup())
    items = reader.list_inner(body[start:])
    notes = "".join(f"<li>{f'[{label}] ' if label else ''}{text}</li>" for label, text in items)
    reader.block(f"<ul>{notes}</ul>" if notes else "")


def _float(reader: TexReader, base: str, source: TexSource, name: str) -> None:
    body_source = TexSource(source.environment(name))
    body_source.option()
    for _ in range({"wrapfigure": 2, "wraptable": 2, "subfigure": 1}.get(base, 0)):
        body_source.argument()
    body = body_source.until(END)
    kind = vocabulary.FLOATS[base]
    number = (
        reader.state.step(base.removeprefix("wrap").removeprefix("sideways")) if kind and "\\caption" in body else ""
    )
    inner_reader = reader.inner(body, is_float=True)
    markup = inner_reader.markup()
    if number:
        for label in _LABEL.findall(body):
            reader.state.set_label(label, number, kind.lower())
    caption = inner_reader.caption
    if caption and number:
        caption = f"{kind} {number}: {caption}"
    if markup.startswith("<table>") and markup.count("<table>") == 1 and markup.endswith("</table>") and caption:
        reader.block(markup.replace("<table>", f"<table><caption>{caption}</caption>", 1))
    elif markup or caption:
        reader.block(f"<figure>{markup}{f'<figcaption>{caption}</figcaption>' if caption else ''}</figure>")


def _theorem(reader: TexReader, base: str, name: str, source: TexSource) -> None:
    body_source = TexSource(source.environment(name))
    option = body_source.option()
    number = "" if base == "proof" or name != base else f" {reader.state.step(base)}"
    remark = f" ({reader.inline(option)})" if option else ""
    result = reader.inner(body_source.until(END)).markup()
    title = reader.state.theorems[base]
    if not reader.state.macros.spend(len(title)):
        title = ""
    lead = f"<strong>{title}{number}{remark}.</strong> "
    reader.block(f"<p>{lead}{result[3:]}" if result.startswith("<p>") else f"<p>{lead}</p>{result}")


def _bibliography(reader: TexReader, body: str) -> None:
    """Add the entries of a ``thebibliography``, and record their labels for citations."""
    pieces = _BIBITEM.split(body)[1:]
    items = []
    for piece in pieces[:20_000]:
        source = TexSource(piece)
        label = source.option()
        key = source.argument().strip()
        text = reader.inline(source.until(END))
        shown = reader.inline(label) if label else ""
        shown = "" if len(shown) > 60 else shown
        reader.state.items[escape_text(key)] = (shown, text)
        items.append(f"<li>{f'[{shown}] ' if shown else ''}{text}</li>")
    if items:
        reader.block(f"<section><h2>References</h2><ol>{''.join(items)}</ol></section>")
