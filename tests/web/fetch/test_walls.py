"""Walls, and articles about their subjects. Every wall here is a small page modelled on a real kind."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from tests.web.fetch.server import Server, respond

from prunus.core.settings import Settings
from prunus.core.types import Page
from prunus.pages.clean.walk import clean_tree
from prunus.web.fetch.walls import Wall, detect
from prunus.web.reader import PageReader

URL = "https://www.example.org/news/2027/tides-of-velmar.html"
PROSE = (
    "The harbour of Velmar has kept a record of its tides since the old quay was built. Every morning a keeper "
    "reads the gauge, writes the level into a book and sends it to the observatory by post. "
)


def look(
    html: str, status: int = 200, final: str = URL, headers: dict[str, str] | None = None, **more: Any
) -> Wall | None:
    page = Page(html.encode(), URL, final, "text/html", "utf-8", status, headers=headers or {}, **more)
    return detect(page, clean_tree(html))


CLOUDFLARE = """<!DOCTYPE html><html lang="en-US"><head><title>Just a moment...</title><meta http-equiv="refresh" content="360">
</head><body><div class="main-wrapper"><div class="main-content"><noscript><div class="h2"><span id="challenge-error-text">Enable
JavaScript and cookies to continue</span></div></noscript></div></div><script>(function(){window._cf_chl_opt = {cvId: '3'};
var a = document.createElement('script');a.src = '/cdn-cgi/challenge-platform/h/g/orchestrate/chl_page/v1?ray=9';}());</script></body></html>"""
DATADOME = """<html lang="en"><head><title>example.org</title><style>#cmsg{animation: A 1.5s;}</style></head><body style="margin:0">
<p id="cmsg">Please enable JS and disable any ad blocker</p><script>var dd={'rt':'c','host':'geo.captcha-delivery.com'}</script>
<script src="https://ct.captcha-delivery.com/c.js"></script></body></html>"""
PERIMETERX = """<html><head><title>Access to this page has been denied</title></head><body><section><h1>Please verify you are a human</h1>
<p>Access to this page has been denied because we believe you are using automation tools to browse the website.</p>
<ul><li>Javascript is disabled or blocked by an extension</li><li>Your browser does not support cookies</li></ul><div id="px-captcha"></div>
<p>Reference ID: #0f3a</p></section><script>window._pxAppId = 'PXabc';</script></body></html>"""
AKAMAI = """<HTML><HEAD><TITLE>Access Denied</TITLE></HEAD><BODY><H1>Access Denied</H1>You don't have permission to access
"http&#58;&#47;&#47;www&#46;example&#46;org&#47;news" on this server.<P>Reference&#32;&#35;18&#46;5d0ed417&#46;1700000000&#46;1a2b3c</P></BODY></HTML>"""
IMPERVA = """<html style="height:100%"><head><META NAME="ROBOTS" CONTENT="NOINDEX, NOFOLLOW"><script type="text/javascript" src="/_Incapsula_Resource?SWJIYLWA=1">
</script></head><body><iframe id="main-iframe" src="/_Incapsula_Resource?CWUDNSAI=23">Request unsuccessful. Incapsula incident ID: 1-2</iframe></body></html>"""
GOOGLE = """<html><head><title>https://www.google.com/search?q=tides</title></head><body><div><form id="captcha-form" method="post">
<script src="https://www.google.com/recaptcha/enterprise.js"></script><div id="recaptcha"></div></form><hr><b>About this page</b><br>
Our systems have detected unusual traffic from your computer network. This page checks to see if it's really you sending the requests,
and not a robot. <a href="#">Why did this happen?</a></div></body></html>"""
RECAPTCHA = """<html><head><title>www.example.org</title></head><body><h2>One more step</h2><p>Please complete the security check to access
www.example.org.</p><form><div class="g-recaptcha" data-sitekey="x"></div><button>Submit</button></form>
<script src="https://www.google.com/recaptcha/api.js"></script></body></html>"""
AMAZON = """<html><head><title>Amazon.com</title></head><body><h4>Enter the characters you see below</h4><p>Sorry, we just need to make sure
you're not a robot. For best results, please make sure your browser is accepting cookies.</p><form><img src="https://images.example/captcha.jpg">
<input type="text" placeholder="Type characters"><button>Continue shopping</button></form></body></html>"""
ANUBIS = """<html><head><title>Making sure you&#39;re not a bot!</title></head><body><main><h1>Making sure you're not a bot!</h1><p>Loading...</p>
<details><summary>Why am I seeing this?</summary><p>You are seeing this because the administrator of this website has set up Anubis to protect the
server against the scourge of AI companies aggressively scraping websites.</p></details></main><script src="/.within.website/x/a.mjs"></script></body></html>"""
WORDFENCE = """<html><head><title>Your access to this site has been limited</title></head><body><h1>Your access to this site has been limited by the site owner</h1>
<p>Your access to this service has been limited. (HTTP response code 503)</p><p>If you think you have been blocked in error, contact the owner.</p></body></html>"""
GENERIC = """<html><head><title>Robot Check | Shop of Velmar</title></head><body><p>Slide to continue.</p><div id="slider"></div><script src="/s.js"></script></body></html>"""
CHINESE = """<html><head><title>百度安全验证</title></head><body><div class="timeout">网络不给力，请稍后重试</div><script src="/pass.js"></script></body></html>"""

CONSENT_GOOGLE = """<html><head><title>Before you continue to YouTube</title></head><body><h1>Before you continue to YouTube</h1><div>We use cookies and data to
deliver and maintain our services, track outages and protect against spam. If you choose to "Accept all", we will also use cookies and data to develop
new services and show personalised ads.</div><form><button>Reject all</button><button>Accept all</button></form><a href="/more">More options</a></body></html>"""
CONSENT_PUR = """<html><head><title>Zustimmung | Velmarer Zeitung</title><script src="https://cmp.example.net/sourcepoint/wrapper.js"></script></head><body><main>
<h1>Mit Werbung weiterlesen</h1><p>Besuchen Sie uns wie gewohnt mit Werbung und Tracking. Ihre Zustimmung ist jederzeit widerrufbar. Mehr zu Cookies, Werbung
und unseren 180 Partnern im Datenschutz-Center.</p><button>Zustimmen und weiter</button><h2>Oder im Abo ohne Werbung</h2><a href="/pur">Jetzt abonnieren</a>
</main></body></html>"""
CONSENT_HOST = """<html><head><title>Velmar News</title></head><body><h1>Velmar News is part of the Tide family of brands</h1><p>When you use our sites we use
cookies to provide our services, authenticate users and measure. If you click accept all, we and our partners will also store and access cookies and use
personal data for advertising and consent.</p><form><button>Accept all</button><button>Reject all</button></form></body></html>"""

LOGIN = """<html><head><title>Sign in to Velmar Portal</title></head><body><form method="post"><label>E-mail<input type="email" name="e"></label><label>Password
<input type="password" name="p"></label><button>Sign in</button></form><p><a href="/forgot">Forgot your password?</a> New here? <a href="/join">Create an account</a></p></body></html>"""
LOGIN_GERMAN = LOGIN.replace("Sign in to Velmar Portal", "Anmelden")
LOGIN_PLAIN = LOGIN.replace("Sign in to Velmar Portal", "Velmar Portal")
LINKEDIN = """<html><head><title>Sign Up | LinkedIn</title></head><body><h1>Join LinkedIn</h1><form><input type="password"><button>Agree &amp; Join</button></form></body></html>"""

PAYWALL = """<html><head><title>The tides of Velmar - Velmar Times</title><script type="application/ld+json">{"@type":"NewsArticle","isAccessibleForFree":false}</script>
</head><body><nav><a href="/">Home</a> <a href="/sea">Sea</a></nav><h1>The tides of Velmar</h1><p>Why the gauge was wrong for forty years.</p><div class="paywall">
<h2>Subscribe to continue reading</h2><p>Get unlimited access for 1 € a month.</p><button>Subscribe now</button><p>Already a subscriber? <a href="/login">Log in</a></p></div></body></html>"""

SOFT_404 = """<html><head><title>Page not found - Velmar Tideworks</title></head><body><nav><a href="/">Home</a></nav><h1>Oops!</h1><p>The page you are looking for
might have been removed, had its name changed, or is temporarily unavailable.</p><form><input type="search" placeholder="Search"></form></body></html>"""
SOFT_404_NUMBER = """<html><head><title>404</title></head><body><h1>404</h1><p>We couldn't find that page.</p><a href="/">Back to home</a></body></html>"""
SOFT_404_HEADING = """<html><head><title>Velmar Tideworks</title></head><body><h1>Nothing found</h1><p>It seems we can't find what you are looking for. Perhaps searching helps.</p></body></html>"""
SOFT_404_GERMAN = """<html><head><title>Seite nicht gefunden | Velmar</title></head><body><h1>Fehler 404</h1><p>Die gesuchte Seite existiert nicht (mehr).</p></body></html>"""
SOFT_404_RUSSIAN = """<html><head><title>Страница не найдена</title></head><body><h1>Ошибка 404</h1><p>Страница удалена или не существует.</p></body></html>"""

PARKED_SALE = """<html><head><title>velmar-tides.com</title></head><body><h1>velmar-tides.com is for sale</h1><p>Buy it now or make an offer.</p><button>Buy now</button>
<p>Trusted by thousands of domain buyers.</p></body></html>"""
PARKED_SEDO = """<html><head><title>velmar-tides.com - This website is for sale! - velmar tides Resources and Information.</title></head><body><div>This webpage was
generated by the domain owner using Sedo Domain Parking.</div><div>Related searches</div><a href="#1">Tide clocks</a><script src="//img.sedoparking.com/js/x.js"></script></body></html>"""
PARKED_GODADDY = """<html><head><title>velmar-tides.com</title></head><body><div id="root"></div><p>This Web page is parked FREE, courtesy of GoDaddy.</p></body></html>"""
PARKED_NGINX = """<html><head><title>Welcome to nginx!</title></head><body><h1>Welcome to nginx!</h1><p>If you see this page, the nginx web server is successfully
installed and working. Further configuration is required.</p></body></html>"""
SUSPENDED = """<html><head><title>Account Suspended</title></head><body><h1>Account Suspended</h1><p>This account has been suspended. Contact your hosting provider.</p></body></html>"""

SHELL_REACT = """<!doctype html><html><head><title>Velmar</title><script type="module" src="/assets/index-1a2b.js"></script></head><body>
<noscript>You need to enable JavaScript to run this app.</noscript><div id="root"></div></body></html>"""
SHELL_VUE = """<html><head><title>Velmar</title></head><body><div id=app><!-- filled later --></div><script src=/js/app.js></script></body></html>"""
SHELL_LOADING = """<html><head><title>Velmar</title></head><body><p>Loading…</p><div class="x" id="__next"></div><script src="/n.js"></script></body></html>"""
SHELL_EMPTY = """<html><head><script src="/n.js"></script></head><body><x-app></x-app></body></html>"""
SHELL_TEXT = """<html><head><title>Velmar</title><script src="/n.js"></script></head><body><h1>JavaScript is not available.</h1><p>We've detected that JavaScript is
disabled in this browser. Please enable JavaScript or switch to a supported browser.</p></body></html>"""
SHELL_REFRESH = """<html><head><meta http-equiv="refresh" content="0; url=/en/index.html"><title>Velmar</title></head><body><a href="/en/">If you are not redirected, click here</a></body></html>"""
SHELL_MOVED = """<html><head><title>Redirecting</title></head><body>Redirecting…<script>window.location.replace("/en/");</script></body></html>"""

WALLS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "bot: Cloudflare": ("bot", CLOUDFLARE, {"status": 403}),
    "bot: Cloudflare with status 200": ("bot", CLOUDFLARE, {}),
    "bot: Cloudflare, by its header alone": ("bot", f"<p>{PROSE * 40}", {"status": 403, "headers": {"CF-Mitigated": "challenge"}}),
    "bot: AWS, by its header alone": ("bot", "<script src=/x.js></script>", {"status": 202, "headers": {"x-amzn-waf-action": "challenge"}}),
    "bot: DataDome": ("bot", DATADOME, {"status": 403}),
    "bot: HUMAN": ("bot", PERIMETERX, {"status": 403}),
    "bot: Akamai": ("bot", AKAMAI, {"status": 403}),
    "bot: Imperva": ("bot", IMPERVA, {}),
    "bot: Google": ("bot", GOOGLE, {"status": 429}),
    "bot: reCAPTCHA": ("bot", RECAPTCHA, {}),
    "bot: Amazon": ("bot", AMAZON, {}),
    "bot: Anubis": ("bot", ANUBIS, {}),
    "bot: Wordfence": ("bot", WORDFENCE, {"status": 503}),
    "bot: nobody's": ("bot", GENERIC, {}),
    "bot: Baidu": ("bot", CHINESE, {}),
    "consent: Google": ("consent", CONSENT_GOOGLE, {"final": "https://consent.youtube.com/m?continue=x"}),
    "consent: pay or consent": ("consent", CONSENT_PUR, {"final": "https://www.example.org/zustimmung?url=x"}),
    "consent: on a host of its own": ("consent", CONSENT_HOST, {"final": "https://consent.example.org/v2/collectConsent?id=1"}),
    "login: by its name": ("login", LOGIN, {}),
    "login: in German": ("login", LOGIN_GERMAN, {}),
    "login: sent on": ("login", LOGIN_PLAIN, {"final": "https://sso.example.org/realms/a/login?next=/news"}),
    "login: status 401": ("login", "<h1>Unauthorized</h1>", {"status": 401}),
    "login: LinkedIn": ("login", LINKEDIN, {"final": "https://www.linkedin.com/authwall?x"}),
    "paywall": ("paywall", PAYWALL, {}),
    "soft 404": ("soft404", SOFT_404, {}),
    "soft 404: the number": ("soft404", SOFT_404_NUMBER, {}),
    "soft 404: in the heading": ("soft404", SOFT_404_HEADING, {}),
    "soft 404: German": ("soft404", SOFT_404_GERMAN, {}),
    "soft 404: Russian": ("soft404", SOFT_404_RUSSIAN, {}),
    "parked: for sale": ("parked", PARKED_SALE, {}),
    "parked: by its host": ("parked", PARKED_SEDO, {}),
    "parked: courtesy": ("parked", PARKED_GODADDY, {}),
    "parked: nginx": ("parked", PARKED_NGINX, {}),
    "parked: suspended": ("parked", SUSPENDED, {}),
    "shell: React": ("shell", SHELL_REACT, {}),
    "shell: Vue": ("shell", SHELL_VUE, {}),
    "shell: still loading": ("shell", SHELL_LOADING, {}),
    "shell: nothing but a script": ("shell", SHELL_EMPTY, {}),
    "shell: it says so": ("shell", SHELL_TEXT, {}),
    "shell: refresh": ("shell", SHELL_REFRESH, {}),
    "shell: moved by script": ("shell", SHELL_MOVED, {}),
}  # fmt: skip


@pytest.mark.parametrize(("kind", "html", "more"), WALLS.values(), ids=WALLS)
def test_a_wall_is_known(kind: str, html: str, more: dict[str, Any]) -> None:
    found = look(html, **more)
    assert found is not None and found.kind == kind
    assert "\n" not in str(found) and len(str(found)) < 160


def article(title: str, *paragraphs: str, chrome: str = "", scripts: str = "") -> str:
    """Return an article with the usual frame of a site: menus, a login link, a cookie banner, trackers."""
    inner = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    return f"""<!DOCTYPE html><html><head><title>{title}</title><script src="https://cdn.onetrust.com/otSDKStub.js"></script>{scripts}</head><body>
<nav><a href="/">Home</a> <a href="/login">Log in</a> <a href="/subscribe">Subscribe</a></nav>{chrome}<main><h1>{title}</h1>{inner}</main>
<footer><a href="/privacy">Privacy</a> <a href="/cookies">Cookies</a></footer></body></html>"""


LONG = PROSE * 5
COUNTER: dict[str, tuple[str, dict[str, Any]]] = {
    "an article about CAPTCHAs": (article("Are you a robot? A history of the CAPTCHA", "Verify you are human, it says. Press and hold to confirm you are"
        " not a robot, says another. Our systems have detected unusual traffic from your computer network, writes a third.", LONG), {}),
    "a short note about Cloudflare": (article("Just a moment: how Cloudflare checks browsers", "Checking if the site connection is secure takes a moment. Enable JavaScript"
        " and cookies to continue, it says, and a Ray ID stands below it.", LONG), {}),
    "a contact page with a CAPTCHA": (article("Contact us", "Write to us about tides. Please prove that you are human before you send the form.", "Our office on the old quay is open"
        " from nine to five on every working day, and we answer letters within a week. Bring the number of your gauge when you call, and the date of the last calibration, please."
        " Visitors find us behind the chandlery, on the first floor.", scripts='<script src="https://www.google.com/recaptcha/api.js"></script>'), {}),
    "documentation of the status 404": (article("404 Not Found - HTTP | Web Docs", "The HTTP 404 Not Found client error response status code indicates that the server cannot find the"
        " requested resource. Links that lead to a 404 page are often called broken or dead links.", "A 404 status code only indicates that the resource is missing without indicating if"
        " this is temporary or permanent."), {}),
    "a blog about error pages": (article("Page not found: ten error pages that we like", "The page you are looking for may have been moved, they all say.", LONG), {}),
    "a forum with a login link": (article("Calibration drift of the Pell-2", "You must log in to reply to this thread.", PROSE, chrome='<form action="/login"><input name="u">'
        '<input type="password" name="p"><button>Log in</button></form>'), {}),
    "a short post with a login form beside it": (article("New gauge", "We have a new gauge.", chrome='<form><input type="password"><button>Log in</button></form>'), {}),
    "instructions for signing in": (article("Sign in to your account", *[PROSE] * 4, chrome='<form><input type="password"></form>'), {}),
    "a registrar's blog": (article("How to buy a domain that is taken", "Sometimes this domain is for sale and sometimes it is parked. Buy this domain, says the page, and you find"
        " related searches.", LONG), {}),
    "an article about cookie banners": (article("Accept all: the trouble with consent", "Cookies, consent, privacy, partners, advertising: the banner speaks of nothing else. Accept all"
        " cookies or reject them.", LONG, chrome="<div><p>We and our 180 partners use cookies. Accept?</p><button>Accept all</button></div>"), {}),
    "a short page under a cookie banner": (article("Opening hours", "The tide museum is open on Sundays from ten to four and closed in January. Children pay nothing.",
        chrome="<div><p>We use cookies to improve the site.</p><button>Accept all</button></div>"), {}),
    "a cookie policy": (article("Cookie policy", "We use cookies. Cookies are small files. You can accept or reject cookies in the settings of your browser.", "Tracking cookies of our"
        " partners are used for advertising only with your consent.", chrome="<button>Accept all</button>"), {}),
    "the beginning of a paid article": (article("The tides of Velmar", LONG, "Subscribe to continue reading. Already a subscriber? Log in.",
        scripts='<script type="application/ld+json">{"isAccessibleForFree":false}</script>'), {}),
    "a short free article of a paper with a paywall": (article("High water", "High water came at nine on Tuesday.", scripts='<script src="https://cdn.tinypass.com/api/tinypass.min.js"></script>'), {}),
    "a short page with scripts": (article("Hello", "Hello, world.", scripts="<script>window.dataLayer = []</script>"), {}),
    "a page filled by the server": ("<html><head><title>Velmar</title></head><body><noscript>You need to enable JavaScript to run this app.</noscript><div id=root>"
        f"<main><p>{PROSE}</p></main></div><script src=/a.js></script></body></html>", {}),
    "a page on enabling JavaScript": (article("How to enable JavaScript", "If JavaScript is disabled, please enable JavaScript in the settings.", LONG), {}),
    "a tiny page": ("<p>Yes.</p>", {}),
    "a page with no word and no script": ("<img src=a.png>", {}),
    "a page that sets an address": (article("Map", "Choose a station from the list below to see its readings.", scripts='<script>function go(x){location.href = x}</script>'), {}),
    "an answer that refuses in plain words": ("<html><head><title>403 Forbidden</title></head><body><h1>Forbidden</h1></body></html>", {"status": 403}),
    "a page that was moved": (article("Tides", PROSE), {"final": "https://www.example.org/tides"}),
    "a company called Access": (article("Access denied: a novel", PROSE, PROSE), {}),
    "a real 404 says so by its status": (SOFT_404, {"status": 404}),
    "a sign-in page that was asked for by an article's links": (article("Single sign-on", LONG), {"final": "https://www.example.org/auth/overview"}),
    "how to set nginx up": (article("Welcome to nginx! - A guide", LONG), {}),
}  # fmt: skip


@pytest.mark.parametrize(("html", "more"), COUNTER.values(), ids=COUNTER)
def test_a_page_that_only_speaks_of_walls_is_a_page(html: str, more: dict[str, Any]) -> None:
    assert look(html, **more) is None


def test_what_is_no_html_is_no_wall() -> None:
    html = "<title>Just a moment...</title>"
    assert detect(Page(b"%PDF-1.7", URL, media_type="application/pdf"), clean_tree(html)) is None


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [
        "<input ",
        "<div id=",
        "//a.",
        "<div ",
        "<meta ",
        "consent ",
        "the page ",
        "this domain ",
        "javascript is ",
        "404 - ",
    ],
)
def test_a_hostile_page_is_looked_at_quickly(seed: str) -> None:
    """Half a megabyte of prefixes of the patterns: a pattern with catastrophic backtracking would take minutes."""
    look(seed * (500_000 // len(seed)))
    look(f"<title>{seed * 5_000}</title><h1>{seed * 5_000}</h1>")


@pytest.mark.data
def test_no_real_page_is_taken_for_a_wall(rows: Any) -> None:
    """All 311 real pages, and each article shortened to its first words with the scripts and menus of its site."""
    found = []
    for name in ("clean/articles", "clean/readability"):
        for number, row in enumerate(rows(name)):
            wall = look(row["html"])
            if wall:
                found.append(f"{name} {number}: {wall}")
    for row in rows("clean/articles"):
        head = re.search(r"<head.*?</head>", row["html"], re.DOTALL | re.IGNORECASE)
        kept = "".join(
            re.findall(
                r"<(?:script|noscript|form).*?</(?:script|noscript|form)>", row["html"], re.DOTALL | re.IGNORECASE
            )
        )
        for words in (15, 60):
            text = " ".join(row["article_body"].split()[:words])
            wall = look(
                f"<html>{head[0] if head else ''}<body><nav><a href=/in>Log in</a></nav><p>{text}</p>{kept}</body></html>"
            )
            if wall:
                found.append(f"{row['url']}, {words} words: {wall}")
    assert found == []


def test_a_shell_with_data_for_its_scripts_is_read(tmp_path: Path) -> None:
    shell = "<title>K2</title><div id=root></div><script>{}</script>"
    data = shell.format('window.__STATE__={"tide": "nine in the evening"}')
    with Server(
        {"/a": respond(data, "Content-Type: text/html"), "/b": respond(shell, "Content-Type: text/html")}
    ) as server:
        reader = PageReader(
            Settings(home=str(tmp_path), robots=False, browser="never", allow_hosts=(f"127.0.0.1:{server.port}",))
        )
        walls = [asyncio.run(reader.fetch(server.url(path))).wall for path in ("/a", "/b")]
    assert not walls[0] and walls[1].startswith("shell")
