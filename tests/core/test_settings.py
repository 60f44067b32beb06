"""Settings: keyword arguments win over the environment, that over ``prunus.toml``, and that over defaults."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from pathlib import Path

import pytest

from prunus import BadInput, Settings, load_settings
from prunus.core.settings import setting_origins


def test_without_any_source_settings_are_the_defaults(folder: Path) -> None:
    assert load_settings(environment={}) == Settings()


def test_each_source_wins_over_the_one_below(folder: Path) -> None:
    (folder / "prunus.toml").write_text('scorer = "bm25"\nbudget = 100\nmax_files = 5\n')
    found = load_settings(
        {"budget": 300, "scorer": None}, environment={"PRUNUS_BUDGET": "200", "PRUNUS_MAX_FILES": "7"}
    )
    assert (found.scorer, found.budget, found.max_files, found.embedder) == ("bm25", 300, 7, "static")


def test_the_process_s_environment_and_folder_are_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PRUNUS_SCORER", "bm25")
    (folder / "prunus.toml").write_text("budget = 99\n")
    assert (load_settings().scorer, load_settings().budget) == ("bm25", 99)


def test_another_folder_s_file_is_read_on_request(folder: Path) -> None:
    (folder / "below").mkdir()
    (folder / "below" / "prunus.toml").write_text("budget = 12\n")
    assert load_settings(environment={}, folder=folder / "below").budget == 12


def test_settings_are_frozen() -> None:
    with pytest.raises(FrozenInstanceError):
        Settings().budget = 5  # type: ignore[misc]


@pytest.mark.parametrize(
    "written", ["no_such_key = 1", "budget = 'many'", "budget = true", "budget = 1.5", "scorer = 3", "= ="]
)
def test_a_wrong_file_is_one_line_that_names_it(folder: Path, written: str) -> None:
    (folder / "prunus.toml").write_text(written)
    with pytest.raises(BadInput) as caught:
        load_settings(environment={})
    assert "\n" not in str(caught.value)
    assert written.split()[0] in str(caught.value) or "prunus.toml" in str(caught.value)


def test_a_file_that_is_no_text_is_refused(folder: Path) -> None:
    (folder / "prunus.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadInput, match=r"prunus\.toml"):
        load_settings(environment={})


@pytest.mark.parametrize(
    ("name", "value"),
    [("PRUNUS_NO_SUCH", "1"), ("PRUNUS_BUDGET", "many"), ("PRUNUS_BUDGET", ""), ("PRUNUS_BUDGET", "1.5"),
     ("PRUNUS_BUDGET", "--5"), ("PRUNUS_BUDGET", "\u00b2")],
)  # fmt: skip
def test_a_wrong_variable_is_one_line_that_names_it(folder: Path, name: str, value: str) -> None:
    with pytest.raises(BadInput) as caught:
        load_settings(environment={name: value})
    assert name.removeprefix("PRUNUS_").lower() in str(caught.value).lower()


@pytest.mark.parametrize("name", ["PRUNUS_DATA", "PRUNUS_ALL_EXTRAS", "PRUNUS_REFERENCE", "PATH", "XPRUNUS_BUDGET"])
def test_variables_that_are_no_settings_are_left_alone(folder: Path, name: str) -> None:
    assert load_settings(environment={name: "x"}) == Settings()


def test_an_unknown_keyword_is_refused(folder: Path) -> None:
    with pytest.raises(BadInput, match="buget"):
        load_settings({"buget": 5}, environment={})


def test_the_doctor_learns_where_each_setting_comes_from(folder: Path) -> None:
    (folder / "prunus.toml").write_text("budget = 100\nscorer = 'bm25'\n")
    found = setting_origins(environment={"PRUNUS_BUDGET": "200"}, folder=folder)
    assert found["budget"] == "PRUNUS_BUDGET"
    assert found["scorer"].endswith("prunus.toml")
    assert found["embedder"] == "default"


def test_a_variable_that_changes_is_seen_at_once(tmp_path: Path) -> None:
    """Settings of the same variables are made once; those of others, or beside a file, anew."""
    before, again, after = (
        load_settings(environment={"PRUNUS_BUDGET": number}, folder=tmp_path) for number in ("77", "77", "78")
    )
    assert before is again and (before.budget, after.budget) == (77, 78)
    (tmp_path / "prunus.toml").write_text("retries = 9\n")
    assert load_settings(environment={"PRUNUS_BUDGET": "77"}, folder=tmp_path).retries == 9
