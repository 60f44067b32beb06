"""Summaries are made of the main content of pages."""

from __future__ import annotations

import asyncio
from pathlib import Path

from tests.index.library import SUBJECTS, builder, page, source

from prunus.index.build import BuildSettings, DocumentSource, MainText
from prunus.index.evidence import packed
from prunus.pages.clean.walk import clean_tree

MENU = "<nav><ul>" + "".join(f"<li><a href=/{name}>Read about {name}</a>" for name in SUBJECTS) + "</ul></nav>"
BANNER = "<div class=cookie-banner><p>We use cookies to improve your visit. You may accept all of them.</p></div>"
FOOTER = "<footer><p>© 2025 The Library. All rights reserved.</p></footer>"


def stored(name: str) -> DocumentSource:
    html = page(name).replace("<h1>", f"{BANNER}{MENU}<h1>").replace("</html>", f"{FOOTER}</html>")
    return DocumentSource(name, tree=clean_tree(html), source=packed(html))


def test_no_menu_and_no_cookie_banner_is_in_a_summary_of_pages(tmp_path: Path) -> None:
    made = builder(tmp_path, BuildSettings(chunk_tokens=40, summary_tokens=60))
    made.add(stored(name) for name in SUBJECTS)
    asyncio.run(made.build())
    view = made.store.view()
    main = MainText(made.store)
    parents = made.store.get([int(id) for id in view.ids[view.leaves :]])
    speaking = [node for node in parents if any(main.of(made.store.get(node.children)))]
    tops = [node.text for node in speaking if node.layer == max(parent.layer for parent in parents)]
    assert tops
    for text in tops:
        assert not any(word in text for word in ("cookies", "Read about", "rights reserved"))


def test_leaves_still_hold_the_whole_page(tmp_path: Path) -> None:
    made = builder(tmp_path)
    made.add([stored("bees")])
    view = made.store.view()
    text = " ".join(node.text for node in made.store.get([int(id) for id in view.ids]))
    assert all(word in text for word in ("cookies", "Read about", "rights reserved", "queen lays eggs"))


def test_a_document_without_a_stored_page_is_summarised_whole(tmp_path: Path) -> None:
    made = builder(tmp_path)
    made.add([source("bees")])
    view = made.store.view()
    leaves = made.store.get([int(id) for id in view.ids])
    assert MainText(made.store).of(leaves) == [leaf.text for leaf in leaves]
