"""Hold the words of cleaned pages against those that Chromium shows (``innerText``), on real pages without scripts.

    PRUNUS_DATA=… python tests/inner_text_run.py             # 100 pages of clean/wcxb
    PRUNUS_DATA=… python tests/inner_text_run.py --pages 20 --file clean/articles --show 40

A word is a run of letters and digits, in lower case. Differences that are meant are explained by the page itself: see
``_MEANT``. A page agrees where every other word is the same, in the same order. Nothing is fetched: pages have
their own style sheets alone, as Prunus sees them.
"""

from __future__ import annotations

import argparse
import difflib
import json
import lzma
import os
import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))

_WORD: Final = re.compile(r"[^\W_]+")
_ADDRESS: Final = "http://page.example/"

_MEANT: Final = """() => {
  const text = e => {
    const texts = [e.textContent], walker = document.createTreeWalker(e, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) texts.push(walker.currentNode.data);
    return texts.join(' ');
  };
  const found = {}, add = (why, text) => { if (text && text.trim()) (found[why] ||= []).push(text) };
  const all = (selector, why, read) => document.querySelectorAll(selector).forEach(e => add(why, read(e)));
  all('img[alt],area[alt]', 'picture', e => e.alt);
  all('img[title],[aria-label],[title]', 'name', e => (e.getAttribute('aria-label') || '') + ' ' + (e.title || ''));
  all('svg', 'drawing', text);
  all('input,textarea', 'field', e => e.value + ' ' + (e.placeholder || ''));
  all('select', 'field', text);
  all('optgroup', 'field', e => e.label);
  all('sup,sub', 'power or note', e => text(e.parentElement));
  all('math,.mwe-math-element', 'formula', text);
  all('details:not([open])', 'closed', text);
  all('[hidden],[aria-controls],[role=tabpanel]', 'panel', text);
  all('noscript', 'noscript', text);
  all('[aria-hidden=true]', 'decoration', text);
  all('h1 a,h2 a,h3 a,h4 a,h5 a,h6 a,dt a', 'sign', e => e.textContent.trim().length < 3 ? e.textContent : '');
  all('pre', 'line numbers', text);
  all('[x-cloak],[class*=cloak],[class*=loading],[class*=lazy],[class*=fade],[data-aos]', 'until scripts run',
      text);
  let rules = 0;
  for (const sheet of document.querySelectorAll('style')) rules += sheet.textContent.length;
  for (const e of document.querySelectorAll('body *')) {
    const s = getComputedStyle(e), box = e.getBoundingClientRect();
    const clear = s.opacity < 0.02 || parseFloat(s.fontSize) <= 1 || s.clip.startsWith('rect(') || s.clipPath != 'none';
    const away = parseFloat(s.textIndent) < -900 || box.right < -500 || box.bottom < -500;
    const none = s.overflow != 'visible' && (box.width < 1 || box.height < 1);
    const pale = /, 0\\)$/.test(s.color);
    if (s.visibility == 'hidden' || clear || away || none || pale) add('not seen', text(e));
    if (rules > 24576 && s.display == 'none') add('large sheets', text(e));
  }
  return found
}"""
"""What a page shows in a way of its own: names and values that stand in attributes, powers and notes, formulas, panels
that a reader opens, words that are there and not seen, words that scripts will show, and words that sheets of more than
24 KiB hide, which are not read."""


class Compared(NamedTuple):
    """What differs on a page: words that only Chromium shows (lost), and only Prunus (extra), by what explains them."""

    number: int
    meant: Counter[str]
    unexplained: list[tuple[str, str, str]]


def words_of(text: str) -> list[str]:
    """Return the words of a text."""
    return _WORD.findall(unicodedata.normalize("NFKC", text).casefold())


def pages(file: str, most: int) -> Iterator[str]:
    """Yield the first pages of a data set."""
    with lzma.open(Path(os.environ["PRUNUS_DATA"]) / f"{file}.jsonl.xz", "rt", encoding="utf-8") as lines:
        for _, line in zip(range(most), lines, strict=False):
            yield json.loads(line)["html"]


def compared(found: Iterable[str], program: str) -> Iterator[Compared]:
    """Compare pages with what Chromium shows of them.

    :param program: path of Chromium.
    """
    from playwright.sync_api import sync_playwright

    from prunus.pages.clean.walk import clean_tree

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, chromium_sandbox=False)
        context = browser.new_context(java_script_enabled=False, viewport={"width": 1280, "height": 800})
        for number, html in enumerate(found):
            tab = context.new_page()
            tab.route("**/*", partial(_answer, html))
            tab.goto(_ADDRESS, wait_until="domcontentloaded")
            shown: str = tab.evaluate("() => document.body ? document.body.innerText : ''")
            explained: dict[str, list[str]] = tab.evaluate(_MEANT)
            tab.close()
            tree = clean_tree(html)
            ours = tree.canonical.removeprefix(" ".join(tree.title.split()))
            yield Compared(number, *_differences(words_of(shown), words_of(ours), explained))
        browser.close()


def _answer(html: str, route: Any) -> None:
    if route.request.url == _ADDRESS:
        route.fulfill(body=html, content_type="text/html; charset=utf-8")
    else:
        route.abort()


def _differences(
    shown: list[str], ours: list[str], explained: dict[str, list[str]]
) -> tuple[Counter[str], list[tuple[str, str, str]]]:
    """Return the words that differ and are meant, by reason, and the others with the words before them."""
    known = {why: {word for text in texts for word in words_of(text)} for why, texts in explained.items()}
    any_reason = set[str]().union(*known.values())
    meant: Counter[str] = Counter()
    others = []
    matcher = difflib.SequenceMatcher(None, shown, ours, autojunk=False)
    for kind, low, high, start, stop in matcher.get_opcodes():
        if kind == "equal":
            continue
        lost, extra = shown[low:high], ours[start:stop]
        differing = {*lost, *extra}
        why = next((why for why, words in known.items() if words.issuperset(differing)), "")
        if not why and any_reason.issuperset(differing):
            why = "several"
        if lost and "".join(lost) == "".join(extra):  # only the ends of words differ
            why = "items on one line" if len(extra) > len(lost) else "large sheets" if "large sheets" in known else ""
        if why:
            meant[why] += 1
        else:
            unknown = [[word for word in words if word not in any_reason] or words for words in (lost, extra)]
            others.append((" ".join(shown[max(0, low - 4) : low]), *map(" ".join, unknown)))
    return meant, others


def main() -> None:
    """Print the differences of each page, and how many pages agree."""
    arguments = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    arguments.add_argument("--pages", type=int, default=100)
    arguments.add_argument("--file", default="clean/wcxb")
    arguments.add_argument("--show", type=int, default=12, help="differences of a page that are shown")
    chosen = arguments.parse_args()
    from prunus.web.fetch.browser import find_browser

    total, same, meant = 0, 0, Counter[str]()
    for page in compared(pages(chosen.file, chosen.pages), find_browser()):
        total += 1
        same += not page.unexplained
        meant.update(page.meant)
        for before, lost, extra in page.unexplained[: chosen.show]:
            print(f"{page.number}: …{before} | only Chromium: {lost[:200]!r} | only Prunus: {extra[:200]!r}")
    print(f"{same} of {total} pages agree; meant differences: {dict(meant.most_common())}")


if __name__ == "__main__":
    main()
