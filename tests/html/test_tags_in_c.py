"""Counting tags in C, as wheels do, finds what counting in Python finds."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import shutil
import subprocess
import sysconfig
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prunus.html import formatting
from prunus.html.formatting import NAMES, count_tags_in_python

SOURCE = Path(formatting.__file__).with_name("_tags.c")
Count = Callable[[Any], tuple[int, int]]


@pytest.fixture(scope="module")
def count(tmp_path_factory: pytest.TempPathFactory) -> Count:
    """Compile the file by itself, and load it."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    headers = Path(sysconfig.get_path("include"))
    if compiler is None or not (headers / "Python.h").exists():
        pytest.skip("needs a C compiler and Python.h")
    built = tmp_path_factory.mktemp("tags") / f"_tags{importlib.machinery.EXTENSION_SUFFIXES[0]}"
    flags = ["-shared", "-fPIC", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{headers}"]
    if sysconfig.get_platform().startswith("macosx"):
        flags += ["-undefined", "dynamic_lookup"]
    subprocess.run([compiler, *flags, str(SOURCE), "-o", str(built)], check=True)
    spec = importlib.util.spec_from_file_location("_tags", built)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    found: Count = module.count_tags
    return found


NAMED = st.sampled_from([*NAMES, *(name.upper() for name in NAMES), "br", "img", "tr", "span", "strikes", "bi", "a"])
PARTS = st.one_of(
    st.sampled_from(
        ["<", "</", ">", " ", "/", "\t", "\x0b", "\x1c", "\xa0", "<b", "<STRIKE", "<\u017f", "=", "\u4e3c"]
    ),
    NAMED,
    NAMED.map("<{}".format),
    NAMED.map("<{}>".format),
    st.text(max_size=3),
)
FILLINGS = st.sampled_from(["", "\xe9", "\u6c34", "\U0001f600", "\ud800"])
"""What makes Python keep a text in one, two or four bytes a letter."""


@given(st.lists(PARTS, max_size=40).map("".join), FILLINGS)
def test_texts_and_bytes_are_counted_alike(count: Count, text: str, filling: str) -> None:
    page = text + filling
    assert count(page) == count_tags_in_python(page)
    encoded = page.encode("utf-8", "surrogatepass")
    assert count(encoded) == count_tags_in_python(encoded)


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_known(count: Count, name: str) -> None:
    for end, known in ((">", 1), (" ", 1), ("/", 1), ("\n", 1), ("x", 0), ("\xa0", 0), ("", 0)):
        for filling in ("", "\u6c34", "\U0001f600"):
            page = f"{filling}<p><{name}{end}"
            assert count(page) == count_tags_in_python(page) == (2, known)


def test_real_pages_are_counted_alike(count: Count, site: dict[str, str]) -> None:
    for page in site.values():
        assert count(page) == count_tags_in_python(page) != (0, 0)


def test_nothing_else_is_a_page(count: Count) -> None:
    with pytest.raises(TypeError, match="a page is str or bytes, not int"):
        count(3)
