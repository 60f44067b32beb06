"""The language of code, as the tools say it that mark up code: in classes and attributes around and in a ``<pre>``."""

from __future__ import annotations

import re
from typing import Any, Final

from .parse import CHILDREN, Element

_NAME: Final = r"([a-z][a-z0-9+#._-]{0,24})"
_WHOLE: Final = re.compile(_NAME, re.I)
_PREFIXED: Final = re.compile(
    rf"(?:^|\s)(?:language|lang|brush:|highlight-source|src-)[-\s]?\s*{_NAME}(?![^\s;])", re.I
)
_AROUND: Final = re.compile(
    rf"(?:^|\s)(?:language-{_NAME}\s+highlighter|highlight-source-{_NAME}|highlight-{_NAME}\s+notranslate)", re.I
)
_ATTRIBUTES: Final = ("data-lang", "data-language", "data-code-language", "data-enlighter-language")
_KNOWN: Final = frozenset(
    """ada asm awk bash basic batch c c# c++ clojure cmake cobol console cpp cs csharp css csv cuda dart diff dockerfile
    elixir elm erlang fortran fsharp go golang graphql groovy haskell html http ini java javascript js json jsx julia
    kotlin latex less lisp lua makefile matlab nginx nim nix objectivec ocaml pascal perl php powershell prolog
    protobuf python python3 py r rb rs ruby rust sass scala scheme scss sh shell shell-session sql swift terraform toml
    ts tsx typescript vb verilog vhdl vim xml yaml yml zig""".split()
)
"""Names that stand in a class or ``lang`` alone."""

_NONE: Final = frozenset(
    """auto code default false markup nohighlight none null plain plaintext pre source text true txt undefined unknown
    ar de en es fr it ja ko nl pl pt ru zh mermaid math geojson topojson stl svg""".split()
)
"""Names that say no language of code; last, those that viewers of Markdown draw instead of showing the code."""

_LEVELS: Final = 3


def language_of(code: Element) -> str:
    """Return the name of the language of a ``<pre>`` or code, in lower case; '' where the page says none."""
    inner = code.find("code", axis=CHILDREN)
    for element in (inner, code) if inner is not None else (code,):
        name = _said_by(element)
        if name:
            return name
    above: Any = code.parent
    for _ in range(_LEVELS):
        if not isinstance(above, Element):
            break
        found = _AROUND.search(above.attr("class") or "")
        name = next(filter(None, found.groups()), "") if found else _attribute(above)
        if _is_language(name):
            return name.lower()
        above = above.parent
    return ""


def _said_by(element: Element) -> str:
    """Return the language that an element's own classes and attributes say."""
    classes = element.attr("class") or ""
    names = [found[1] for found in _PREFIXED.finditer(classes)]
    names.append(_attribute(element))
    names += [name for name in (*classes.split(), element.attr("lang") or "") if name.lower() in _KNOWN]
    return next((name.lower() for name in names if _is_language(name)), "")


def _attribute(element: Element) -> str:
    return next((value for name in _ATTRIBUTES if (value := element.attr(name))), "")


def _is_language(name: str) -> bool:
    return _WHOLE.fullmatch(name) is not None and name.lower() not in _NONE
