"""Hypothesis strategies for HTML documents whose visible words are known.

A document is drawn as a tree of tuples, and :class:`_Scribe` writes it with numbered words. A reader must see
``w1 w2 w3 …``, each once and in order, and no hidden ``h1``. One comparison of lists finds a lost, repeated, moved,
split or joined word.
"""

from __future__ import annotations

import html as escaping
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

Node = tuple[Any, ...]


@dataclass
class Made:
    """A generated document with its known words.

    :param html: the markup.
    :param words: the words that a reader sees in order, cut at white space and at the edges of blocks.
    :param hidden: words that no reader sees.
    :param pre: the exact text of each preformatted block.
    """

    html: str
    words: list[str] = field(default_factory=list)
    hidden: list[str] = field(default_factory=list)
    pre: list[str] = field(default_factory=list)


# --- inline content --------------------------------------------------------------------------

GAPS = (" ", " ", " ", "\n", "  \t ", "\r\n   ", "&#32;", "&nbsp;", "")
"""White space before a word; an empty gap joins the word to the word before it."""

SHAPES = tuple(
    """{} {} {} {} {}, ({}) a<{} {}>b {}&lt; AT&{} &copy{} 数据{}库 ไทย{} *{}* <{}> 1.~{} |{}| `{} _{}_ #{} é{}ß
    {}\u00ad &{}; [{}](x) {}\U0001f600 $1{}""".split()
)
"""Visible forms of a word (~ is a space); the letters of markup among them must be escaped in HTML."""

MARKS = ("b", "i", "em", "strong", "span", "a", "a href=/x", "code", "sub", "sup", "small", "u", "mark", "font", "del",
         "abbr title=t", "q", "time", "cite", "kbd", "bdi")  # fmt: skip

HIDING = (
    "<{0} hidden>{1}</{0}>",
    '<{0} style="display:none">{1}</{0}>',
    '<{0} style="color:red; VISIBILITY : hidden">{1}</{0}>',
    '<{0} style="position:absolute;left:-9999px">{1}</{0}>',
    '<{0} style="width:0;height:0;overflow:hidden">{1}</{0}>',
    "<script>{1}</script>",
    "<style>{1}</style>",
    "<!-- {1} -->",
    "<template><p>{1}</template>",
    "<iframe>{1}</iframe>",
    "<svg><text>{1}</text></svg>",
    '<input type=hidden value="{1}">',
    "<object hidden><p>{1}</object>",
)

word = st.tuples(st.just("word"), st.sampled_from(GAPS), st.sampled_from(SHAPES))
plain_word = st.tuples(st.just("word"), st.just(" "), st.just("{}"))
break_line = st.just(("br",))
picture = st.just(("img",))
soft_break = st.just(("wbr",))
hidden_inline = st.tuples(st.just("hide"), st.just("span"), st.sampled_from(HIDING))
field_value = st.just(("input",))
button = st.tuples(st.just("button"), st.lists(plain_word, min_size=1, max_size=2))


def _inside(inline: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.tuples(st.just("mark"), st.sampled_from(MARKS), st.lists(inline, max_size=3))


inline: st.SearchStrategy[Node] = st.recursive(
    st.one_of(word, word, word, word, plain_word, break_line, picture, soft_break, hidden_inline, field_value, button),
    _inside,
    max_leaves=6,
)
line = st.lists(inline, max_size=5)
"""Inline content; may show nothing."""

# --- blocks ----------------------------------------------------------------------------------

WRAPPERS = (
    "div",
    "div class=x",
    "section",
    "article",
    "main",
    "center",
    "aside",
    "header",
    "footer",
    "form",
    "address",
)
PARAGRAPHS = ("p", "p", "div", "dt-free", "h1", "h2", "h3", "h6", "blockquote", "summary-free", "figcaption-free")

paragraph = st.tuples(st.just("block"), st.sampled_from(("p", "p", "div", "h1", "h2", "h3", "h6", "blockquote")), line)
bare = st.tuples(st.just("bare"), line)
rule = st.just(("void", "hr"))
empty_block = st.tuples(st.just("block"), st.sampled_from(("p", "div", "ul", "section", "span", "h2")), st.just([]))
hidden_block = st.tuples(st.just("hide"), st.sampled_from(("div", "p", "section")), st.sampled_from(HIDING))
code_line = st.tuples(st.sampled_from(("", "  ", "\t", "    ")), st.booleans(), st.sampled_from(("", " ", "  # ")))
pre = st.tuples(st.just("pre"), st.lists(code_line, min_size=1, max_size=5), st.booleans())
figure = st.tuples(st.just("figure"), line)
select = st.tuples(st.just("select"), st.integers(1, 4), st.integers(0, 3))


def cells(content: st.SearchStrategy[list[Node]]) -> st.SearchStrategy[Node]:
    """A table cell: kind, colspan, rowspan, content (often none)."""
    small = st.sampled_from((1, 1, 1, 1, 2, 3))
    return st.tuples(st.sampled_from(("td", "td", "th")), small, small, st.one_of(st.just([]), content, content))


def tables(content: st.SearchStrategy[list[Node]]) -> st.SearchStrategy[Node]:
    """A table: caption, whether its first row is a header, whether rows are grouped, rows of cells."""
    rows = st.lists(st.lists(cells(content), max_size=4), min_size=1, max_size=5)
    return st.tuples(st.just("table"), st.one_of(st.none(), line), st.booleans(), st.booleans(), rows)


def _compound(block: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    several = st.lists(block, max_size=3)
    item = st.tuples(line, several)
    return st.one_of(
        st.tuples(st.just("block"), st.sampled_from(WRAPPERS), several),
        st.tuples(st.just("block"), st.sampled_from(WRAPPERS), several),
        st.tuples(st.just("list"), st.sampled_from(("ul", "ol", "ol start=3")), st.lists(item, min_size=1, max_size=4)),
        st.tuples(st.just("list"), st.sampled_from(("ul", "ol", "ol start=3")), st.lists(item, min_size=1, max_size=4)),
        tables(st.one_of(line, several)),
        st.tuples(st.just("dl"), st.lists(st.tuples(line, line), min_size=1, max_size=3)),
        st.tuples(st.just("details"), line, several),
        st.tuples(st.just("block"), st.just("blockquote"), several),
    )


leaf_block = st.one_of(
    paragraph, paragraph, paragraph, bare, pre, figure, rule, empty_block, hidden_block, select, tables(line)
)
block: st.SearchStrategy[Node] = st.recursive(leaf_block, _compound, max_leaves=8)
flow = st.lists(block, min_size=1, max_size=5)


class _Scribe:
    """Writes a drawn tree as HTML, numbers its words, and records which of them a reader sees."""

    def __init__(self) -> None:
        self.out: list[str] = []
        self.made = Made("")
        self.count = 0
        self.joins = False  # whether the next word without a gap continues the last word

    def next_word(self) -> str:
        self.count += 1
        return f"w{self.count}"

    def show(self, shown: str, *, glued: bool) -> None:
        for place, part in enumerate(shown.split()):
            if place == 0 and glued and self.joins and self.made.words:
                self.made.words[-1] += part
            else:
                self.made.words.append(part)
        self.joins = True

    def hidden_word(self) -> str:
        self.made.hidden.append(f"h{len(self.made.hidden) + 1}")
        return self.made.hidden[-1]

    def end_word(self) -> None:
        self.joins = False

    def nodes(self, nodes: list[Node]) -> None:
        for node in nodes:
            getattr(self, f"_{node[0]}")(*node[1:])

    # -- inline -----------------------------------------------------------------------------------

    def _word(self, gap: str, shape: str) -> None:
        shown = shape.replace("~", " ").format(self.next_word())
        self.out.append(gap + escaping.escape(shown))
        self.show(shown, glued=not gap)

    def _mark(self, tag: str, nodes: list[Node]) -> None:
        name = tag.split()[0]
        if name == "label":
            self.end_word()
        # an <a> inside an <a> would close the outer one: that is broken markup
        nodes = [node for node in nodes if not (name in ("a", "nobr") and _holds(node, name))]
        self.out.append(f"<{tag}>")
        self.nodes(nodes)
        self.out.append(f"</{name}>")
        if name == "label":
            self.end_word()

    def _br(self) -> None:
        self.out.append("<br>")
        self.end_word()

    def _wbr(self) -> None:
        self.out.append("<wbr>")

    def _img(self) -> None:
        name = self.next_word()
        self.end_word()
        self.out.append(f'<img alt="{name}" src=/i.png>')
        self.show(name, glued=False)
        self.end_word()

    def _input(self) -> None:
        name = self.next_word()
        self.end_word()
        self.out.append(f'<input value="{name}">')
        self.show(name, glued=False)
        self.end_word()

    def _button(self, nodes: list[Node]) -> None:
        self.end_word()
        self.out.append("<button>")
        self.nodes(nodes)
        self.out.append("</button>")
        self.end_word()

    def _hide(self, tag: str, form: str) -> None:
        self.out.append(form.format(tag, self.hidden_word()))

    # -- blocks -----------------------------------------------------------------------------------

    def _block(self, tag: str, nodes: list[Node]) -> None:
        self.end_word()
        self.out.append(f"<{tag}>")
        self.nodes(nodes)
        self.out.append(f"</{tag.split()[0]}>")
        self.end_word()

    def _bare(self, nodes: list[Node]) -> None:
        self.out.append("\n")
        self.end_word()
        self.nodes(nodes)
        self.out.append("\n")
        self.end_word()

    def _void(self, tag: str) -> None:
        self.out.append(f"<{tag}>")
        self.end_word()

    def _pre(self, lines: list[tuple[str, bool, str]], in_code: bool) -> None:
        text = "\n".join(indent + (self.next_word() + tail if filled else "") for indent, filled, tail in lines)
        self.end_word()
        self.show(text, glued=False)
        self.end_word()
        if text.strip():
            self.made.pre.append(text)
        body = f"<code>{escaping.escape(text)}</code>" if in_code else "\n" + escaping.escape(text)
        self.out.append(f"<pre>{body}</pre>")

    def _figure(self, nodes: list[Node]) -> None:
        self.out.append("<figure>")
        self.end_word()
        self._img()
        self._block("figcaption", nodes)
        self.out.append("</figure>")

    def _select(self, size: int, chosen: int) -> None:
        self.end_word()
        self.out.append("<select>")
        for number in range(size):
            if number == min(chosen, size - 1):
                name = self.next_word()
                self.show(name, glued=False)
                self.end_word()
                self.out.append(f"<option selected>{name}")
            else:
                self.out.append(f"<option>{self.hidden_word()}")
        self.out.append("</select>")

    def _list(self, tag: str, items: list[tuple[list[Node], list[Node]]]) -> None:
        self.out.append(f"<{tag}>")
        for first, rest in items:
            self._block("li", [*first, *rest])
        self.out.append(f"</{tag.split()[0]}>")

    def _dl(self, pairs: list[tuple[list[Node], list[Node]]]) -> None:
        self.out.append("<dl>")
        for term, definition in pairs:
            self._block("dt", term)
            self._block("dd", definition)
        self.out.append("</dl>")

    def _details(self, summary: list[Node], nodes: list[Node]) -> None:
        self.out.append("<details>")
        self._block("summary", summary)
        self.nodes(nodes)
        self.end_word()
        self.out.append("</details>")

    def _table(self, caption: list[Node] | None, header: bool, grouped: bool, rows: list[list[Node]]) -> None:
        self.end_word()
        self.out.append("<table>")
        if caption is not None:
            self._block("caption", caption)
        for place, row in enumerate(rows):
            if grouped and place < 2:
                self.out.append("<thead>" if header and not place else "<tbody>")
            self.out.append("<tr>")
            for kind, across, down, nodes in row:
                tag = "th" if header and not place else kind
                spans = (f" colspan={across}" if across > 1 else "") + (f" rowspan={down}" if down > 1 else "")
                self.end_word()
                self.out.append(f"<{tag}{spans}>")
                self.nodes(nodes)
                self.out.append(f"</{tag}>")
                self.end_word()
            self.out.append("</tr>\n")
        self.out.append("</table>")


def _holds(node: Node, name: str) -> bool:
    if node[0] == "mark":
        return node[1].split()[0] == name or any(_holds(child, name) for child in node[2])
    return False


def write(nodes: list[Node], *, title: bool = False, whole: bool = True) -> Made:
    """Write a drawn document.

    :param title: give it a <title>.
    :param whole: write html, head and body.
    """
    scribe = _Scribe()
    if title:
        name = scribe.next_word()
        scribe.out.append(f"<title>{name}</title>")
        scribe.show(name, glued=False)
    scribe.end_word()
    if whole:
        scribe.out.append("<body>\n")
    scribe.nodes(nodes)
    body = "".join(scribe.out)
    scribe.made.html = f"<!doctype html><html lang=en>{body}</html>" if whole else body
    return scribe.made


documents = st.builds(write, flow, title=st.booleans(), whole=st.booleans())
"""Documents of valid markup whose words are known."""

worded_documents = documents.filter(lambda made: bool(made.words))
"""Documents with at least one visible word."""

# --- broken markup ---------------------------------------------------------------------------

DEBRIS = tuple(
    """</p> </div> <div> <p> <b> </b> </table> <table> <tr> <td> </td> <li> </ul> < > & &# </ <! <a~href=' " <!-- -->
    <![CDATA[x]]> <x-y> </svg> <svg> <math> <select> <option> <i> </i> <form> <h2> </h3> <p0> \x00 <pre> </body>
    <ruby>x<rt> <frameset> <noscript> <dialog~open> <button> <textarea> <li~value=x>""".split()
)
"""Markup that is inserted into broken documents (~ is a space)."""


@st.composite
def broken_documents(draw: st.DrawFn) -> str:
    """Valid documents with debris inserted and parts cut out."""
    html = draw(documents).html
    for _ in range(draw(st.integers(1, 4))):
        place = draw(st.integers(0, len(html)))
        how = draw(st.sampled_from(("insert", "insert", "cut", "truncate")))
        if how == "insert":
            html = html[:place] + draw(st.sampled_from(DEBRIS)).replace("~", " ") + html[place:]
        elif how == "cut":
            html = html[:place] + html[place + draw(st.integers(1, 12)) :]
        else:
            html = html[: max(place, 1)]
    return html


# --- documents to prune ----------------------------------------------------------------------

TOPICS = ("bridge", "harbour", "tariff", "station", "ferry", "lighthouse", "museum", "orchard", "canal", "observatory")


@st.composite
def sentences_about(draw: st.DrawFn) -> str:
    """A few plain sentences on some topics."""
    topics = draw(st.lists(st.sampled_from(TOPICS), min_size=1, max_size=4))
    years = draw(st.integers(1800, 1999))
    return " ".join(f"The {topic} opened in {years + n} after long delays." for n, topic in enumerate(topics))


@st.composite
def articles(draw: st.DrawFn) -> str:
    """A page like those of authors: sections under headings, lists, tables with a header row, figures."""
    parts = ["<title>Public works</title>"]
    for number in range(draw(st.integers(1, 5))):
        parts.append(f"<h{draw(st.integers(1, 3))}>Section {number} {draw(st.sampled_from(TOPICS))}</h2>")
        for kind in draw(st.lists(st.sampled_from(("p", "ul", "table", "pre", "figure", "bare", "dl")), max_size=3)):
            parts.append(_part(draw, kind))
    return "\n".join(parts) + "<p>The end."


def _part(draw: st.DrawFn, kind: str) -> str:
    texts = [draw(sentences_about()) for _ in range(draw(st.integers(1, 4)))]
    if kind == "ul":
        return "<ul>" + "".join(f"<li>{text}" for text in texts) + "</ul>"
    if kind == "dl":
        return "<dl>" + "".join(f"<dt>{text.split()[1]}<dd>{text}" for text in texts) + "</dl>"
    if kind == "table":
        rows = "".join(f"<tr><td>{text.split()[1]}<td>{text.split()[4]}<td>{text}" for text in texts * 2)
        head = "<thead><tr><th>Work<th>Year<th>Note</thead>" if draw(st.booleans()) else "<tr><th>Work<th>Year<th>Note"
        return f"<table><caption>Works</caption>{head}{rows}</table>"
    if kind == "pre":
        return f"<pre>  {texts[0]}\n\n\tindented {len(texts)}</pre>"
    if kind == "figure":
        return f"<figure><img src=/i.png alt='{texts[0].split()[1]}'><figcaption>{texts[0]}</figcaption></figure>"
    return f"<div>{texts[0]}<p>{' '.join(texts)}</div>" if kind == "bare" else f"<p>{' '.join(texts)}"
