"""`memservice plugins new`: what it refuses."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from memservice.cli import cli
from memservice.domain.errors import ConfigurationError


def invoke(*arguments: str) -> str:
    """The output. An error of memservice is raised, as `main` gets it."""
    result = CliRunner().invoke(cli, ["plugins", "new", *arguments])
    if isinstance(result.exception, ConfigurationError):
        raise result.exception
    return result.output


def test_it_writes_into_a_directory_of_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    output = invoke("embedder", "my-words")
    assert "memservice-my-words/memservice_my_words/__init__.py\n" in output
    assert output.endswith("Next: cd memservice-my-words && pip install -e '.[test]' && pytest\n")
    written = {
        path.relative_to(tmp_path).as_posix() for path in tmp_path.rglob("*") if path.is_file()
    }
    assert written == set(output.splitlines()[:-2])
    source = (tmp_path / "memservice-my-words/memservice_my_words/__init__.py").read_text("utf-8")
    assert "PLUGIN_MY_WORDS__" in source
    assert "class MyWordsEmbedder" in source


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("Words", "'Words' cannot be the name of a plugin: write at most 40 lower-case letters"),
        ("../words", "cannot be the name"),
        ("a--b", "cannot be the name"),
        ("a" * 41, "cannot be the name"),
        ("class", "'class' is a word of Python"),
        ("hashed", "an installed plugin is called 'hashed' already; taken: .*sqlite"),
    ],
)
def test_a_name_that_a_plugin_cannot_have_is_refused(
    tmp_path: Path, name: str, message: str
) -> None:
    with pytest.raises(ConfigurationError, match=message):
        invoke("embedder", name, "--directory", str(tmp_path / "new"))
    assert list(tmp_path.iterdir()) == []


def test_a_directory_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigurationError, match=r"not an empty directory.*--directory"):
        invoke("embedder", "words", "--directory", str(tmp_path))
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_an_unknown_kind_is_answered_with_the_known_ones(tmp_path: Path) -> None:
    output = invoke("embeder", "words", "--directory", str(tmp_path))
    assert "'embeder' is not one of 'storage', 'vector-index', 'language-model'" in output
