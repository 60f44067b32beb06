"""Declarative shadow roots are shown in their hosts, with their slots."""

from __future__ import annotations

import pytest

from prunus.pages.clean.walk import clean_tree

OPEN = "<template shadowrootmode=open>"


@pytest.mark.parametrize(
    ("page", "shown"),
    [
        (f"<x-y>{OPEN}<p>High water</p></template></x-y>", "High water"),
        (f"<x-y>{OPEN}<h2><slot name=t>Untitled</slot></h2><slot></slot></template>at nine<b slot=t>Tide</b></x-y>", "Tide\nat nine"),
        (f"<x-y>{OPEN}<h2><slot name=t>Untitled</slot></h2></template>not shown<i slot=u>nor this</i></x-y>", "Untitled"),
        (f"<x-y>{OPEN}<x-z>{OPEN}<p>in <slot></slot></p></template><slot></slot></x-z></template>two</x-y>", "in two"),
        (f"<x-y>{OPEN}<slot></slot></template><x-z>{OPEN}<p>one <slot></slot></p></template>two</x-z></x-y>", "one two"),
        (f"<ul>{''.join(f'<li><x-y>{OPEN}<b>{n}</b></template></x-y></li>' for n in range(3))}</ul>", "0\n1\n2"),
        ("<x-y><template><p>no shadow</p></template>light</x-y>", "light"),
        (f"<li>{OPEN}no host</template>light</li>", "light"),
        ("<p><template shadowrootmode=CLOSED>shut <slot></slot></template>light</p>", "shut light"),
        (f"<x-y>{OPEN}<p>first</template><template shadowrootmode=closed>second</template></x-y>", "first"),
        ("<x-y><template shadowrootmode=none>no root</template>light</x-y>", "light"),
        (f"<template><x-y>{OPEN}inert</template></x-y></template>light", "light"),
    ],
)  # fmt: skip
def test_a_shadow_root_is_shown_with_its_slots(page: str, shown: str) -> None:
    for markup in (page, page.encode()):
        assert clean_tree(markup).canonical == shown


@pytest.mark.parametrize(
    "inside",
    [
        "<p hidden>secret</p>",
        "<style>.a{display:none}</style><p class=a>secret</p>",
        "<div><style>p{visibility:hidden}</style><p>secret</p></div>",
        "<style>::slotted(i){display:none}</style><slot></slot>",
    ],
)
def test_what_a_shadow_root_hides_is_hidden_there_alone(inside: str) -> None:
    page = f"<p class=a>Tide</p><x-y>{OPEN}{inside}<b>nine</b></template><i>secret</i></x-y>"
    assert clean_tree(page).canonical == "Tide\nnine"
    assert clean_tree(f"Tide<x-y>{OPEN}<style>:host{{display:none}}</style>secret</template></x-y>").canonical == "Tide"


def test_deep_and_many_shadow_roots_take_linear_time() -> None:
    many = "<div>" + f"<x-y>{OPEN}<p>a<slot></slot></template>b</x-y>" * 5_000
    deep = f"<x-y>{OPEN}<p>" * 200
    assert clean_tree(many).canonical.count("ab") == 5_000
    clean_tree(deep)
