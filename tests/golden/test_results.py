"""Each known result is what the code gives today; see :mod:`tests.golden.results`."""

import pytest
from tests.golden.results import FOLDER, RESULTS


@pytest.mark.parametrize("name", RESULTS)
def test_a_known_result(name: str) -> None:
    assert RESULTS[name]().rstrip("\n") + "\n" == (FOLDER / f"{name}.txt").read_text("utf-8")


def test_every_file_has_its_result() -> None:
    assert {path.stem for path in FOLDER.glob("*.txt")} == set(RESULTS)
