"""LaTeX: the typeset text as HTML; included files only from the document's folder; limits on macros."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.clock import at_most
from tests.pages.formats.reading import cleaned, survives_damage, tree_of

from prunus.core.errors import BadPage
from prunus.core.types import Page
from prunus.pages.formats.latex.bib import as_latex, entries
from prunus.pages.formats.latex.engine import Engine, read_beside

PAPER = r"""% a comment
\documentclass[11pt]{article}
\usepackage[english]{babel}
\newcommand{\sys}{\textsc{Prunus}}
\newcommand{\pair}[2][x]{(#1, #2)}
\def\twice#1{#1#1}
\newtheorem{thm}{Theorem}
\title{Tides \& Ports\thanks{Funded.}}
\author{Ann Lee \and Ben M\"uller}
\begin{document}
\maketitle
\begin{abstract}
We show that \emph{tides} rise by $h < 2$\,m.
\end{abstract}
\section{Introduction}\label{sec:intro}
``Ports'' are deep---very deep, see Section~\ref{sec:method} and \cite{lee,knuth}; \sys{} does \pair{2}, \twice{ab}.
A footnote.\footnote{The \textbf{note}, \url{https://a.org/x_y}.} It costs 5\% of \$3.

New paragraph with \verb|a_b{}| and \href{https://b.org}{a link} %hidden
end. caf\'e, na\"{\i}ve, \c{c}a, \ss, \aa ngstr\"om.
\begin{itemize}
\item One
  \begin{enumerate}
  \item[(a)] nested
  \item two
  \end{enumerate}
\item Two
\end{itemize}
\begin{description}\item[Term] its definition\end{description}
\subsection{Method}\label{sec:method}
\begin{equation}\label{eq:a} a = \frac{1}{2} \end{equation}
See \eqref{eq:a}, Table \ref{tab:p}, Figure \ref{fig:m}.
\begin{table}[t]\centering
\caption{Ports and depths}\label{tab:p}
\begin{tabular}{l|rr}
\toprule
\multirow{2}{*}{Port} & \multicolumn{2}{c}{Depth} \\ \cmidrule(lr){2-3}
 & low & high \\
\midrule
Inner & 1 & 2 \\
Outer \& far & 3 & $4_a$ \\[2pt]
\bottomrule
\end{tabular}
\end{table}
\begin{figure}\includegraphics[width=3cm]{map.png}\caption{A map}\label{fig:m}\end{figure}
\begin{lstlisting}[language=Python]
def f(x):
    return "<a>" & x
\end{lstlisting}
\begin{thm}[Lee] All ports are deep. \end{thm}
\begin{proof} Trivial.\end{proof}
\begin{comment} hidden \end{comment}
\iffalse hidden \fi
\begin{thebibliography}{9}
\bibitem{lee} A. Lee. \emph{Tides}. 2020.
\bibitem{knuth} D. Knuth. TeX.
\end{thebibliography}
\end{document}
after
"""


def test_all_of_a_paper_is_there_in_order() -> None:
    assert cleaned(Engine(), PAPER.encode()) == (
        "<html lang=en><title>Tides & Ports</title><h1>Tides & Ports<sup>[1]</sup></h1><p>Ann Lee, Ben Müller"
        "<section><h2>Abstract</h2><p>We show that <em>tides</em> rise by <code>h &lt; 2</code> m.</section>"
        "<h2>1 Introduction</h2><p>“Ports” are deep—very deep, see Section 1.1 and [1, 2]; Prunus does (x, 2), abab. "
        "A footnote.<sup>[2]</sup> It costs 5% of $3.<p>New paragraph with <code>a_b{}</code> and <a href=https://b.org>a "
        "link</a> end. café, naïve, ça, ß, ångström."
        "<ul><li>One<ul><li>(a) nested</ul><ol><li>two</ol><li>Two</ul><dl><dt>Term<dd>its definition</dl>"
        "<h3>1.1 Method</h3><p><code>a = \\frac{1}{2}</code> (1)<p>See (1), Table 1, Figure 1.</p>"
        "<table><caption>Table 1: Ports and depths</caption><thead><tr><th rowspan=2>Port<th colspan=2>Depth<tr><th>low<th>high"
        "<tbody><tr><td>Inner<td>1<td>2<tr><td>Outer & far<td>3<td><code>4_a</code></table>"
        "<figure><p><img src=map.png><figcaption>Figure 1: A map</figcaption></figure>"
        '<pre class=language-python><code>def f(x):\n    return "&lt;a>" & x</code></pre>'
        "<p><strong>Theorem 1 (Lee).</strong> All ports are deep.<p><strong>Proof.</strong> Trivial."
        "<section><h2>References</h2><ol><li>A. Lee. <em>Tides</em>. 2020.<li>D. Knuth. TeX.</ol></section>"
        "<section><ol><li>Funded.<li>The <b>note</b>, <a href=https://a.org/x_y>https://a.org/x_y</a>.</ol></section></html>"
    )


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\SI{9.81}{\metre\per\second\squared}", "9.81 m/s²"),
        (r"\qty[per-mode=symbol]{1.5e-3}{\kilo\watt\hour}", "1.5 × 10⁻³ kW h"),
        (r"\SIrange{2}{4}{\uA} and \numrange{7}{9}", "2 µA to 4 µA and 7 to 9"),
        (r"\SIlist{1;2;3}{\nm}", "1, 2 and 3 nm"),
        (r"\si{kg.m^{-2}} or \unit{\joule\per\kg\per\kelvin}", "kg m⁻² or J/(kg K)"),
        (r"\ang{1;30;} \SI{90}{\degree} \SI{20}{\degreeCelsius} \SI{5}{\percent}", "1°30′ 90° 20 °C 5 %"),
        (r"\DeclareSIUnit\furlong{fur}\SI{4}{\furlong}, \SI{7}{\parsec}", "4 fur, 7 parsec"),
        (r"\qtyproduct{2 x 3.5}{\metre}, \qtyproduct{4}{\m}, \numproduct{2 x 3 x 4}", "2 m × 3.5 m, 4 m, 2 × 3 × 4"),
        (r"\qty{5}{\raiseto{4}\metre}, \qty{6}{\per\raiseto{-2}\kilo\metre}", "5 m⁴, 6/km⁻²"),
        (r"\SI{1.99}[\$]{\per\kilogram}, \SI{2}[\$]{}, \qty{4}{\per\s}, \unit{\per\s}", "$1.99/kg, $2, 4/s, 1/s"),
        (r"\EUR{7}, \EUR{}, 8 \EUR, \np[kg]{5}, \numprint{1200}, \unit[5]{km}", "7 €, €, 8 €, 5 kg, 1200, 5 km"),
        (r"\num{2 +- 1 e3}", "(2 ± 1) × 10³"),
        (r"7\,\textmu m, \textalpha{} \textrightarrow{} \textOmega", "7 µm, α → Ω"),
        (r"\raisebox{2pt}{up} \textcolor[rgb]{1,0,0}{red} \parbox[t]{3cm}{box} \mine[x]{own}", "up red box own"),
    ],
)
def test_quantities_of_siunitx_and_symbols_of_text_keep_their_units_and_words(latex: str, expected: str) -> None:
    assert tree_of(Engine(), f"\\begin{{document}}{latex}\\end{{document}}").canonical.strip() == expected


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\nicefrac{1}{2} cup, \sfrac{3}{4} inch", "1/2 cup, 3/4 inch"),
        (r"5\nicefrac{1}{3} or \textbf{5}\tfrac12 or 5 \sfrac[x]{1}{3}", "5 1/3 or 5 1/2 or 5 1/3"),
        (r"\nicefrac{a+b}{c} of \dfrac{-1}{2}", "(a+b)/c of -1/2"),
        (r"\nicefrac{7}", "7/"),
    ],
)
def test_a_fraction_in_text_keeps_its_slash(latex: str, expected: str) -> None:
    assert tree_of(Engine(), latex).canonical.strip() == expected


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\deleted{500}\added{600} euros", "<p><s>500</s>600 euros"),
        (r"\deleted[id=A]{500}, \deleted{}\added[id=A]{600}", "<p><s>500</s>, 600"),
        (r"\replaced[id=A]{\textbf{7}}{8} days", "<p><s>8</s> <b>7</b> days"),
        (r"\replaced{7}", "<p>7"),
        (r"\xout{9} \textst{8} \cancel{7} 6", "<p><s>9</s> <s>8</s> <s>7</s> 6"),
    ],
)
def test_what_a_document_strikes_out_is_struck(latex: str, expected: str) -> None:
    assert cleaned(Engine(), latex) == expected


@pytest.mark.parametrize(
    ("notes", "expected"),
    [
        (r"[flushleft]\small\item[2] per box \item[*] old", "<ul><li>[2] per box<li>[*] old</ul>"),
        (r"Prices.\item bare", "<p>Prices.<ul><li>bare</ul>"),
        (r"\itemsep Only words", "<p>Only words"),
        ("", ""),
    ],
)
def test_the_mark_of_a_table_note_is_no_digit_of_the_number(notes: str, expected: str) -> None:
    table = r"\begin{tabular}{l}Tea & 5\tnote{2}\tnote{}\\ Oil & 6\end{tabular}"
    assert cleaned(Engine(), rf"{table}\begin{{tablenotes}}{notes}\end{{tablenotes}}") == (
        f"<table><tr><td>Tea<td>5<sup>[2]</sup><tr><td>Oil<td>6</table>{expected}"
    )


@pytest.mark.parametrize(
    ("latex", "expected"),
    [
        (r"\ding{51} \ding{55} \ding{172} \ding{182} \ding{72} \ding{33}", "✓ ✗ ① ❶ ★ ✁"),
        (r"\ding{5} \ding{x²} \ding{999}\ding", "(5) (x²) (999)()"),
        (
            r"\newcommand{\kg}{kg\xspace}5 \kg more, 6 \kg, \kg\ x, \kg{} y, \kg\emph{z} \kg",
            "5 kg more, 6 kg, kg x, kg y, kg z kg",
        ),
        (r"\makebox[2cm][l]{mk} \rotatebox[x=1]{90}{rot} \framebox{fr}", "mk rot fr"),
        (r"\fcolorbox{red}{white}{x} \fcolorbox[rgb]{1,0,0}{1,1,1}{y} \colorbox{red}{z} \fcolorbox", "x y z"),
        (r"\enquote{one \enquote{two} three} \enquote{\textbf{four}}", "“one ‘two’ three” “four”"),
    ],
)
def test_signs_boxes_and_quotations_of_text(latex: str, expected: str) -> None:
    assert tree_of(Engine(), latex).canonical.strip() == expected


ABBREVIATIONS = {
    "glossaries": (r"\newacronym[x=1]{c}{CPU}{central unit}\gls{c}, \gls{c}, \glspl{c}, \Acrlong{c}", "central unit (CPU), CPU, CPUs, Central unit"),
    "a term": (r"\newglossaryentry{t}{description={a \textbf{x}, y}, name = tide }\gls{t}, \Glspl[x]{t}", "tide, Tides"),
    "acronym": (r"\acrodef{N}[NN]{no number}\acs{N}, \ac{N}, \ac{N}, \acf{N}, \acl{N}", "NN, no number (NN), NN, no number (NN), no number"),
    "acro": (r"\DeclareAcronym{c}{short=CPU,long={central {unit}}}\acp{c}, \ac{c}", "central units (CPUs), CPU"),
    "a list of them": (r"\begin{acronym}[x]\acro{N}{no number}\end{acronym}\acs{N}", "N no number\nN"),
    "unknown keys": (r"\gls{a_b} \glspl{c} \ac{} \DeclareAcronym{e}{=,,x}\ac{e}\gls", "a_b cs e"),
}  # fmt: skip


@pytest.mark.parametrize(("latex", "expected"), ABBREVIATIONS.values(), ids=ABBREVIATIONS)
def test_abbreviations_are_written_as_they_are_declared(latex: str, expected: str) -> None:
    assert tree_of(Engine(), latex).canonical.strip() == expected


def test_math_is_marked_as_math_and_kept_as_tex() -> None:
    html = Engine().to_html(Page(r"$a<b$ \(c\) \[d\] $$e$$ \begin{align*}f&g\\h\end{align*}"))
    for tex in ("a&lt;b", "c", "d", "e", r"\begin{align*}f&amp;g\\h\end{align*}"):
        assert f'<code class="math">{tex}</code>' in html
    assert html.count("<p><code") == 4  # the two inline formulas share one paragraph


TABLES = {
    "lines around the first row": (
        r"\hline Port & Depth \\ \hline a & b \\ c & d \\ \hline",
        "<table><thead><tr><th>Port<th>Depth<tbody><tr><td>a<td>b<tr><td>c<td>d</table>",
    ),
    "lines everywhere mark no header": (r"\hline a & b \\ \hline c & d \\ \hline e & f \\ \hline", "<table><tr><td>a<td>b<tr><td>c<td>d<tr><td>e<td>f</table>"),
    "an escaped sign": (r"a \& b & c \\ d & e", "<table><tr><td>a & b<td>c<tr><td>d<td>e</table>"),
    "a sign in braces": (r"{a & b} & c", "<table><tr><td>a b<td>c</table>"),
    "an inner table": (r"a & \begin{tabular}{l}x\\y\end{tabular} \\ c & d", "<table><tr><td>a<td><table><tr><td>x<tr><td>y</table><tr><td>c<td>d</table>"),
    "an empty cell": (r"a & & c \\ d & e & f", "<table><tr><td>a<td><td>c<tr><td>d<td>e<td>f</table>"),
    "a covered cell with words": (r"\multirow{2}{*}{a} & b \\ words & c", "<table><tr><td rowspan=2>a<td>b<tr><td>words<td>c</table>"),
}  # fmt: skip


@pytest.mark.parametrize(("body", "expected"), TABLES.values(), ids=TABLES)
def test_tables(body: str, expected: str) -> None:
    assert cleaned(Engine(), rf"\begin{{tabular}}{{@{{}}l|r}}{body}\end{{tabular}}") == expected


COLUMNS = {
    "r@{.}l": (r"3 & 14 \\ & 5 \\ 7 & \\ & \\ \multicolumn{2}{c}{none} \\ \multicolumn{1}{c}{--} & ", ["3.14", ".5", "7.", "none", "–"]),
    "lr@{ $\\pm$ }l": (r"a & 5 & 1 \\ b & \multicolumn{2}{c}{off} \\ \multicolumn{3}{c}{all}", ["a\t5 ± 1", "b\toff", "all"]),
    "r@{.}l@{\\,--\\,}l": (r"1 & 5 & 9", ["1.5 – 9"]),
    "l@{: }p{2cm}": (r"Port & Inner % hidden\n", ["Port:\tInner"]),
    ">{\\$}r<{\\%}@{}l": (r"5 & x \\ & y", ["$5%\tx", "\ty"]),
    "*{2}{@{(}c@{)}}": (r"1 & 2", ["(1)(2)"]),
    ">{\\hskip 2pt}r@{\\extracolsep{4pt}}l!{\\vrule width 1pt}>{\\columncolor{red}[0pt]}p{3cm}@{\\hspace{3pt}}": (r"1 & 2 & 3", ["1\t2\t3"]),
    "l@{": ("1 & 2", ["1\t2"]),
}  # fmt: skip


@pytest.mark.parametrize("spec", COLUMNS)
def test_columns_write_signs_beside_their_cells(spec: str) -> None:
    body, rows = COLUMNS[spec]
    spec = spec if spec.count("{") == spec.count("}") else f"{spec}}}"
    found = tree_of(Engine(), rf"\begin{{tabular}}{{{spec}}}{body}\end{{tabular}}").canonical
    assert [row for row in found.split("\n") if row.strip()] == rows


def test_halves_of_a_number_share_the_title_above_them() -> None:
    body = r"\hline Item & \multicolumn{2}{c}{Mass} & Use \\ \hline Bolt & 3 & 14 & a \\ Nut & 12 & 5 & b \\ \hline"
    assert cleaned(Engine(), rf"\begin{{tabular}}{{l r@{{.}}l l}}{body}\end{{tabular}}") == (
        "<table><thead><tr><th>Item<th>Mass<th>Use<tbody><tr><td>Bolt<td>3.14<td>a<tr><td>Nut<td>12.5<td>b</table>"
    )


LONG = {
    "a header for the first page": r"Port & Depth \\ \endfirsthead \multicolumn{2}{l}{continued} \\ Port & Depth \\ \endhead goes on & \\ \endfoot \hline \endlastfoot a & b \\ c & d \\",
    "a header for all pages": r"\hline Port & Depth \\ \hline \endhead \hline \endfoot a & b \\ c & d",
    "no row after the feet": r"goes on & \\ \endfoot \endlastfoot Port & Depth \\ \midrule a & b \\ c & d \\",
}  # fmt: skip


@pytest.mark.parametrize("body", LONG.values(), ids=LONG)
def test_a_table_of_many_pages_has_one_header(body: str) -> None:
    assert cleaned(Engine(), rf"\begin{{longtable}}{{ll}}{body}\end{{longtable}}") == (
        "<table><thead><tr><th>Port<th>Depth<tbody><tr><td>a<td>b<tr><td>c<td>d</table>"
    )


def test_the_last_foot_of_a_table_is_its_last_row() -> None:
    body = r"\caption{Ports}\\ \endfirsthead \caption{Ports (continued)}\\ \endhead next page & \\ \endfoot total & 3 \endlastfoot a & 1 \\ b & 2"
    assert cleaned(Engine(), rf"\begin{{longtable}}{{ll}}{body}\end{{longtable}}") == (
        "<table><caption>Table 1: Ports</caption><tr><td>a<td>1<tr><td>b<td>2<tr><td>total<td>3</table>"
    )


MACROS = {
    "environment": (r"\newenvironment{say}[1]{#1: }{!}\begin{say}{Ann}words\end{say}", "<p>Ann: words!"),
    "around a table": (r"\newenvironment{tab}{\begin{tabular}{ll}}{\end{tabular}}\begin{tab}a&b\end{tab}", "<table><tr><td>a<td>b</table>"),
    "renewed": (r"\newcommand\x{a}\x\renewcommand{\x}{b}\x", "<p>ab"),
    "provided": (r"\newcommand\x{a}\providecommand\x{b}\x", "<p>a"),
    "in an argument": (r"\newcommand\x{a}\textbf{\x c}", "<p><b>ac</b>"),
    "let": (r"\let\x=\emph \x{a}", "<p><em>a</em>"),
    "unknown": (r"\frobnicate[7]{a} b", "<p>a b"),
    "code keeps its dashes": (r"\texttt{--all ``x''}--b", "<p><code>--all ``x''</code>–b"),
}  # fmt: skip


@pytest.mark.parametrize(("latex", "expected"), MACROS.values(), ids=MACROS)
def test_macros_that_the_document_defines(latex: str, expected: str) -> None:
    assert cleaned(Engine(), latex) == expected


@pytest.fixture
def paper(tmp_path: Path) -> Path:
    folder = tmp_path / "paper"
    (folder / "parts").mkdir(parents=True)
    (folder / "parts" / "one.tex").write_text("First part, \\cite{lee}.", "utf-8")
    (folder / "refs.bib").write_text(
        '@string{oup = {Oxford}}\n@article{lee, author = {Lee, Ann and M{\\"u}ller, Ben}, title = "The {Tides}",\n'
        " journal = {Sea}, year = 2020, publisher = oup # { Press}, doi={10.1/x}}\n@book{other, title={Never cited}}",
        "utf-8",
    )
    (tmp_path / "secret.tex").write_text("SECRET", "utf-8")
    os.symlink(tmp_path / "secret.tex", folder / "link.tex")
    (folder / "notes.txt").write_text("SECRET", "utf-8")
    return folder


def read(folder: Path, latex: str, engine: Engine | None = None) -> str:
    (folder / "main.tex").write_text(latex, "utf-8")
    return cleaned(engine or Engine(), latex.encode(), url=str(folder / "main.tex"))


def test_files_beside_the_document_are_read(paper: Path) -> None:
    assert read(paper, r"\input{parts/one} \include{parts/one.tex} \bibliography{refs}") == (
        "<p>First part, [1]. First part, [1].<section><h2>References</h2><ol><li>Lee, Ann; Müller, Ben. The Tides. "
        "<em>Sea</em>. Oxford Press. 2020. <a href=https://doi.org/10.1/x>https://doi.org/10.1/x</a>.</ol></section>"
    )


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "link", "parts/../../secret", "notes.txt", "..\\secret", "none", "main\0x"]
)
def test_files_elsewhere_are_not_read_and_a_note_says_so(paper: Path, name: str) -> None:
    target = name if not name.startswith("/") else str(paper.parent / "secret")
    found = read(paper, rf"before \input{{{target}}} after")
    assert "SECRET" not in found and "<p>before after" in found and "is left out: it is not beside" in found


def test_a_page_from_elsewhere_opens_no_folder(paper: Path) -> None:
    (paper / "main.tex").write_text("something else", "utf-8")
    for url in (str(paper / "main.tex"), "https://example.org/main.tex", "", str(paper / "gone.tex")):
        assert read_beside(Page(rb"\input{parts/one}", url=url), "parts/one.tex") is None


def test_files_that_name_each_other_end(paper: Path) -> None:
    (paper / "parts" / "loop.tex").write_text(r"x\input{parts/loop}", "utf-8")
    assert "is left out" in read(paper, r"\input{parts/loop}")


def test_the_caller_may_give_a_file_reader() -> None:
    engine = Engine(read=lambda page, name: {"a.tex": "words"}.get(name))
    assert cleaned(engine, r"\input{a}") == "<p>words"


def test_a_bibliography_that_a_program_wrote(paper: Path) -> None:
    (paper / "main.bbl").write_text(
        r"\begin{thebibliography}{1}\bibitem[Lee(2020)]{lee} A. Lee.\end{thebibliography}", "utf-8"
    )
    assert read(paper, r"x \citep[p.~3]{lee} \bibliography{gone}") == (
        "<p>x [Lee(2020), p. 3]<section><h2>References</h2><ol><li>[Lee(2020)] A. Lee.</ol></section>"
    )


def test_entries_of_bibtex_in_odd_forms() -> None:
    found = entries('@Misc (a1, title = "x {"} y" , year=1999) junk @comment{b, c=d} @a{unclosed, title={never')
    assert found["a1"]["title"] == 'x {"} y' and found["a1"]["year"] == "1999"
    assert as_latex({"title": "T.", "url": "http://a"}) == "T. \\url{http://a}."


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp1252"])
def test_the_encoding_is_found(encoding: str) -> None:
    text = "Die Fähre fährt täglich außer samstags über die Förde nach Glücksburg."
    assert tree_of(Engine(), text.encode(encoding)).canonical == text


@pytest.mark.parametrize("content", [b"", b"\n", b"\x00\x01\x02" * 90])
def test_what_is_no_text_is_refused(content: bytes) -> None:
    with pytest.raises(BadPage, match=r"x\.tex: (the page is empty|this is binary data, not LaTeX)"):
        Engine().to_html(Page(content, url="x.tex"))


def test_a_note_tells_of_each_limit() -> None:
    assert "Macros of this document grow without end" in cleaned(Engine(), r"\newcommand\x{a\x\x}\x")
    assert "cells of this table are not shown" in cleaned(
        Engine(max_cells=2), r"\begin{tabular}{l}a&b&c\\d&e&f\end{tabular}"
    )
    assert "took too long" in cleaned(Engine(seconds=0), "x\n\n" * 400)
    with pytest.raises(BadPage, match="over the limit of 3"):
        Engine(max_chars=3).to_html(Page("abcd"))


N = 2500
HOSTILE = {
    "braces": "{" * N, "styles": "\\textbf{" * N, "environments": "\\begin{center}" * N, "lists": "\\begin{itemize}\\item " * N,
    "dollars": "$ a $$ b " * N, "tables": "\\begin{tabular}{l}" * N, "footnotes": "\\footnote{" * N, "options": "\\foo[" * N,
    "captions": "\\begin{figure}\\caption{" * N, "definitions": "\\newcommand" * N, "accents": "\\'" * N, "cells": "\\begin{tabular}{l}" + "&" * N,
    "spans": "\\begin{tabular}{l}" + "\\multirow{9999}{*}{x}&\\\\" * 1000 + "\\end{tabular}", "verbs": "".join(f"\\verb{chr(0x4E00 + n)}" for n in range(3000)),
    "a billion laughs": "\\def\\a{xxxxxxxxxx}" + "".join("\\def\\" + chr(98 + n) + "{" + ("\\" + chr(97 + n)) * 10 + "}" for n in range(20)) + "\\u",
    "abbreviations": "\\newacronym{a}{A}{" + "\\acrlong{a}" * 9 + "}\\acrlong{a}",
    "columns": "\\begin{tabular}{" + "*{99}{" * N + "\\end{tabular}" + "\\begin{tabular}{" + "@{" * N + "}" * N + "}",
    "doubling": "\\newcommand{\\x}[1]{#1#1\\x{#1#1}}\\x{ab}", "inside itself": "\\newenvironment{e}{\\begin{e}}{\\end{e}}\\begin{e}x\\end{e}",
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE)
def test_hostile_documents_take_seconds_at_most(text: str) -> None:
    with at_most(10):
        found = Engine().to_html(Page("\\begin{document}" + text))
    assert len(found) < 20_000_000


@given(st.lists(st.sampled_from([*"ab {}[]$&%#\\~^_\n-`'", "\\begin{", "\\end{", "itemize}", "tabular}", "\\item", "\\textbf{", "\\cite{",
                                 "\\section{", "\\\\", "\\verb|", "\\newcommand{\\a}", "\\a", "\\def\\b#1", "\\b", "\\caption{", "figure}", "\n\n"]), max_size=40))  # fmt: skip
def test_any_text_becomes_html(pieces: list[str]) -> None:
    text = "".join(pieces)
    if text.strip():
        assert isinstance(Engine().to_html(Page(text)), str)


def test_damage_gives_html_or_one_clear_line() -> None:
    assert survives_damage(Engine(), PAPER.encode()) > 60


def listed(latex: str) -> list[str]:
    """The items of the lists, each with its number or label before it."""
    tree = tree_of(Engine(), latex)
    shown = []
    for node in range(len(tree.tag)):
        if tree.tag[node] == "ol":
            number = int((tree.attrs[node] or {}).get("start", 1)) - 1
        if tree.tag[node] == "li":
            words = " ".join("".join(tree.text[at] for at in range(node, tree.end[node])).split())
            if tree.tag[tree.parent[node]] == "ol":
                number = int((tree.attrs[node] or {}).get("value", number + 1))
                words = f"[{number}] {words}"
            shown.append(words)
    return shown


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\begin{enumerate}\item x\item y\end{enumerate}", ["[1] x", "[2] y"]),
        (r"\begin{enumerate}[label=(\alph*)]\item x\item y\end{enumerate}", ["(a) x", "(b) y"]),
        (r"\begin{enumerate}[leftmargin=*, label={\S\,\arabic*}, nosep]\item x\end{enumerate}", ["§ 1 x"]),
        (r"\begin{enumerate}[label=\Roman*.]\item x\item y\end{enumerate}", ["I. x", "II. y"]),
        (r"\begin{enumerate}[(a)]\item x\item y\end{enumerate}", ["(a) x", "(b) y"]),
        (r"\begin{enumerate}[i.]\item x\item y\end{enumerate}", ["i. x", "ii. y"]),
        (r"\begin{enumerate}[{Article} 1:]\item x\end{enumerate}", ["Article 1: x"]),
        (r"\begin{enumerate}[noitemsep]\item x\end{enumerate}", ["[1] x"]),
        (r"\begin{enumerate}[start=4]\item x\item[7a.] y\item z\end{enumerate}", ["[4] x", "7a. y", "[5] z"]),
        (r"\begin{enumerate}\setcounter{enumi}{3}\item x\end{enumerate}", ["[4] x"]),
        (r"\begin{enumerate}\item x\addtocounter{enumi}{2}\item y\end{enumerate}", ["[1] x", "[4] y"]),
        (
            r"\begin{enumerate}\item x\end{enumerate}t\begin{enumerate}[resume]\item y\end{enumerate}",
            ["[1] x", "[2] y"],
        ),
        (
            r"\begin{enumerate}[series=s]\item x\end{enumerate}\begin{enumerate}\item y\item y\end{enumerate}"
            r"\begin{enumerate}[resume=s]\item z\end{enumerate}",
            ["[1] x", "[1] y", "[2] y", "[2] z"],
        ),
        (
            r"\begin{enumerate}\item x\begin{enumerate}\item y\begin{itemize}\item b\begin{enumerate}\item z"
            r"\end{enumerate}\end{itemize}\end{enumerate}\item x\end{enumerate}",
            ["[1] x(a) ybi. z", "(a) ybi. z", "bi. z", "i. z", "[2] x"],
        ),
        (
            r"\begin{enumerate}[label=\arabic*.]\item x\begin{enumerate}[label*=\arabic*]\item y\end{enumerate}"
            r"\end{enumerate}",
            ["[1] x1.1 y", "1.1 y"],
        ),
        (r"\renewcommand{\labelenumi}{R\arabic{enumi}}\begin{enumerate}\item x\end{enumerate}", ["R1 x"]),
        (r"\renewcommand\theenumi{\alph{enumi}}\begin{enumerate}\item x\end{enumerate}", ["a. x"]),
        (r"\setlist[enumerate,1]{label=(\roman*)}\begin{enumerate}\item x\end{enumerate}", ["(i) x"]),
        (
            r"\newlist{clauses}{enumerate}{2}\setlist[clauses,1]{label=C\arabic*}\begin{clauses}\item x\end{clauses}",
            ["C1 x"],
        ),
        (r"\begin{itemize}\item[(+)] x\item y\end{itemize}", ["(+) x", "y"]),
    ],
)
def test_items_have_the_labels_that_the_list_prints(latex: str, shown: list[str]) -> None:
    assert listed(latex) == shown


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\begin{enumerate}\item a\begin{enumerate}\item\label{k} b\end{enumerate}\end{enumerate}See \ref{k}.", "1a"),
        (r"\begin{enumerate}[label=(\roman*)]\item a\item\label{k} b\end{enumerate}See \ref{k}.", "(ii)"),
        (r"\section{In}\label{k}See \cref{k}.", "section 1"),
        (r"\section{In}\label{k}See \Cref{k}.", "Section 1"),
        (r"\section{In}\label{k}See \autoref{k}.", "section 1"),
        (r"\section{In \emph{the} box}\label{k}See \nameref{k}.", "In the box"),
        (r"\section{In}\label{k}See \pageref{k}.", "??"),
        (r"\newtheorem{thm}{Theorem}\begin{thm}\label{k}x\end{thm}See \autoref{k}.", "Theorem 1"),
        (r"\section{A}\label{k}\section{B}\label{l}See \cref{k,l}.", "section 1 and section 2"),
        (r"See \cref{none}.", "none"),
        (r"\begin{align}a\label{k}\tag{X}\\b\end{align}See \eqref{k}.", "(X)"),
        (r"\setcounter{section}{4}\section{A}\label{k}See \ref{k}.", "5"),
        (r"\setcounter{secnumdepth}{1}\section{A}\subsection{B}\label{k}See \ref{k}.", "1"),
    ],
)
def test_references_name_what_they_refer_to(latex: str, shown: str) -> None:
    assert (
        cleaned(Engine(), rf"\begin{{document}}{latex}\end{{document}}").rpartition("See ")[2].startswith(f"{shown}.")
    )


@pytest.mark.parametrize(
    ("latex", "shown"),
    [
        (r"\NewDocumentCommand\price{m O{EUR}}{#1 #2}\price{5}, \price{6}[USD]", "5 EUR, 6 USD"),
        (r"\NewDocumentCommand{\x}{s m}{\IfBooleanTF{#1}{star}{none} #2}\x{a}, \x*{b}", "none a, star b"),
        (r"\NewDocumentCommand{\x}{o m}{\IfNoValueTF{#1}{}{#1 of }#2}\x{a}, \x[1]{b}", "a, 1 of b"),
        (r"\NewDocumentCommand{\x}{+m o}{#1\IfValueT{#2}{ (#2)}}\x{a}, \x{b}[c]", "a, b (c)"),
        (r"\NewDocumentEnvironment{e}{m}{From #1: }{.}\begin{e}{X}words\end{e}", "From X: words."),
        (r"\newcommand\v{1}\ProvideDocumentCommand\v{}{2}\v\RenewDocumentCommand\v{}{3}\v", "13"),
        (r"\newcommand\v{1}\let\old\v\renewcommand\v{2}\old, \v", "1, 2"),
        (r"\newcounter{c}\setcounter{c}{5}\stepcounter{c}\thec, \roman{c}", "6, vi"),
        (r"\newlength{\w}\textbf{x}", "<b>x</b>"),
    ],
)
def test_definitions_of_other_packages_are_followed(latex: str, shown: str) -> None:
    assert shown in cleaned(Engine(), rf"\begin{{document}}{latex}\end{{document}}")


def test_many_references_to_a_long_title_stay_within_a_limit() -> None:
    latex = r"\section{" + "word " * 20_000 + r"}\label{k}" + r"\nameref{k} " * 2000
    assert len(cleaned(Engine(), latex)) < 4 << 20


def test_choices_inside_choices_stay_within_a_limit() -> None:
    assert "grow without end" in cleaned(Engine(), r"\IfNoValueTF{a}{b}{" * 8000)
