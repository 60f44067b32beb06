"""`import prunus`: it exports exactly the public names, and it is light and safe to import."""

from __future__ import annotations

import inspect
import json
import os
import pkgutil
import subprocess
import sys
from importlib import import_module

from tests.pump import without_extra

import prunus

PUBLIC = """CLEAN LEAN Answer BadBudget BadInput BadPage BlockRecord Chat CheckedClaim CheckedText Citation Context Documents Filled FilledField Hit Index
    Limits Message Metadata MissingExtra NothingFound Options OutsideFailed Page Passage PrunusError Results Retrieval
    SearchRequest Settings SiteMap SiteRules Span Style UnknownEngine WebOptions aask acheck aclean afill aprune aread asearch ask astream check clean extract fill load_settings map_site metadata prune
    read search sentences""".split()

HEAVY = """torch transformers sentence_transformers onnxruntime fastapi starlette uvicorn flask django aiohttp httpx
    requests bs4 lxml selectolax sklearn scipy pandas huggingface_hub wordllama tokenizers safetensors rich click
    asyncio""".split()


def in_a_fresh_process(code: str) -> str:
    """Run code in a fresh process that writes byte code, whatever this process' settings are."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60, env=environment
    )
    return done.stdout


def test_the_door_lists_exactly_what_is_public() -> None:
    assert sorted(prunus.__all__) == sorted(PUBLIC)
    assert len(set(prunus.__all__)) == len(prunus.__all__)
    assert dir(prunus) == sorted(PUBLIC)
    assert all(hasattr(prunus, name) for name in PUBLIC) and not hasattr(prunus, "nothing")


def test_everything_public_says_what_it_is() -> None:
    for name in PUBLIC:
        value = getattr(prunus, name)
        if callable(value):
            assert inspect.getdoc(value), name


def test_functions_stay_functions_after_every_module_is_imported() -> None:
    for module in pkgutil.walk_packages(prunus.__path__, "prunus."):
        if not module.name.endswith("__main__") and not without_extra(module.name):
            import_module(module.name)
    for name in "aask acheck aclean afill aprune aread asearch ask clean extract fill map_site metadata prune read search sentences astream load_settings".split():
        assert inspect.isfunction(getattr(prunus, name)), name


def test_importing_loads_nothing_heavy() -> None:
    loaded = json.loads(in_a_fresh_process("import prunus, sys, json; print(json.dumps(sorted(sys.modules)))"))
    roots = {name.split(".")[0] for name in loaded}
    assert not roots & set(HEAVY)
    assert not {name for name in loaded if name.startswith(("prunus.cli", "prunus_evals", "prunus_train"))}


def test_pruning_html_loads_no_answer_no_index_and_no_other_format() -> None:
    code = "import prunus, sys, json; prunus.prune('<p>The bridge opened in 1932.</p>', 'When did it open?', 50)"
    loaded = json.loads(in_a_fresh_process(f"{code}; print(json.dumps(sorted(sys.modules)))"))
    rooms = ("prunus.answer", "prunus.index", "prunus.record", "prunus.web.fetch", "prunus.web.door", "prunus.batch")
    assert not [name for name in loaded if name.startswith(rooms)]
    formats = {name.split(".")[3] for name in loaded if name.startswith("prunus.pages.formats.")}
    assert {name for name in formats if not name.startswith("_")} == {"html"}
    table = "from prunus.engines import formats; print('_claims' in vars(formats()))"
    assert in_a_fresh_process(f"{code}; {table}").split()[-1] == "False"
    assert not {"httpx", "asyncio", "pypdfium2", "PIL"} & {name.split(".")[0] for name in loaded}


def test_importing_reads_no_model() -> None:
    code = "import prunus; from prunus.models.embed import static; from prunus.models.tokens import smollm2"
    code += "; print(smollm2._load.cache_info().currsize + static._load.cache_info().currsize)"
    assert in_a_fresh_process(code).strip() == "0"


def test_importing_takes_under_three_tenths_of_a_second() -> None:
    """On a laptop that imports numpy in 0.05 s; a slower machine is measured in the same unit, the import of numpy."""
    code = """
import time
clock = time.thread_time
start = clock(); import numpy
middle = clock(); import prunus
print((clock() - start) / (middle - start) * 0.05)
"""
    taken: list[float] = []
    while len(taken) < 20 and min(taken, default=1.0) >= 0.3:  # a neighbour on the same core slows some of them
        taken.append(float(in_a_fresh_process(code)))
    assert min(taken) < 0.3, f"import prunus takes {min(taken):.2f} s"


def test_importing_configures_no_logging_and_warns_of_nothing() -> None:
    code = "import warnings; warnings.simplefilter('error'); import prunus, logging"
    code += "; print(len(logging.getLogger().handlers))"
    assert in_a_fresh_process(code).strip() == "0"


def test_the_version_is_that_of_the_installed_package() -> None:
    from importlib.metadata import version

    assert prunus.__version__ == version("prunus")
