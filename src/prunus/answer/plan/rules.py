"""``rules`` (default): plans a search without a model, for the common cases; the plan's reason names the rule.

The rules know English, and the commonest words of German, French, Spanish and Chinese. They translate nothing: Latin
names in a question in another script become a further query in English.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from ...core.errors import BadInput
from ...core.text.bm25 import QUERY_NOISE
from ...core.text.numbers import bounded_int
from ...core.text.words import UNSPACED, guess_language, sentences
from ...core.types import Message, Plan, SearchQuery
from ...models.encoding import encode
from ...models.smollm2.tokenizer import smollm2_tokenizer

_LONGEST: Final = 4_000
"""Code points of a message that are read: its two ends, where a question usually is."""

_LONGEST_QUERY: Final = 300

_NARROW: Final = 2
"""Years of age up to which a year is left out of the query for a timeless question (see ``_TIMELESS``)."""

_CHAT: Final = re.compile(
    r"(?:hi|hello|hey|good (?:morning|evening|afternoon|night)|thanks?(?: you)?(?: (?:so|very) much| a lot)?|bye"
    r"|goodbye|see you|ok(?:ay)?|great|cool|nice|well done|sorry|how are you(?: doing)?(?: today)?|who are you"
    r"|what can you do|what(?:'s| is) your name"
    r"|tell me a joke|(?:(?:thanks?(?: you)?|ok(?:ay)?|no),? )*+that(?:'s| is| was| will be) (?:all|it)(?: for now)?"
    r"|thanks?(?: you)? for (?:your|the|all your) help"
    r"|(?:danke,? |nein,? )?das (?:ist|war) alles|(?:merci,? )?c'est tout|(?:gracias,? )?eso es todo|hallo"
    r"|guten (?:tag|morgen|abend)"
    r"|danke(?: sch[oö]n)?|tsch[uü]ss|wie geht(?:'s| es dir)|bonjour|salut|merci(?: beaucoup)?"
    r"|au revoir|hola|gracias|adi[oó]s|你好|谢谢|再见)"
)
_OPENING: Final = re.compile(r"(?:hi|hello|hey|hallo|bonjour|hola|please|bitte|你好)\b[,!. ]+", re.I)
_SUM_OPENING: Final = re.compile(
    r"(?:what(?:'s| is)|how much is|calculate|compute|solve|evaluate|was ist|rechne|combien font)\s+", re.I
)
_SUM_WORD: Final = re.compile(r"\b(?:plus|minus|times|divided by|multiplied by|mod)\b", re.I)
_SUM: Final = re.compile(r"[\d\s.,()+*/\u00d7\u00f7^%=\u221a\u2212-]+")
_OPERATOR: Final = re.compile(r"[+*/\u00d7\u00f7^%\u221a\u2212-]")
_DATE: Final = re.compile(r"\d{1,4}[-/.]\d{1,2}[-/.]\d{1,4}")
_GIVEN: Final = re.compile(
    r"(?:please |can you |could you |kannst du )*(?:re-?write|rephrase|paraphrase|proof-?read|correct|shorten|translate"
    r"|summari[sz]e|simplify|edit|polish|reformat|refactor|debug|fix|explain|review|complete|convert|übersetze"
    r"|korrigiere|fasse|kürze|traduis|résume|corrige|traduce|resume|翻译|总结|改写|润色)\b",
    re.I,
)
_GIVEN_TEXT: Final = re.compile(
    r"\b(?:this|the following|these|my|below|diese[nrs]?|folgende[nrs]?|ce|cette|suivant|este|esta|siguiente)\b|[:：]"
    r"|```|^[^\"\u201c\u00ab\n]*+[\"\u201c\u00ab].{15,}[\"\u201d\u00bb]|以下|这",
    re.M,
)
_TRANSLATE: Final = ("translate", "übersetze", "traduis", "traduce", "翻译")
_QUOTE: Final = re.compile(r"(?<!\w)['\"\u2018\u201c\u00ab\u300c]\S")
"""The start of a quotation; an apostrophe inside a word is none."""
_INVENTED: Final = re.compile(
    r"(?:please |can you |could you )*(?:write|compose|invent|make up|draft|schreibe|erfinde|écris|escribe|写)"
    r"\s++(?:me |us |mir |-moi )?(?:an?|some|eine?[nms]?|une?)?\s*+(?:\w+ ){0,3}"
    r"(?:poem|haiku|story|limerick|song|joke|riddle|tagline|slogan|email|e-mail|letter|gedicht|geschichte|poème"
    r"|poema|cuento|诗|故事)\b",
    re.I,
)

_YEAR: Final = re.compile(r"\b(?:1[5-9]|20)\d\d\b")
_DAY: Final = re.compile(
    r"\b(?:today|tonight|right now|at the moment|currently open|weather|forecast|heute|jetzt|wetter|aujourd'hui|météo"
    r"|hoy|ahora)\b|今天|现在|天气",
    re.I,
)
_WEEK: Final = re.compile(
    r"\b(?:this week|news|headlines|breaking|nachrichten|actualités|noticias|score|standings)\b|新闻", re.I
)
_MONTH: Final = re.compile(r"\b(?:this month|recent(?:ly)?|lately|neulich|récemment|recientemente)\b|最近", re.I)
_THIS_YEAR: Final = re.compile(
    r"\b(?:this year|latest|newest|current(?:ly)?|nowadays|up to date|as of now|price of|aktuell\w*|neueste\w*"
    r"|derzeit|actuel\w*|dernier\w*|actual\w*|último\w*)\b|最新|目前|今年",
    re.I,
)
_PAST: Final = re.compile(
    r"\b(?:yesterday|last (?:week|month|year|night)|tomorrow|next (?:week|month|year)|gestern|morgen)\b", re.I
)
_TIMELESS: Final = re.compile(
    r"^(?>.*?\b(?:best|top|good|easiest|recommended|most effective)\b).*"
    r"\b(?:ways?|methods?|practices?|techniques?|tips?|exercises?|recipes?|diets?|strateg(?:y|ies)|books?)\b",
    re.I | re.M,
)
"""Questions whose answers do not go out of date: a year in the query would only narrow the search."""

_BACK: Final = re.compile(
    r"\b(?:it|its|they|them|their|theirs|he|him|his|she|her|hers|this one|that one|these|those|there"
    r"|the (?:former|latter)|same|er|sie|ihn|ihr(?:e|er|es)?|dessen|il|elle|ils|elles|ella)\b|[它他她]",
    re.I,
)
_ONWARD: Final = re.compile(r"(?:and|but|so|what about|how about|und|aber|wie ist es mit|et|y|qué tal|那|那么)\b", re.I)
_QUOTED: Final = re.compile(
    r"[\"\u201c\u00ab\u300c]([^\"\u201c\u201d\u00ab\u00bb\u300c\u300d]{1,120})[\"\u201d\u00bb\u300d]"
)
_WORD: Final = re.compile(rf"[^\W_](?:[\w.+#&'\u2019/-]*[\w+#])?|[{UNSPACED}]+")
_JOINED: Final = re.compile(
    r" ?[,;]? (?:and|und|et|y) (?=(?:who|what|when|where|which|why|how|wer|was|wann|wo|wie|qui|quand|où|quién|"
    r"cuándo|dónde)\b)",
    re.I,
)
_COMPARED: Final = re.compile(
    r"(?:difference between|compare|unterschied zwischen) (.{2,60}?) (?:and|with|to|und) (.{2,60}?) ?[?.!]*+$",
    re.I,
)
_PARTICLES: Final = re.compile(r"请问|请|告诉我|的话|[吗呢吧啊呀？。！，、?!]")
_FILLER: Final = frozenset(
    """please tell find know explain describe want need like search look give show let say think wonder asking list help
    google question answer anyone somebody also there about here between difference hi hello hey
    bitte sag sage erkläre finde suche dis-moi trouve dime
    busca can't don't i'm i'd i'll what's who's where's it's that's""".split()
)
_PARTICLES_OF_NAMES: Final = frozenset("de der den di da dos van von del la le al bin ibn".split())


class Engine:
    """Plans by rules.

    :param limit: most queries of a plan.
    :raises BadInput: the limit is below 1.
    """

    name = "rules"

    def __init__(self, limit: int = 4) -> None:
        if limit < 1:
            raise BadInput(f"planner rules: limit must be at least 1, not {limit}", subject="limit")
        self._limit = limit

    async def plan(self, conversation: Sequence[Message], now: datetime) -> Plan:
        """Return the plan for the last turn of the user; a follow-up takes its topic from earlier turns.

        :raises BadInput: the conversation holds no turn of a user.
        """
        turns = [message.content for message in conversation if message.role == "user" and message.content.strip()]
        if not turns:
            raise BadInput("planner: there is no question", subject="conversation")
        question = _head(turns[-1])
        why = _no_search(question)
        if why:
            return Plan(False, why)
        topic = _topic(turns[:-1]) if _follows(question, len(turns) > 1) else ""
        language = guess_language(question)
        parts = _parts(question)
        texts: list[str] = []
        for index, part in enumerate(parts):
            words = keywords(part, now)
            if index and not topic and _BACK.search(part):
                topic = _topic(parts[:index])
            if words:
                texts.append(f"{topic} {words}" if topic and topic.lower() not in words.lower() else words)
        if not texts:
            texts = [topic or " ".join(question.split())]
        date, range_ = _time(question, now)
        queries = [
            SearchQuery(_cut(f"{text} {date}" if date and date not in text else text), language, range_)
            for text in texts
        ]
        names = " ".join(_latin(question)) if language in ("zh", "ja", "ko", "ru", "ar", "th", "el", "he") else ""
        if names and names != queries[0].text:
            queries.append(SearchQuery(_cut(names), "en", range_))
        reason = "the question asks for facts" + (f", of {range_ or date}" if range_ or date else "")
        reason += "; it follows an earlier one" if topic else ""
        return Plan(True, reason, tuple(dict.fromkeys(queries))[: self._limit])


def _head(text: str) -> str:
    """Return a message, or the head and the end of a long message."""
    text = text.strip()
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST // 2]}\n{text[-_LONGEST // 2 :]}"


def _cut(text: str) -> str:
    """Return a query, cut between words where it is too long."""
    return text if len(text) <= _LONGEST_QUERY else text[:_LONGEST_QUERY].rsplit(" ", 1)[0]


def _no_search(question: str) -> str:
    """Return the reason why a question needs no search; '' where it needs a search."""
    bare = question.strip().rstrip("?!. =\u3002\uff01\uff1f").strip()
    rest = _OPENING.sub("", bare, count=1).strip()
    if not bare:
        return "there is nothing to look for"
    if any(_CHAT.fullmatch(text.lower()) for text in (bare, rest)) or not _WORD.search(bare):
        return "it is small talk"
    if _is_sum(rest):
        return "it is arithmetic"
    if _is_given(rest):
        return "it works on a text that is given"
    return "it asks for something to be made up" if _INVENTED.match(rest) else ""


def _is_given(request: str) -> bool:
    """Tell whether a request holds the text that it works on; to translate, a word in quotation marks is one."""
    task = _GIVEN.match(request)
    if task is None:
        return False
    text = request[task.end() :]
    if task[0].lower().endswith(_TRANSLATE) and _QUOTE.search(text):
        return True
    return bool(_GIVEN_TEXT.search(text)) and ("\n" in request or "```" in request or len(request.split()) > 4)


def _is_sum(text: str) -> bool:
    """Tell whether a question is arithmetic: numbers and operators alone, and no date."""
    bare = _SUM_WORD.sub("+", _SUM_OPENING.sub("", text, count=1)).strip()
    return bool(
        _SUM.fullmatch(bare)
        and _OPERATOR.search(bare)
        and any(letter.isdigit() for letter in bare)
        and not _DATE.fullmatch(bare)
    )


def _parts(question: str) -> list[str]:
    """Split a message into its questions, and a comparison into its two subjects."""
    lines = [" ".join(sentence.split()) for sentence in sentences(question) if sentence.strip()]
    questions = [sentence for sentence in lines if sentence.endswith(("?", "\uff1f"))] if len(lines) > 1 else []
    parts = [part for sentence in (questions or [" ".join(lines)]) for part in _JOINED.split(sentence) if part.strip()]
    compared = _COMPARED.search(parts[0]) if len(parts) == 1 else None
    return [parts[0], compared.group(1), compared.group(2)] if compared else parts


def keywords(question: str, now: datetime) -> str:
    """Return a question's keywords in their order; names stay whole, and rare names get quotation marks."""
    result: list[str] = []
    position = 0
    for match in _QUOTED.finditer(question):
        result += [*_plain(question[position : match.start()], now, question), f'"{match.group(1).strip()}"']
        position = match.end()
    result += _plain(question[position:], now, question)
    return " ".join(dict.fromkeys(result))


def _plain(text: str, now: datetime, question: str) -> list[str]:
    """Return the keywords of text without quotations."""
    if guess_language(text, "") in ("zh", "ja"):
        return _PARTICLES.sub(" ", text).split()
    text = text.replace('"', " ")
    names = _names(text)
    result: list[str] = []
    position = 0
    for start, end, name in [*names, (len(text), len(text), "")]:
        for match in _WORD.finditer(text, position, start):
            word = match.group()
            narrow = bounded_int(word, 0, most=2_099) >= now.year - _NARROW and _TIMELESS.search(question)
            if not _is_filler(word) and not narrow:
                result.append(word)
        if name:
            result.append(name)
        position = end
    return result


def _names(text: str) -> list[tuple[int, int, str]]:
    """Return (start, end, name in quotation marks) of each name that holds a rare word.

    A single capitalised word is skipped at the head of the text, and in German, where every noun has a capital letter.
    """
    words = list(_WORD.finditer(text))
    result = []
    position = 0
    while position < len(words):
        last = position
        if _is_name(words[position].group()):
            following = position + 1
            while following < len(words) and text[words[following - 1].end() : words[following].start()] == " ":
                if _is_name(words[following].group()):
                    last = following
                elif words[following].group().lower() not in _PARTICLES_OF_NAMES:
                    break
                following += 1
            start, end = words[position].start(), words[last].end()
            alone = last == position and not any(c.isdigit() for c in text[start:end])
            unsure = alone and (position == 0 or guess_language(text) == "de")
            if not unsure and any(_is_rare(word.group()) for word in words[position : last + 1]):
                result.append((start, end, f'"{text[start:end]}"'))
        position = last + 1
    return result


def _is_name(word: str) -> bool:
    """Tell whether a word looks like a name: it has a capital letter, or letters and digits."""
    if _is_filler(word):
        return False
    return word[:1].isupper() or (any(c.isdigit() for c in word) and any(c.isalpha() for c in word))


def _is_filler(word: str) -> bool:
    """Tell whether a word, or a contraction of it, says nothing about the subject of a question."""
    low = word.lower().replace("\u2019", "'")
    return low in QUERY_NOISE or low in _FILLER or low.split("'")[0] in QUERY_NOISE


def _is_rare(word: str) -> bool:
    """Tell whether a word takes more than two tokens of SmolLM2's vocabulary, as coined and rare names do."""
    if any(c.isdigit() for c in word) and any(c.isalpha() for c in word):
        return True
    return len(next(encode(smollm2_tokenizer(), [f" {word}"])).ids) > 2  # with its space, as within a text


def _latin(question: str) -> list[str]:
    """Return the words in Latin letters of a question in another script."""
    return re.findall(r"[A-Za-z][A-Za-z0-9.+-]{2,}", question)


def _follows(question: str, is_later: bool) -> bool:
    """Tell whether a question refers to an earlier question."""
    if not is_later:
        return False
    short = len(question.split()) <= 3 and guess_language(question, "") not in ("zh", "ja")
    return bool(_BACK.search(question) or _ONWARD.match(question)) or short


def _topic(earlier: Sequence[str]) -> str:
    """Return the names, or else the first words, of the latest earlier question that needed a search."""
    for question in reversed(earlier):
        question = _head(question)
        if _no_search(question):
            continue
        named = [f'"{match.group(1).strip()}"' for match in _QUOTED.finditer(question)]
        spans = _names(question)
        named += [name for _, _, name in spans]
        words = [match for match in _WORD.finditer(question) if not _is_filler(match.group())]
        outside = [match for match in words if not any(start <= match.start() < end for start, end, _ in spans)]
        named += [match.group() for match in outside if _is_name(match.group())]
        result = named or [match.group() for match in words[:4]]
        if result:
            return " ".join(dict.fromkeys(result[:6]))
    return ""


def _time(question: str, now: datetime) -> tuple[str, str]:
    """Return (date for the query, time range); both are '' where the question names a year or is timeless."""
    if _YEAR.search(question) or _TIMELESS.search(question):
        return "", ""
    if _DAY.search(question):
        return f"{now:%Y-%m-%d}", ""  # a forecast for today may be days old
    if _PAST.search(question):
        return f"{now:%B %Y}", ""
    for pattern, range_ in ((_WEEK, "week"), (_MONTH, "month")):
        if pattern.search(question):
            return f"{now:%Y}", range_
    return (f"{now:%Y}", "year") if _THIS_YEAR.search(question) else ("", "")
