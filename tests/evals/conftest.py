"""Fixtures of the evaluations: a page and a token counter."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.extras import ALL
from tokenizers import Tokenizer, models, pre_tokenizers

from prunus_evals.tokens import TokenizerCounter

MISSING = [name for name in ("selectolax", "markdownify") if find_spec(name) is None]
if MISSING and not ALL:  # the evaluations need the extra `evals`: without it, test-all runs these
    collect_ignore_glob = ["test_*.py"]


def pytest_report_header() -> str:
    return f"evals: not collected, missing {', '.join(MISSING)}" if MISSING and not ALL else "evals: collected"


ROWS = "".join(f"<tr><td>19{n:02d}</td><td>City {n}</td><td>{n},0{n:02d}</td></tr>\n" for n in range(10, 60))
PAGE = f"""<!DOCTYPE html><html><head><title>Games</title><style>p {{color: red}}</style></head>
<body><script>var hidden = "script words";</script><h1>Summer games</h1>
<p>The games took place every year. The <b>host</b> of the first was <i>Springfield</i>.</p>
<p style="display: none">secret words</p>
<h2>Hosts</h2><table class="wikitable"><tr><th>Year</th><th>Host</th><th>Visitors</th></tr>
{ROWS}</table><h2>Mascots</h2><ul><li>Otter of Riverton<li>Badger of Hillside</ul>
</body></html>"""


@pytest.fixture(scope="session")
def page() -> str:
    """A page with prose, a long table and a list."""
    return PAGE


@pytest.fixture(scope="session")
def counter(tmp_path_factory: pytest.TempPathFactory) -> TokenizerCounter:
    """A counter whose tokens are words, single digits and runs of punctuation."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Whitespace(), pre_tokenizers.Digits(individual_digits=True)]
    )
    path: Path = tmp_path_factory.mktemp("tokenizer") / "tokenizer.json"
    tokenizer.save(str(path))
    return TokenizerCounter(path)
