"""Run the inputs of html5lib's tree-construction tests through cleaning and pruning.

    python tests/html5lib_inputs.py FOLDER  # a folder of .dat files

The repository html5lib/html5lib-tests has them. Each input is checked as :func:`tests.fuzz.check` does: no crash, and the
written HTML reads as the tree that was written. Each input is run alone and with a word after it; one for a fragment is
run inside its context element, too.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from tests import fuzz

_AROUND = {
    **dict.fromkeys(("caption", "colgroup", "tbody", "tfoot", "thead"), "<table>"),
    **dict.fromkeys(("td", "th"), "<table><tr>"),
    "tr": "<table>",
}
"""Start tags that a context element needs around it."""


def inputs(dat: str) -> Iterator[tuple[str, str]]:
    """Yield each input of a .dat file with its context element, '' for a document."""
    for test in f"\n{dat}".split("\n#data\n")[1:]:
        markup, _, expected = test.partition("\n#errors\n")
        lines = expected.split("\n")
        context = lines[lines.index("#document-fragment") + 1] if "#document-fragment" in lines else ""
        yield markup, context


def documents(dat: str) -> Iterator[bytes]:
    """Yield the documents to check for a .dat file."""
    for markup, context in inputs(dat):
        names = context.split(" ") if context else []  # as "svg path": an element of a namespace
        around = _AROUND.get(context, "") + "".join(f"<{name}>" for name in names)
        for before in dict.fromkeys(("", around)):
            for after in ("", "word"):  # most inputs show no word, and nothing could be compared
                yield f"{before}{markup}{after}".encode("utf-8", "surrogateescape")


def main(folder: Path) -> int:
    """Check every input; print each failure and the counts."""
    files = sorted(folder.glob("*.dat"))
    results: Counter[str] = Counter()
    for file in files:
        for document in documents(file.read_bytes().decode("utf-8", "surrogateescape")):
            try:
                results[fuzz.check(document, "text/html")] += 1
            except Exception as error:  # every failure is listed, a crash too
                results["failed"] += 1
                print(f"{file.name}: {type(error).__name__}: {error}: {document!r}")
    counts = ", ".join(f"{count} {name}" for name, count in sorted(results.items()))
    print(f"{results.total()} inputs of {len(files)} files: {counts}")
    return 1 if results["failed"] or not results.total() else 0


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    sys.exit(main(Path(sys.argv[1])))
