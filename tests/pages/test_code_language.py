"""The language of code is kept: as a class in HTML, behind the fence in Markdown."""

from __future__ import annotations

from pathlib import Path

import pytest

import prunus

SAID = {
    "as HTML says it": ("<pre><code class='language-python'>x = 1</code></pre>", "python"),
    "Prism, with more classes": ("<pre class='line-numbers language-c++'><code>x</code></pre>", "c++"),
    "GitHub": ("<div class='highlight highlight-source-shell'><pre>ls</pre></div>", "shell"),
    "GitHub's Markdown": ("<pre lang=ruby><code>x</code></pre>", "ruby"),
    "Rouge": ("<div class='language-go highlighter-rouge'><div class=highlight><pre>x</pre></div></div>", "go"),
    "Sphinx": ("<div class='highlight-toml notranslate'><div class=highlight><pre>x</pre></div></div>", "toml"),
    "highlight.js": ("<pre><code class='hljs rust'>x</code></pre>", "rust"),
    "SyntaxHighlighter": ("<pre class='brush: js; gutter: false'>x</pre>", "js"),
    "Hugo": ("<pre><code data-lang=YAML>x: 1</code></pre>", "yaml"),
    "code that CSS keeps": ("<code style='white-space:pre' class=language-lua>x\ny</code>", "lua"),
}
NOT_SAID = {
    "no class": "<pre>x</pre>",
    "plain text": "<pre class=language-plaintext>x</pre>",
    "the language of people": "<pre lang=en>x</pre>",
    "a language that viewers draw": "<pre><code class=language-mermaid>graph TD</code></pre>",
    "another class of that form": "<div class=language-switcher><pre>x</pre></div>",
    "a class that is no name": "<pre class='language-x`y'>x</pre>",
}


@pytest.mark.parametrize("case", SAID)
def test_the_language_of_code_is_kept(case: str) -> None:
    page, language = SAID[case]
    cleaned = prunus.clean(page)
    assert f"<pre class=language-{language}>" in cleaned
    assert prunus.clean(page, format="markdown").startswith(f"```{language}\n")
    assert prunus.clean(cleaned) == cleaned


@pytest.mark.parametrize("case", NOT_SAID)
def test_no_language_is_made_up(case: str) -> None:
    assert prunus.clean(NOT_SAID[case], format="markdown").startswith("```\n")


def test_the_language_of_a_fence_in_markdown_is_kept(tmp_path: Path) -> None:
    note = tmp_path / "note.md"
    note.write_text("```python\nx = 1\n```\n", "utf-8")
    assert prunus.clean(note, format="markdown") == "```python\nx = 1\n```"
