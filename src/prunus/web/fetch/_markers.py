# ruff: noqa: E501 (tables of patterns read best with one entry a line)
"""The patterns of walls, as data: bot checks, consent and login walls, paywalls, parked domains, empty shells.

A page matches a :class:`Marker` if all its conditions hold. ``most`` bounds the words of running text: no
wall has more, so a longer page counts as content whatever its subject.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, Literal

Kind = Literal["bot", "consent", "login", "paywall", "soft404", "parked", "shell"]


@dataclass(frozen=True, slots=True)
class Marker:
    """One pattern of a wall.

    :param who: the vendor or site of the wall, for the reason that users see.
    :param header: name of a response header, and a pattern for its value.
    :param title, text, markup: patterns for the title, the visible text and the HTML source; '' matches any.
    :param statuses: HTTP statuses of the wall; empty for any.
    :param most: most words of running text.
    """

    kind: Kind
    who: str
    header: tuple[str, str] = ("", "")
    title: str = ""
    text: str = ""
    markup: str = ""
    statuses: frozenset[int] = frozenset()
    most: int = 150


_REFUSED: Final = frozenset({401, 403, 405, 406, 418, 429, 503})
_NO_LIMIT: Final = 1_000_000

MARKERS: Final[tuple[Marker, ...]] = (
    # Headers that only walls send: they decide whatever the page says.
    Marker("bot", "Cloudflare challenge", header=("cf-mitigated", "challenge"), most=_NO_LIMIT),
    Marker("bot", "AWS WAF challenge", header=("x-amzn-waf-action", "challenge|captcha"), most=_NO_LIMIT),
    Marker("bot", "Vercel checkpoint", header=("x-vercel-mitigated", "challenge|deny"), most=_NO_LIMIT),
    Marker("bot", "DataDome", header=("x-datadome", "."), statuses=_REFUSED),
    Marker("bot", "DataDome", header=("x-dd-b", "."), statuses=_REFUSED),
    # Cloudflare. Ordinary pages contain the script path too (it measures visitors), hence the titles.
    Marker("bot", "Cloudflare challenge", title=r"^just a moment", markup=r"/cdn-cgi/challenge-platform|_cf_chl_opt"),
    Marker("bot", "Cloudflare challenge", text=r"checking (?:if the site connection is secure|your browser before)"),
    Marker("bot", "Cloudflare block", title=r"^attention required!? *\| *cloudflare|^access denied \| .* cloudflare"),
    Marker("bot", "Cloudflare block", text=r"cloudflare ray id", statuses=_REFUSED, most=250),
    Marker("bot", "Cloudflare Turnstile", text=r"verif\w{1,9} (?:that )?you are (?:a )?human", markup=r"challenges\.cloudflare\.com"),
    # DataDome's interstitial is one sentence and a script from its own host.
    Marker("bot", "DataDome", markup=r"(?:geo|ct|interstitial)\.captcha-delivery\.com", most=60),
    Marker("bot", "DataDome", text=r"^\W*please enable js and disable any ad blocker", most=60),
    Marker("bot", "HUMAN (PerimeterX)", markup=r"px-captcha|captcha\.px-c(?:dn|loud)\.net|_pxappid", title=r"denied|robot|human|captcha"),
    Marker("bot", "HUMAN (PerimeterX)", text=r"press (?:&|and) hold to confirm you are|access to this page has been denied"),
    # Akamai: the words of its error page, in order; prose contains no reference number.
    Marker("bot", "Akamai", title=r"^access denied$", text=r"you don't have permission to access.{0,600}reference *#", most=90),
    Marker("bot", "Akamai", markup=r"/_sec/cp_challenge|sec-if-cpt-container|sec-text-if", most=60),
    Marker("bot", "Imperva", markup=r"_incapsula_resource", most=60),
    Marker("bot", "Imperva", text=r"incapsula incident id|powered by imperva", statuses=_REFUSED),
    Marker("bot", "Imperva", title=r"^pardon our interruption", most=250),
    Marker("bot", "AWS WAF", markup=r"gokuprops|awswaf(?:cookiedomainlist|integration)|\.awswaf\.com/", most=60),
    Marker("bot", "Kasada", markup=r"kpsdk|/149e9513-01fa-4fb0-aad4-566afd725d1b/", most=30),
    Marker("bot", "Sucuri", title=r"sucuri (?:website firewall|cloudproxy)", most=250),
    Marker("bot", "Sucuri", markup=r"sucuri_cloudproxy_js", most=60),
    Marker("bot", "Wordfence", text=r"your access to this (?:site|service) has been (?:limited|blocked)", most=300),
    Marker("bot", "F5", text=r"the requested url was rejected\. please consult with your administrator", most=60),
    Marker("bot", "Radware", title=r"radware (?:bot manager|page)|^captcha *+(?:- *+)?radware"),
    Marker("bot", "DDoS-Guard", title=r"^ddos-guard", most=200),
    Marker("bot", "Anubis", title=r"^making sure you(?:'|\u2019|&#39;)re not a bot", most=400),  # a long explanation for visitors
    Marker("bot", "Fastly challenge", title=r"^client challenge$", most=120),
    Marker("bot", "Vercel checkpoint", title=r"^vercel security checkpoint"),
    Marker("bot", "Google", text=r"our systems have detected unusual traffic from your computer network", markup=r"captcha-form|recaptcha/|/sorry/", most=180),
    Marker("bot", "Amazon", text=r"sorry, we just need to make sure you(?:'|\u2019)re not a robot"),
    Marker("bot", "Amazon", text=r"click the button below to continue shopping", most=60),
    Marker("bot", "Reddit", text=r"you(?:'|\u2019)ve been blocked by network security|whoa there, pardner"),
    Marker("bot", "Baidu", title=r"^百度安全验证"),
    Marker("bot", "Alibaba", title=r"^(?:验证码拦截|滑动验证页面|访问被拒绝|captcha interception)$"),
    Marker("bot", "Yandex", markup=r"/showcaptcha|smart-?captcha", title=r"^(?:ой!|oops!|вы не робот|are you not a robot)", most=200),
    # Bot checks without a known vendor: the title names the check, and the page holds hardly any text.
    Marker(
        "bot", "bot check", most=80,
        title=r"^(?:(?:are you (?:a )?(?:robot|human)|robot check|bot (?:check|verification|detection)|human verification"
        r"|verify(?:ing)? (?:that )?you are (?:a )?human|security (?:check|verification)|captcha(?: challenge)?"
        r"|ddos protection|checking your browser|one moment, please|you have been blocked"
        r"|(?:人机|安全|滑块?)验证|ロボットではありません|verificaci[oó]n de seguridad"
        r"|sicherheits(?:pr[uü]fung|[uü]berpr[uü]fung)|v[eé]rification de s[eé]curit[eé])\W*)(?:[|–—·:-] .*)?$",
    ),
    Marker(
        "bot", "CAPTCHA", most=60,
        markup=r"(?:www\.google\.com|www\.recaptcha\.net)/recaptcha/|hcaptcha\.com/1/api|js\.hcaptcha\.com"
        r"|client-api\.arkoselabs\.com|challenges\.cloudflare\.com/turnstile|api\.geetest\.com|static\.geetest\.com",
        text=r"not a (?:ro)?bot|(?:you are|you(?:'|\u2019)re|are you) (?:a )?human|unusual (?:traffic|activity)|automated (?:requests|queries|access)"
        r"|complete (?:the|this) (?:captcha|security check)|solve (?:the|this) captcha|prove (?:that )?you|security check"
        r"|kein roboter|pas un robot|no (?:eres|soy) un robot|non sono un robot|не робот|请完成.{0,8}验证",
    ),
    # Consent on a separate page. A consent layer over a page is no wall: the content is below it.
    Marker("consent", "Google", title=r"^before you continue|^bevor sie fortfahren|^avant d.acc[eé]der|^antes de (?:ir|continuar)", most=700),
    Marker("consent", "Yahoo", markup=r"consent\.yahoo\.com|guce\.[a-z.]{0,60}yahoo|action=[\"']/v2/collectconsent", text=r"cookies", most=400),
    # Sites that show nothing without an account.
    Marker("login", "LinkedIn", title=r"^sign up \| linkedin|^linkedin(?: login|:? log in)", most=300),
    Marker("login", "LinkedIn", markup=r"linkedin\.com/authwall|sessionredirect=", title=r"linkedin", most=80),
    Marker("login", "Facebook", text=r"you must log in to continue", most=120),
    Marker("login", "Instagram", title=r"^log ?in *[•·] *instagram$"),
    Marker("login", "X", text=r"^\W*(?:something went wrong, but don.t fret|log in to x)", most=80),
    # Parked domains: scripts of parking services with hardly any text, or a sentence that offers the domain for sale.
    Marker(
        "parked", "domain parking", most=80,
        markup=r"//[a-z0-9.-]{0,80}(?:sedoparking|parkingcrew|bodis|parklogic|parkweb|skenzo|cashparking|domainparking"
        r"|dsnextgen|uniregistry|hugedomains|afternic|undeveloped|above)\.(?:com|net)[/\"']|window\.park *=|/park\.js",
        text=r"domain|related (?:searches|links)|sponsored (?:listings|links)|^\W*$",
    ),
    Marker(
        "parked", "domain for sale", most=130,
        text=r"\b(?:this (?:web ?(?:site|page)|domain(?: name)?)|(?:the domain(?: name)?|domain) [a-z0-9-]++(?:\.[a-z0-9-]++)++|^[a-z0-9-]++(?:\.[a-z0-9-]++)++)"
        r"\W++(?:is|may be|might be|has been|is currently|is now) (?:listed )?(?:for sale|parked|available for (?:sale|purchase)|registered (?:at|with|and parked))"
        r"|\bbuy this domain\b.{0,200}\bdomain|this (?:web ?)?(?:page|site) is parked(?: free)?|this domain was recently registered"
        r"|diese domain steht zum verkauf|diese domain (?:ist|wurde) (?:geparkt|registriert)|ce (?:nom de )?domaine est (?:à vendre|en vente)"
        r"|este dominio está (?:en venta|a la venta)|этот домен (?:продаётся|продается|припаркован)|该域名(?:正在)?出售|域名出售",
    ),
    Marker("parked", "empty site of a host", title=r"^(?:welcome to nginx!?|apache2 (?:\w+ )?default page.*|iis windows server|test page for the .*|default web site page)$", most=500),
    Marker("parked", "account suspended", title=r"^account suspended$|^this account has been suspended$", most=80),
)  # fmt: skip
"""The markers, tried in this order."""

# --- patterns for the rules of walls ------------------------------------------------------------------------

CONSENT_WORDS: Final = re.compile(
    r"cookies?\b|consent\b|privacy|personal(?:i[sz]ed)? (?:data|ads|content)|\bpartners?\b|vendors?\b|advertis\w+|tracking"
    r"|accept\w*|reject\w*|einwillig\w+|zustimm\w+|datenschutz\w*|werbung|akzept\w+|ablehnen|tracking"
    r"|traceurs|confidentialit[eé]|accepter|refuser|publicit[eé]s?|privacidad|aceptar|rechazar|publicidad|toestemming",
    re.IGNORECASE,
)
"""The vocabulary of consent. In a consent wall every sixth word matches; in an article on the subject, fewer."""

CONSENT_CONTROL: Final = re.compile(
    r"^\W*(?:(?:i )?(?:accept|agree|consent)(?: (?:to )?(?:all|everything|cookies|all cookies|and (?:close|continue|proceed)))?"
    r"|(?:accept|allow) (?:all )?cookies|allow all|agree (?:and|&) (?:close|continue|proceed)|reject all|got it"
    r"|(?:alle[sn]? )?(?:akzeptieren|zustimmen|annehmen)(?: und weiter)?|(?:ich )?stimme zu|einverstanden|zustimmen und weiter"
    r"|tout accepter|accepter(?: et (?:fermer|continuer)| tout)?|j.accepte|aceptar(?: (?:todo|todas|y continuar))?|accetta(?: tutto)?"
    r"|alles accepteren|akkoord|aceitar(?: tudo)?|принять(?: все)?|同意|全部接受)\W*$",
    re.IGNORECASE,
)
"""The whole label of a button that accepts or rejects consent."""

CONSENT_SOURCE: Final = re.compile(
    r"onetrust|didomi|sourcepoint|sp-prod\.net|privacy-mgmt|usercentrics|quantcast|cookiebot|trustarc|iubenda|consentmanager"
    r"|contentpass|axeptio|sirdata|opencmp|fundingchoices|__tcfapi|__cmp\b|tcfapi",
    re.IGNORECASE,
)
"""Scripts of consent platforms. Ordinary pages load them too, so a match alone proves nothing."""

CONSENT_SUBJECT: Final = re.compile(
    r"polic(?:y|ies)|notice|statement|erkl[aä]rung|hinweise|richtlinie|pol[ií]tica|politique|informativa|beleid|политика|政策|settings|faq|help",
    re.I,
)
"""Title or heading of a page whose subject is cookies or privacy."""

CONSENT_ADDRESS: Final = re.compile(
    r"//(?:consent|cmp|zustimmung)\.|/(?:consent|cookie-?wall|cookie-?consent|zustimmung|privacy-?gate|gdpr)(?:[/?#]|$)",
    re.I,
)

LOGIN_ADDRESS: Final = re.compile(
    r"//(?:login|signin|sso|auth|accounts?|idp|id)\.|/(?:log-?in|sign-?in|sso|auth|oauth2?|saml2?|authwall|wp-login\.php|users/sign_in"
    r"|session/new|account/login|idp|cas/login|adfs)(?:[/?#.]|$)",
    re.IGNORECASE,
)

LOGIN_TITLE: Final = re.compile(
    r"^(?:please )?(?:log|sign)[ -]?(?:in|on)(?: (?:to|with|or|required)\b.*)?$|^login(?: page| required)?$|^anmeld(?:en|ung)$|^einloggen$"
    r"|^(?:se connecter|connexion|identification)$|^(?:iniciar sesi[oó]n|acceso)$|^accedi$|^inloggen$|^entrar$|^вход$|^登录$|^ログイン$"
    r"|^authentication required$|^(?:members?|customer|user) (?:log|sign)[ -]?in$",
    re.IGNORECASE,
)

PASSWORD: Final = re.compile(r"<input\b[^>]{0,300}?\btype\s*=\s*[\"']?password\b", re.IGNORECASE)

PAYWALL_SOURCE: Final = re.compile(
    r"\"isaccessibleforfree\"\s*:\s*\"?false|tinypass|piano\.io|\bpelcro|zephr|poool\b|\bpaywall\b|laterpay|steady-?paywall|meter-?wall",
    re.IGNORECASE,
)
PAYWALL_TEXT: Final = re.compile(
    r"subscribe (?:now )?to (?:continue|keep|read)|to (?:continue|keep) reading|continue reading (?:with|for)|already a (?:subscriber|member)"
    r"|(?:for|to) (?:paying )?(?:subscribers|members) only|(?:subscriber|member)s?[- ](?:only|exclusive)|unlock this (?:article|story)"
    r"|you(?:'|\u2019)ve (?:reached|read) your .{0,40}(?:limit|free)|weiterlesen mit|nur f[uü]r abonnenten|jetzt (?:abonnieren|weiterlesen)"
    r"|(?:article|contenu) r[eé]serv[eé] aux abonn[eé]s|d[eé]j[aà] abonn[eé]|contenido (?:exclusivo|solo) para suscriptores",
    re.IGNORECASE,
)

_ABSENT: Final = (
    r"(?:(?:http )?(?:error|fehler|erreur|ошибка)[ :#-]*)?404[ !.:–—-]*+(?:error|not found|page not found|file not found|seite nicht gefunden|oops)?"
    r"|(?:(?:oops|sorry|uh oh|whoops)[!,. ]*)?(?:(?:the |this |that )?(?:page|content|article|resource|document|file) (?:was |could |can |is )?(?:not|n't|cannot) ?(?:be )?(?:found|available|exist)"
    r"|(?:page|article|file|content) (?:does not|doesn.t) exist|nothing (?:was )?found|not found|(?:page|content) (?:is )?(?:unavailable|not available|no longer (?:available|exists))"
    r"|we can.?t find (?:that|this|the) page|page missing|oops)"
    r"|(?:die )?seite (?:wurde )?nicht gefunden|page (?:non trouv[eé]e|introuvable)|p[aá]gina (?:no encontrada|n[aã]o encontrada|non trovata)|pagina niet gevonden"
    r"|страница не найдена|页面(?:不存在|未找到|找不到)|(?:找不到|未找到)(?:页面|網頁|网页)|ページが見つかりません(?:でした)?|sidan hittades inte"
)
SOFT_404_TITLE: Final = re.compile(rf"^(?:{_ABSENT})[ !.?…]*$", re.IGNORECASE)
"""A part of a title, between bars or dashes, that only says that the page does not exist."""

SOFT_404_TEXT: Final = re.compile(
    r"(?:page|article|content|link|address|url|document|file|story)\b[^.!?]{0,60}(?:you|your)\b[^.!?]{0,80}"
    r"(?:looking for|request|tr(?:ied|ying)|reach|clicked|followed|typed|entered|want)"
    r"|(?:we|I)\b[^.!?]{0,20}(?:can.?t|cannot|couldn.?t|could not|unable to|were not able to)\b[^.!?]{0,20}(?:find|locate)"
    r"|(?:this|that|the) (?:page|article|content|link|story)\b[^.!?]{0,30}(?:doesn.?t|does not|no longer|isn.?t|is not|can.?t|cannot|has been|was|could not|couldn.?t|may have been)"
    r"|you(?:.ve| have)? (?:may have )?(?:mistyped|followed a (?:bad|broken|dead|old))|(?:go|return|back|take me) (?:back )?(?:to )?(?:the |our )?home"
    r"|(?:die |diese )?(?:gesuchte|angeforderte|aufgerufene)[^.!?]{0,20} seite|(?:seite|page|p[aá]gina)[^.!?]{0,80}(?:existiert nicht|nicht (?:mehr )?(?:gefunden|vorhanden|verf[uü]gbar)|n.existe (?:pas|plus)|introuvable|no existe|n[aã]o existe|non esiste|niet gevonden)"
    r"|не найден|не существует|удален|不存在|找不到|已删除|見つかりません",
    re.IGNORECASE,
)
"""Sentences that tell the visitor that this page is missing; documentation of status 404 does not address the visitor."""

SHELL_TEXT: Final = re.compile(
    r"(?:enable|turn on|activate|requires?|need|without) (?:\w+ ){0,4}java ?script|java ?script (?:is|must be|seems to be|appears to be|has been|to be) "
    r"(?:\w+ ){0,2}(?:disabled|required|enabled|not (?:available|enabled|supported)|turned off|necessary)"
    r"|javascript (?:aktivieren|erforderlich|deaktiviert)|activer javascript|activer le javascript|habilit\w{1,9} javascript|включите javascript|启用 ?javascript"
    r"|doesn't work properly without javascript",
    re.IGNORECASE,
)
REDIRECT: Final = re.compile(
    r"<meta\b[^>]{0,200}http-equiv\s*=\s*[\"']?refresh\b[^>]{0,200}url\s*=|\b(?:window|document|self|top)?\.?location(?:\.href)?\s*=\s*[\"'`]|location\.(?:replace|assign)\(",
    re.IGNORECASE,
)
"""Source of a page that redirects by a meta element or a script."""
REDIRECT_TEXT: Final = re.compile(
    r"^\W*$|redirect|if (?:you are|the page does|nothing|your browser does) not|moved|weiterleit|redirig|перенаправ|跳转",
    re.I,
)
