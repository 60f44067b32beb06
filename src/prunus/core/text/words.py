"""Plain-text functions: normalise, count words, cut sentences, guess the language.

``sentences`` is lossless: its parts joined are the text.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Final

from .sentences import sentence_spans, sentences

__all__ = [
    "SYLLABIC",
    "UNSPACED",
    "count_words",
    "guess_language",
    "normalise",
    "sentence_spans",
    "sentences",
]

UNSPACED: Final = "\u3040-\u30ff\u31f0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff"
"""Han and kana: scripts without spaces between words; each letter counts as a word."""

SYLLABIC: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"
"""Thai, Lao, Burmese, Khmer: scripts without spaces between words, of several code points a word."""

_UNSPACED_LETTER: Final = re.compile(f"[{UNSPACED}]")
_SYLLABIC_RUN: Final = re.compile(f"[{SYLLABIC}]+")
_SYLLABIC_WORD: Final = 5  # code points of an average Thai word, signs included

_QUOTES: Final = str.maketrans(
    {
        **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u02bc\u00b4`", "'"),
        **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb", '"'),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d", "-"),
        **dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufeff", None),
    }
)


def normalise(text: str) -> str:
    """Return ``text`` in the form in which quotes are compared with pages.

    The form is NFC. Each run of white space becomes one space, and the ends are stripped. Typographic quotes and
    dashes become ASCII. Zero-width characters and soft hyphens are removed.
    """
    return " ".join(unicodedata.normalize("NFC", text).translate(_QUOTES).split())


def count_words(text: str) -> int:
    """Count words: runs between spaces; Han and kana by letter; Thai, Lao, Burmese and Khmer by length."""
    if text.isascii():
        return len(text.split())
    text, letters = _UNSPACED_LETTER.subn(" ", text)
    extra = 0
    for run in _SYLLABIC_RUN.finditer(text):
        extra += (run.end() - run.start() - 1) // _SYLLABIC_WORD
    return letters + extra + len(text.split())


# --- language --------------------------------------------------------------------------------

_FUNCTION_WORDS: Final[dict[str, frozenset[str]]] = {
    "en": frozenset("the of and to in is was for that with on as by at from what who which how when where".split()),
    "de": frozenset("der die das und ist von mit den dem ein eine nicht auf für wer wie wann welche im zu".split()),
    "fr": frozenset("le la les des et est une dans que qui pour sur avec au du quel quelle comment où en".split()),
    "es": frozenset("el la los las y es una en que por con para del qué quién cuál cómo dónde cuándo se su".split()),
    "it": frozenset("il la lo gli che è di un una per con del della sono chi quale come dove quando nel si".split()),
    "pt": frozenset("o os as que é do da em um uma para com não por quem qual como onde quando na no".split()),
    "nl": frozenset("de het een en van is dat op te met voor niet wie wat welke hoe waar wanneer zijn aan".split()),
    "sv": frozenset("och att det som en är på av för med den till inte vem vad vilken hur när om har".split()),
    "da": frozenset("og at det som en er på af for med den til ikke hvem hvad hvilken hvor hvornår har".split()),
    "ru": frozenset("и в не на что с по как из к для это кто где когда какой от за был о".split()),
}

_LANGUAGES_OF: Final = {
    word: tuple(code for code, known in _FUNCTION_WORDS.items() if word in known)
    for word in frozenset().union(*_FUNCTION_WORDS.values())
}

_SCRIPTS: Final = (
    (re.compile("[\u3040-\u30ff]"), "ja"),
    (re.compile("[\u4e00-\u9fff\u3400-\u4dbf]"), "zh"),
    (re.compile("[\uac00-\ud7af]"), "ko"),
    (re.compile("[\u0e00-\u0e7f]"), "th"),
    (re.compile("[\u0600-\u06ff]"), "ar"),
    (re.compile("[\u0400-\u04ff]"), "ru"),
    (re.compile("[\u0370-\u03ff]"), "el"),
    (re.compile("[\u0590-\u05ff]"), "he"),
)


def guess_language(text: str, default: str = "en") -> str:
    """Guess the language of ``text`` as an ISO 639-1 code, by script, then by function words.

    The guess is good enough to choose a stemmer. Short text without function words gets ``default``.
    """
    sample = text[:4000]
    if not sample.isascii():
        for pattern, code in _SCRIPTS:
            if len(pattern.findall(sample)) * 5 > len(sample):  # a fifth: a foreign name does not decide
                return code
    scores = dict.fromkeys(_FUNCTION_WORDS, 0)
    words = sample.lower().replace("¿", " ").split()
    most = 1 + len(words) // 20  # a name that repeats a word ("La La Land") does not decide a short text
    for word, times in Counter(words).items():
        for code in _LANGUAGES_OF.get(word, ()):
            scores[code] += min(times, most)
    best = max(scores, key=lambda code: (scores[code], code == default))
    return best if scores[best] > scores.get(default, 0) else default
