"""What the names and the short lines of a page's parts say about them: menu, comments, share bar, article.

The lists are data. A kind's number is the number of its bit in a mask.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

NAMES: Final[dict[str, str]] = {
    "menu": "nav|menu|crumb|toolbar|topbar|masthead|skip|pager|paginat|banner|header",
    "foot": "foot|copyright|legal|colophon|contentinfo",
    "side": r"sidebar|\b_*side|[-_]side|\brail|[-_]rail|widget|complementary|aside",
    "related": (
        "relat|recommend|recirc|promo|popular|trending|teaser|also|outbrain|taboola|latest|readmore|"
        "read-more|mostread|most-|upnext|onward"
    ),
    "share": r"\bshar|[-_]shar|sharing|social|facebook|twitter|follow|addthis|sns",
    "comment": "comment|disqus|respond|reply|discussion|livefyre",
    "advert": r"advert|sponsor|dfp|adslot|adunit|\bads?\b|[-_]ads?\b|\bads?[-_]",
    "notice": "cookie|consent|gdpr|newsletter|subscri|signup|sign-up|login|modal|popup|paywall|overlay|donat|alert",
    "meta": (
        r"meta|byline|author|dateline|\bdate|[-_]date|timestamp|\btags?\b|[-_]tags?\b|categor|\bbio|[-_]bio|"
        r"topic|keyword"
    ),
    "caption": "caption|credit|legend",
    "picture": "figure|image|photo|gallery|media|video|slide|thumb",
    "strong": (
        "articlebody|article-body|article_body|entry-content|post-content|article-content|article__body|"
        "story-body|storybody|body-copy|post-body|articletext|article-text|mw-parser-output|markdown"
    ),
    "body": "article|content|body|post|entry|story|text|main|prose|paragraph|copy",
    "title": "title|headline|heading",
    "lead": "summary|lead|standfirst|intro|abstract|dek|subtitle|description|excerpt",
    "list": "list|card|grid|item|feed|carousel|module",
    "edit": (
        r"edit|print|hidden|toc|navbox|noprint|reflist|jump|tool|button|btn|\bform\b|[-_]form|\bform[-_]|"
        r"search|input"
    ),
}
"""Parts of the names (class, id, role, itemprop) of a page's elements, by what they say of an element."""

NAME_KINDS: Final = tuple(NAMES)
_LONGEST: Final = 200  # code points of names that are looked at
_NAME: Final = re.compile("|".join(f"({pattern})" for pattern in NAMES.values()))

WORDS: Final[dict[str, str]] = {
    "share": """share tweet facebook twitter whatsapp linkedin pinterest reddit email print instagram youtube telegram
        follow teilen drucken partager imprimer compartir imprimir condividi delen поделиться 分享 转发 شارك""",
    "notice": """cookie cookies subscribe subscriber subscription newsletter login signup register sign-up sign log
        inbox consent gdpr privacy abonnieren anmelden registrieren datenschutz abonnez-vous connexion suscríbete
        подписаться 登录 注册 订阅 隐私 تسجيل اشترك""",
    "foot": """copyright © rights reserved terms policy imprint impressum contact careers sitemap disclaimer agb
        mentions légales contacto условия 版权 版权所有 联系我们 حقوق""",
    "related": """related more recommended popular trending latest read-more recommended: next previous also most
        mehr verwandte auch lesen lire aussi más leer también ancora ещё 相关 推荐 热门 更多 الأكثر المزيد""",
    "comment": """comment comments reply replies respond kommentar kommentare commentaires commentaire comentarios
        комментарии 评论 回复 تعليق تعليقات""",
    "advert": """advertisement advertise sponsored ad ads promoted anzeige werbung publicité publicidad реклама
        广告 إعلان""",
    "meta": """by published updated posted written author ago min am pm minutes edited filed under tags von aktualisiert
        veröffentlicht par publié por publicado 作者 发布 来源 编辑 كتب""",
    "menu": """home menu search skip navigation about login account cart sections topics news sport video shop
        startseite suche accueil recherche inicio buscar главная поиск 首页 搜索 菜单 الرئيسية بحث""",
    "picture": "photo photograph image picture getty reuters ap credit afp file photo: image: foto photos via courtesy",
    "refs": """references notes bibliography sources citations footnotes see external einzelnachweise literatur weblinks
        références referencias 参考 注释 参考资料 外部链接 مراجع""",
}
"""Words of short lines, by what they say of a line."""

WORD_KINDS: Final = tuple(WORDS)
WORD_BITS: Final[dict[str, int]] = {}
_UNSPACED: Final[list[tuple[str, int]]] = []


def _fill() -> None:
    for number, words in enumerate(WORDS.values()):
        for word in words.split():
            WORD_BITS[word] = WORD_BITS.get(word, 0) | 1 << number
            if word[0] > "\u3000":
                _UNSPACED.append((word, 1 << number))


_fill()


@lru_cache(16_384)  # a few names stand on most pages of a site, and of the web
def name_mask(names: str) -> int:
    """Return the kinds, as bits, that the names of an element speak of."""
    mask = 0
    for found in _NAME.finditer(names[:_LONGEST].lower()):
        mask |= 1 << ((found.lastindex or 1) - 1)
    return mask


def word_mask(line: str) -> int:
    """Return the kinds, as bits, that the words of a short line speak of; ``line`` is in lower case."""
    mask = 0
    known = WORD_BITS
    for word in line.split():
        bits = known.get(word) or known.get(word.strip(".,:;!?()|•·-"))
        if bits:
            mask |= bits
    if not line.isascii():
        for word, bit in _UNSPACED:
            if word in line:
                mask |= bit
    return mask
