from __future__ import annotations

from pathlib import Path

import pytest

import letopis
from letopis.archive import Archive
from letopis.config import Settings, load_settings, settings_table
from letopis.errors import SettingError


def test_defaults_need_no_configuration() -> None:
    assert load_settings() == Settings()


def test_every_setting_has_help_and_a_variable() -> None:
    assert all(row.help and row.variable.startswith("LETOPIS_") for row in settings_table().values())


def test_every_default_survives_being_written_and_read() -> None:
    texts = {row.variable: _text(row.default) for row in settings_table().values() if row.default not in ((), "")}
    assert load_settings(environ=texts) == Settings()


def _text(value: object) -> str:
    return ",".join(value) if isinstance(value, tuple) else str(value)


def test_file_then_environment_then_command_line(tmp_path: Path) -> None:
    file = tmp_path / "letopis.toml"
    file.write_text('[crawl]\ndelay = "500ms"\nmax_per_host = 5\n[store]\npack_bytes = "1MiB"\n')
    settings = load_settings(file, {"LETOPIS_CRAWL_MAX_PER_HOST": "6"}, {"crawl.concurrency": 7})
    assert (settings.crawl.delay, settings.crawl.max_per_host, settings.crawl.concurrency) == (0.5, 6, 7)
    assert settings.store.pack_bytes == 1024 * 1024


def test_archive_variable_names_the_folder() -> None:
    assert load_settings(environ={"LETOPIS_ARCHIVE": "here"}).archive.path == "here"


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("crawl.dealy", "crawl.delay"),
        ("store.pack_size", "store.pack_bytes"),
        ("schedule.intervall", "schedule.interval"),
    ],
)
def test_unknown_key_names_the_nearest_one(name: str, nearest: str) -> None:
    with pytest.raises(SettingError, match=f"did you mean '{nearest}'"):
        load_settings(given={name: 1})


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("store.same", "maybe", "skip, record"),
        ("store.pack_bytes", "12 parsecs", "write a size"),
        ("crawl.delay", "soon", "not a duration"),
        ("crawl.robots", "perhaps", "true or false"),
        ("crawl.concurrency", True, "a number is required"),
        ("crawl.concurrency", 1.5, "an integer is required"),
        ("crawl.delay", -5, "a number from 0"),
        ("crawl.delay", float("nan"), "a number from 0"),
        ("monitor.min_interval", float("inf"), "a number from 0"),
        ("fetch.max_bytes", -1, "a number from 0"),
        ("crawl.delay", [1], "a number is required"),
        ("serve.port", "-1", "a number from 0"),
        ("schedule.alpha", "-2", "a number from -1"),
    ],
)  # fmt: skip
def test_value_that_does_not_fit_says_what_does(name: str, value: object, says: str) -> None:
    with pytest.raises(SettingError, match=says):
        load_settings(given={name: value})


def test_broken_file_is_one_sentence(tmp_path: Path) -> None:
    file = tmp_path / "letopis.toml"
    file.write_text("[crawl\n")
    with pytest.raises(SettingError, match="not valid TOML"):
        load_settings(file)
    with pytest.raises(SettingError, match="cannot read"):
        load_settings(tmp_path / "absent.toml")


def test_key_outside_any_section_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "letopis.toml"
    file.write_text("delay = 3\n")
    with pytest.raises(SettingError, match="no setting 'delay'"):
        load_settings(file)


def test_mistyped_variable_names_the_nearest_one() -> None:
    with pytest.raises(SettingError, match="LETOPIS_CRAWL_DELAY"):
        load_settings(environ={"LETOPIS_CRAWL_DELAI": "1"})


def test_every_setting_is_read_somewhere() -> None:
    """A setting that changes nothing would be a lie."""
    source = Path(letopis.__file__).parent
    texts = [path.read_text() for path in source.rglob("*.py") if path.parent.name != "config"]
    code = "\n".join(texts)
    assert [name for name in settings_table() if f".{name.split('.')[1]}" not in code] == []


def test_what_tests_ask_for_stops_no_command() -> None:
    assert load_settings(None, {"LETOPIS_CORPUS": "folder", "LETOPIS_LONG": "1"}) == Settings()


def test_a_database_of_another_kind_is_not_taken_for_none(tmp_path: Path) -> None:
    for url in ("mysql://user:secret@host/letopis", "postgres:letopis", "host=127.0.0.1"):
        with pytest.raises(SettingError, match="write it as postgresql://") as refused:
            Archive(tmp_path / "archive", settings=load_settings(given={"database.url": url}))
        assert "secret" not in str(refused.value)
    assert not (tmp_path / "archive" / "catalogue.sqlite").exists()
