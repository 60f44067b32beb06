"""Abbreviations of a question stand for the labels of rows that they are the initials of."""

from __future__ import annotations

import re

import pytest

import prunus
from prunus.core.text.long_forms import with_long_forms

LABELS = {
    ("What was PP&E in 2019?", "Property, plant and equipment, net"): True,
    ("What was PPNE in 2019?", "Property, plant and equipment"): True,
    ("What was R&D?", "Research and development"): True,
    ("What was R&D?", "Research & development"): True,
    ("What was SG&A?", "Selling, general and administrative"): True,
    ("What was the EPS?", "Earnings per share"): True,
    ("How large is the USA?", "United States of America"): True,
    ("What was the EPS?", "Earnings per share of common stock"): False,
    ("What was PP&E?", "Property and equipment"): False,
    ("What was R&D?", "Retail distribution"): False,
    ("What does IT cost?", "Interest tax"): False,
    ("what was the eps?", "Earnings per share"): False,
}
"""A question and the label of a row, and whether the one has the other's abbreviation."""


@pytest.mark.parametrize(("question", "label"), LABELS)
def test_an_abbreviation_stands_for_the_label_that_the_page_has(question: str, label: str) -> None:
    [short] = re.findall(r"[A-Z&]{2,}|eps", question)
    rows = [f"{label}\t12\t9", "Other income\t3\t2"]
    found = LABELS[question, label]
    assert with_long_forms(question, rows) == (question.replace(short, label.lower()) if found else question)
    said = [*rows, f"{short} is explained here."]
    assert with_long_forms(question, said) == (f"{question} {label.lower()}" if found else question)


def test_the_row_behind_an_abbreviation_is_kept() -> None:
    names = "Products Premiums Services Fees Rents Grants Interest".split()
    names += ["Net investment income", "Research and development", "Total revenues"]
    rows = "".join(f"<tr><td>{name}<td>{n}1,204<td>{n}0,911" for n, name in enumerate(names, 1))
    page = f"<h1>Moor Ltd</h1><h2>Statement of income</h2><table><tr><th>In millions<th>2019<th>2018{rows}</table>"
    kept = prunus.prune(page, "How much was R&D in 2019?", budget=100).text
    assert "Research and development\t91,204" in kept and "Fees" not in kept, kept
    citation = prunus.ask("How much was R&D in 2019?", prunus.Page(content=page)).citations[0]
    assert citation.quote == "Research and development\t91,204\t90,911"
