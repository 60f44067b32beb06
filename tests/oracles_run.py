"""Hold the readers of documents against other libraries on a folder of real files, and list disagreements by size.

    python tests/oracles_run.py FOLDER                       # every file of the folder and below
    python tests/oracles_run.py FOLDER --only odt,docx --top 50 --json found.json

A library that is not installed is left out. Words are compared without case, order and markup. *Agreed* is what half
the other libraries, and at least two where two read the file, have of a word; *recall* is the share of the agreed words
that a reader has, *precision* the share of its words that some other library has. What is listed is a hint: the
libraries also agree on hidden text, on markup and on each other's faults.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import multiprocessing
import re
import resource
import statistics
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

OURS: Final = "prunus"
SECONDS: Final = 60.0
MEMORY: Final = 4 << 30  # address space of a library
_LARGEST: Final = 32 << 20  # bytes of a file
_SAMPLE: Final = 12  # words of a disagreement that are shown
_LINK: Final = re.compile(r"\]\([^()\s]*(?:\s\"[^\"]*\")?\)|<https?://[^<>\s]*>|</?[a-z][^<>]{0,200}>")
_LABEL: Final = r"\(?(?:\d{1,3}|[a-z]|[ivxlc]{1,7})"
_MARKER: Final = re.compile(
    rf"^[ \t>]*(?:[-*+•◦▪][ \t]+(?:{_LABEL}[.)][ \t]+)?|{_LABEL}\\?[.)](?:[ \t]+|$))", re.IGNORECASE | re.MULTILINE
)
_NOTE: Final = re.compile(r"\[\^?\d{1,4}\]")
_GROUPED: Final = re.compile(r"(?<=\d)[,'\u2019](?=\d{3})")
_WORD: Final = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")


# --- libraries: each takes the path of a file and returns its text ------------------------------------


def by_prunus(path: Path) -> str:
    """Return what Prunus shows."""
    import prunus
    from prunus.core.types import Page

    return prunus.clean(Page(path.read_bytes(), url=path.name), "text")


def by_anydoc(path: Path) -> str:
    """Return the Markdown of firecrawl-anydoc without its links."""
    import anydoc

    return _LINK.sub(" ", anydoc.to_markdown(str(path)))


def by_pandoc(path: Path) -> str:
    """Return pandoc's plain text. Its sandbox reads no file but this."""
    import pypandoc

    kind = {"tex": "latex", "md": "markdown", "htm": "html"}.get(_suffix(path), _suffix(path))
    command = [pypandoc.get_pandoc_path(), "+RTS", f"-M{MEMORY >> 20}m", "-RTS", "--sandbox", "--wrap=none"]
    made = subprocess.run(
        [*command, "-f", kind, "-t", "plain", str(path)], capture_output=True, timeout=SECONDS, check=False
    )
    if made.returncode:
        raise ValueError(made.stderr.decode("utf-8", "replace")[:200])
    return made.stdout.decode("utf-8", "replace")


def by_pdfium(path: Path) -> str:
    """Return the text layer as PDFium has it."""
    import pypdfium2

    with contextlib.closing(pypdfium2.PdfDocument(path)) as document:
        return "\n".join(page.get_textpage().get_text_bounded() for page in document)


def by_calamine(path: Path) -> str:
    """Return the stored values of the visible sheets."""
    import python_calamine

    book = python_calamine.CalamineWorkbook.from_path(str(path))
    visible = python_calamine.SheetVisibleEnum.Visible
    shown = [sheet.name for sheet in book.sheets_metadata if sheet.visible == visible]
    rows = (row for name in shown for row in book.get_sheet_by_name(name).to_python())
    lines = ("\t".join(_value(value) for value in row) for row in rows)
    return "\n".join((*shown, *lines))


def by_markitdown(path: Path) -> str:
    """Return the Markdown of markitdown without its links."""
    import markitdown

    return _LINK.sub(" ", markitdown.MarkItDown(enable_plugins=False).convert_local(path).markdown)


def by_pylatexenc(path: Path) -> str:
    """Return the text of LaTeX."""
    from pylatexenc.latex2text import LatexNodes2Text

    return str(LatexNodes2Text().latex_to_text(path.read_text("utf-8", "replace")))


def by_nbconvert(path: Path) -> str:
    """Return the Markdown of a notebook."""
    from nbconvert import MarkdownExporter

    return str(MarkdownExporter().from_filename(str(path))[0])


def by_mailparser(path: Path) -> str:
    """Return subject and text of a message."""
    import mailparser

    mail = mailparser.parse_from_file(str(path))
    return "\n".join((mail.subject, *(mail.text_plain or mail.text_html)))


def _value(value: object) -> str:
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


class Oracle(NamedTuple):
    """A library: how it reads, the module it needs, the package that brings it, and the suffixes it reads."""

    read: Callable[[Path], str]
    module: str
    package: str
    suffixes: frozenset[str]


def _oracle(read: Callable[[Path], str], module: str, package: str, suffixes: str) -> Oracle:
    return Oracle(read, module, package, frozenset(suffixes.split()))


_OFFICE: Final = "docx docm dotx pptx pptm ppsx xlsx xlsm xltx odt ods rtf epub pdf"
ORACLES: Final[Mapping[str, Oracle]] = {
    "anydoc": _oracle(by_anydoc, "anydoc", "firecrawl-anydoc", _OFFICE),
    "pandoc": _oracle(by_pandoc, "pypandoc", "pypandoc_binary", "docx odt pptx xlsx rtf epub tex ipynb md htm html"),
    "pdfium": _oracle(by_pdfium, "pypdfium2", "pypdfium2", "pdf"),
    "calamine": _oracle(by_calamine, "python_calamine", "python-calamine", "xlsx xlsm ods"),
    "markitdown": _oracle(by_markitdown, "markitdown", "markitdown[all]", "docx pptx xlsx epub pdf ipynb htm html"),
    "pylatexenc": _oracle(by_pylatexenc, "pylatexenc", "pylatexenc", "tex"),
    "nbconvert": _oracle(by_nbconvert, "nbconvert", "nbconvert", "ipynb"),
    "mailparser": _oracle(by_mailparser, "mailparser", "mail-parser", "eml"),
}


# --- one process for each library, so that none can hang or crash the run -----------------------------


class Answer(NamedTuple):
    """What a library made of a file: its text or its error, and the seconds of the processor it took."""

    text: str
    error: str
    seconds: float


def _spent() -> float:
    usages = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def _serve(name: str, requests: Connection) -> None:
    """Answer paths with texts until the other end closes."""
    if name != "pandoc":  # it reserves more addresses than it uses, and is limited by its own option
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    read = by_prunus if name == OURS else ORACLES[name].read
    with contextlib.suppress(EOFError):
        while True:
            path, began = requests.recv(), _spent()
            try:
                answer = Answer(read(path), "", _spent() - began)
            except Exception as error:  # any error of a library is its answer
                kind = "" if type(error).__name__ == "BadPage" else f"{type(error).__name__}: "
                answer = Answer("", " ".join(f"{kind}{error}".split())[:200] or kind, _spent() - began)
            requests.send(answer)


class Reader:
    """A library in its own process. A file that takes too long, or ends the process, is an error of that file.

    The process of Prunus is no daemon, because it starts the process that reads PDF.
    """

    def __init__(self, name: str, seconds: float) -> None:
        self._name, self._seconds = name, seconds
        self._process: Any = None
        self._pipe: Any = None

    def read(self, path: Path) -> Answer:
        """Return what the library makes of a file."""
        if self._process is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(self._name, theirs), daemon=self._name != OURS)
            self._process.start()
            theirs.close()
        try:
            self._pipe.send(path)
            if self._pipe.poll(self._seconds):
                answer: Answer = self._pipe.recv()
                return answer
        except (EOFError, OSError):
            self.close()
            return Answer("", "the process died", 0.0)
        self.close()
        return Answer("", f"takes longer than {self._seconds:g} s", self._seconds)

    @property
    def pid(self) -> int:
        """The process."""
        return int(self._process.pid)

    def close(self) -> None:
        """End the process."""
        if self._process is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
            self._process = None


# --- comparing ----------------------------------------------------------------------------------------


def words_of(text: str) -> Counter[str]:
    """Return the words of a text, without markers of lists and notes.

    Letters are folded, digits lose their grouping, and each letter of Han, kana and Hangul is a word.
    """
    plain = _NOTE.sub(" ", _MARKER.sub(" ", _GROUPED.sub("", unicodedata.normalize("NFKC", text))))
    return Counter(_WORD.findall(plain.casefold()))


def agreed_words(others: list[Counter[str]]) -> Counter[str]:
    """Return what half the libraries have of each word; where there are two or more, at least two."""
    need = max(min(2, len(others)), math.ceil(len(others) / 2))
    agreed: Counter[str] = Counter()
    for word in set().union(*others):
        agreed[word] = sorted((other[word] for other in others), reverse=True)[need - 1]
    return +agreed


@dataclass(slots=True)
class Finding:
    """How a reader and the others disagree about a file.

    :param missed: agreed words that the reader lacks; ``extra``: its words that no other library has.
    """

    path: str
    error: str
    agreed: int
    ours: int
    missed: Counter[str]
    extra: Counter[str]

    @property
    def size(self) -> int:
        """The words in dispute."""
        return self.missed.total() + self.extra.total()

    @property
    def recall(self) -> float:
        """Share of the agreed words that the reader has."""
        return 1 - self.missed.total() / self.agreed if self.agreed else 1.0

    @property
    def precision(self) -> float:
        """Share of the reader's words that some other library has."""
        return 1 - self.extra.total() / self.ours if self.ours else 1.0


def compare(path: str, answers: Mapping[str, Answer], subject: str) -> Finding | None:
    """Hold one reader against the others on one file; None where no other reads it."""
    others = [words_of(answer.text) for name, answer in answers.items() if name != subject and not answer.error]
    if not others:
        return None
    own, agreed = words_of(answers[subject].text), agreed_words(others)
    some: Counter[str] = Counter()
    for other in others:
        some |= other
    error = answers[subject].error
    return Finding(path, error, agreed.total(), own.total(), agreed - own, own - some)


def files_below(folder: Path, suffixes: Iterable[str]) -> Iterator[Path]:
    """Yield the files that some library reads, in order."""
    wanted = frozenset(suffixes)
    for path in sorted(folder.rglob("*")):
        if path.is_file() and _suffix(path) in wanted and 0 < path.stat().st_size <= _LARGEST:
            yield path


def _suffix(path: Path) -> str:
    return path.suffix[1:].lower()


# --- report -------------------------------------------------------------------------------------------


def _report(answers: Mapping[Path, Mapping[str, Answer]], folder: Path, top: int) -> list[Finding]:
    """Print recall, precision and time by suffix and library, then our largest disagreements; return all of ours."""
    print(f"{'':7}{'files':>6}  {'library':11}{'read':>6}{'recall':>8}{'precision':>11}{'ms':>8}")
    ours: list[Finding] = []
    for suffix in sorted({_suffix(path) for path in answers}):
        paths = [path for path in answers if _suffix(path) == suffix]
        for name in (OURS, *ORACLES):
            mine = [path for path in paths if name in answers[path]]
            if not mine:
                continue
            compared = [compare(str(path.relative_to(folder)), answers[path], name) for path in mine]
            found = [finding for finding in compared if finding is not None]
            recall, precision = (
                statistics.fmean(values) if values else math.nan
                for values in ([finding.recall for finding in found], [f.precision for f in found if not f.error])
            )
            taken = statistics.median(answers[path][name].seconds for path in mine) * 1000
            read = sum(not answers[path][name].error for path in mine)
            first = f".{suffix:6}{len(paths):>6}" if name == OURS else " " * 13
            print(f"{first}  {name:11}{read:>6}{recall:>8.3f}{precision:>11.3f}{taken:>8.1f}")
            ours += found if name == OURS else []
    ours.sort(key=lambda finding: (-finding.size, finding.path))
    print("\nwords in dispute, recall, precision, file, some words")
    for finding in ours[:top]:
        if finding.size:
            print(f"{finding.size:>7} {finding.recall:.3f} {finding.precision:.3f} {finding.path}  {_shown(finding)}")
    return ours


def _shown(finding: Finding) -> str:
    if finding.error:
        return f"refused: {finding.error}"
    sides = (("-", finding.missed), ("+", finding.extra))
    return "  ".join(f"{sign}{' '.join(words)[:120]}" for sign, words in _samples(sides))


def _samples(sides: Iterable[tuple[str, Counter[str]]]) -> Iterator[tuple[str, list[str]]]:
    for sign, counted in sides:
        if counted:
            yield sign, [word if n == 1 else f"{word}({n})" for word, n in counted.most_common(_SAMPLE)]


def run(folder: Path, only: frozenset[str], seconds: float, limit: int, libraries: frozenset[str]) -> dict[Path, Any]:
    """Read every file with every installed library; return the answers."""
    installed = {name for name, oracle in ORACLES.items() if find_spec(oracle.module) and name in libraries}
    for name in sorted(libraries - installed):
        print(f"{name} is not installed: pip install {ORACLES[name].package}")
    suffixes = frozenset().union(*(ORACLES[name].suffixes for name in installed))
    readers = {name: Reader(name, seconds) for name in (OURS, *sorted(installed))}
    answers: dict[Path, Any] = {}
    counts: Counter[str] = Counter()
    began = time.monotonic()
    try:
        for path in files_below(folder, suffixes & only if only else suffixes):
            counts[_suffix(path)] += 1
            if not limit or counts[_suffix(path)] <= limit:
                able = (name for name in installed if _suffix(path) in ORACLES[name].suffixes)
                answers[path] = {name: readers[name].read(path) for name in (OURS, *able)}
                if sys.stderr.isatty():
                    print(f"\r{len(answers)} files, {path.name[:60]:60}", end="", file=sys.stderr, flush=True)
    finally:
        for reader in readers.values():
            reader.close()
    print(f"{len(answers)} files in {time.monotonic() - began:.0f} s\n")
    return answers


def main() -> int:
    """Run from the command line; the exit code is 1 where no file was compared."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="suffixes, as odt,docx")
    parser.add_argument("--with", default=",".join(ORACLES), dest="libraries", help="libraries, as anydoc,pandoc")
    parser.add_argument("--top", type=int, default=30, help="disagreements that are shown (30)")
    parser.add_argument("--limit", type=int, default=0, help="files of each suffix; all by default")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="for a file and a library (60)")
    parser.add_argument("--json", type=Path, help="write all disagreements to this file")
    options = parser.parse_args()
    only, libraries = (frozenset(filter(None, text.split(","))) for text in (options.only, options.libraries))
    unknown = libraries - set(ORACLES)
    if not options.folder.is_dir() or unknown:
        parser.error(f"no such library: {', '.join(unknown)}" if unknown else f"{options.folder} is no folder")
    answers = run(options.folder, only, options.seconds, options.limit, libraries)
    found = _report(answers, options.folder, options.top)
    if options.json:
        rows = [
            {"path": f.path, "error": f.error, "recall": f.recall, "precision": f.precision}
            | {"missed": f.missed, "extra": f.extra}
            for f in found
        ]
        options.json.write_text(json.dumps(rows, ensure_ascii=False, indent=1), encoding="utf-8")
    return int(not found)


if __name__ == "__main__":
    sys.exit(main())
