"""`memservice bench`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from memservice_bench.client import BenchError, Client
from memservice_bench.corpus import Conversation
from memservice_bench.judge import RELIABLE, Judge, judge_test
from memservice_bench.model_proxy import ModelProxy, Upstream
from memservice_bench.report import comparison, facts_line, table
from memservice_bench.run import (
    ABLATIONS,
    Options,
    Run,
    estimate,
    read_facts,
    read_results,
    scratch,
)

SETS = ("builtin", "assistant", "locomo:PATH", "longmemeval:PATH", "beam:PATH")
LEVELS = ("minimal", "low", "medium", "high", "max")


@click.group()
def bench() -> None:
    """Measure how well a server answers questions about conversations."""


@bench.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.option(
    "--set", "set_name", default="builtin", show_default=True, help=f"One of {', '.join(SETS)}."
)
@click.option("--count", default=4, show_default=True, help="Conversations of the set.")
@click.option("--seed", default=1, show_default=True, help="Seed of a generated set.")
@click.option("--limit", type=click.IntRange(1), help="Questions of each conversation.")
@click.option(
    "--level", type=click.Choice(LEVELS), default="low", show_default=True, help="Reasoning level."
)
@click.option(
    "--repeat",
    type=click.IntRange(1, 20),
    default=1,
    show_default=True,
    help="Answers to each question.",
)
@click.option(
    "--ablation",
    type=click.Choice(list(ABLATIONS)),
    default="none",
    show_default=True,
    help="Leave a part of the memory out.",
)
@click.option("--base-url", help="A running server of the /v3 API, instead of a scratch instance.")
@click.option("--api-key", envvar="MEMSERVICE_API_KEY", help="Key for --base-url.")
@click.option(
    "--model",
    default="scripted",
    show_default=True,
    help="Model of the scratch instance; `scripted` needs no provider.",
)
@click.option("--model-url", help="Base URL of the model's provider, OpenAI-compatible.")
@click.option("--model-key", envvar="MEMSERVICE_BENCH_MODEL_KEY", help="Key for the provider.")
@click.option("--replay", is_flag=True, help="Use recorded model answers only.")
@click.option("--judge-model", help="Model that grades the answers; not the one that gives them.")
@click.option("--judge-url", help="Base URL of its provider.")
@click.option("--judge-key", envvar="MEMSERVICE_BENCH_JUDGE_KEY", help="Key for its provider.")
@click.option(
    "--max-tokens", type=click.IntRange(1), help="Stop after this number of model tokens."
)
@click.option(
    "--estimate", "only_estimate", is_flag=True, help="Print the size of the run and stop."
)
def run(
    folder: Path,
    set_name: str,
    count: int,
    seed: int,
    limit: int | None,
    level: str,
    repeat: int,
    ablation: str,
    base_url: str | None,
    api_key: str | None,
    model: str,
    model_url: str | None,
    model_key: str | None,
    replay: bool,
    judge_model: str | None,
    judge_url: str | None,
    judge_key: str | None,
    max_tokens: int | None,
    only_estimate: bool,
) -> None:
    """Store conversations, ask their questions and grade the answers.

    FOLDER keeps the run. The same command continues a run that was interrupted.
    """
    if base_url and ablation != "none":
        raise click.UsageError(
            "--ablation changes a scratch instance, so it cannot be used with --base-url"
        )
    options = Options(set_name, model, level, repeat, ablation, limit, max_tokens)
    judge = _judge(judge_model, judge_url, judge_key)
    try:
        corpus = load(set_name, count, seed)
        if only_estimate:
            for name, value in estimate(corpus, options).items():
                click.echo(f"{name:<18}{value:>12,}")
            return
        upstream = Upstream(model_url, model_key) if model_url else None
        if base_url:
            _carry_out(folder, options, base_url, api_key, None, judge, corpus)
        else:
            with scratch(folder, ablation, model, upstream, replay_only=replay) as (url, proxy):
                _carry_out(folder, options, url, None, proxy, judge, corpus)
    except (BenchError, OSError, ValueError) as error:
        raise click.ClickException(str(error)) from error
    click.echo(table(read_results(folder)))
    if facts := read_facts(folder):
        click.echo(facts_line(facts))


def _carry_out(
    folder: Path,
    options: Options,
    url: str,
    api_key: str | None,
    proxy: ModelProxy | None,
    judge: Judge | None,
    corpus: Sequence[Conversation],
) -> None:
    client = Client(url, api_key)
    try:
        Run(folder, options, proxy, judge, lambda line: click.echo(line, err=True)).carry_out(
            client, corpus
        )
    finally:
        client.close()


@bench.command()
@click.argument("first", type=click.Path(exists=True, file_okay=False, path_type=Path))
@click.argument("second", type=click.Path(exists=True, file_okay=False, path_type=Path))
def compare(first: Path, second: Path) -> None:
    """Show the difference of the run in SECOND to that in FIRST, in percentage points."""
    click.echo(comparison(read_results(first), read_results(second)))


@bench.command("judge-test")
@click.option("--judge-model", required=True)
@click.option("--judge-url", required=True, help="Base URL of its provider, OpenAI-compatible.")
@click.option("--judge-key", envvar="MEMSERVICE_BENCH_JUDGE_KEY")
def check_judge(judge_model: str, judge_url: str, judge_key: str | None) -> None:
    """Compare a judge with 60 known verdicts."""
    try:
        agreed = judge_test(Judge(Upstream(judge_url, judge_key), judge_model))
    except BenchError as error:
        raise click.ClickException(str(error)) from error
    verdict = "reliable" if agreed >= RELIABLE else "unreliable: use another judge"
    click.echo(f"{judge_model}: {agreed:.0%} of 60 verdicts, {verdict}")


def _judge(model: str | None, url: str | None, key: str | None) -> Judge | None:
    if bool(model) != bool(url):
        raise click.UsageError("--judge-model and --judge-url must be set together")
    return Judge(Upstream(url, key), model) if model and url else None


def load(set_name: str, count: int, seed: int) -> list[Conversation]:
    """The first `count` conversations of a set. Raises ValueError for an unknown set."""
    from memservice_bench.assistant import assistant_conversations
    from memservice_bench.builtin import conversations
    from memservice_bench.public_sets import load_beam, load_locomo, load_longmemeval

    kind, _, path = set_name.partition(":")
    if kind == "builtin":
        return conversations(seed, count)
    if kind == "assistant":
        return assistant_conversations(seed, count)
    loaders = {"locomo": load_locomo, "longmemeval": load_longmemeval, "beam": load_beam}
    if kind not in loaders or not path:
        raise ValueError(f"--set {set_name}: one of {', '.join(SETS)}")
    return loaders[kind](Path(path))[:count]
