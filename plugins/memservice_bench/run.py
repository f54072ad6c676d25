"""One run: it stores conversations, waits, asks questions and grades answers. It continues where it
was interrupted.

A run has a folder: `run.json` (the options), `results.jsonl` (one line for each answer),
`facts.jsonl` (one line for each conversation: the share of derived facts), `recordings/` (answers
of the model by request) and `instance/` (store and log of the scratch instance).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from memservice_bench import grading
from memservice_bench.client import Answer, BenchError, Client, ask_model
from memservice_bench.corpus import Conversation, Question
from memservice_bench.instance import served
from memservice_bench.judge import RUBRIC_VERSION, Judge
from memservice_bench.model_proxy import Call, ModelProxy, Upstream

RESULTS, FACTS, RUN = "results.jsonl", "facts.jsonl", "run.json"
ABLATIONS: dict[str, dict[str, str]] = {
    "none": {},
    "no-dream": {"DREAM_ENABLED": "false"},
    "search": {"DREAM_ENABLED": "false", "DERIVER_ENABLED": "false", "SUMMARY_ENABLED": "false"},
    "oracle": {"DREAM_ENABLED": "false", "DERIVER_ENABLED": "false", "SUMMARY_ENABLED": "false"},
    "full": {},
}
"""Settings that each ablation changes in the scratch instance. `oracle` stores only the evidence.
`full` asks the model directly, with the whole conversation in the prompt."""


class Options(Struct, frozen=True):
    set_name: str
    model: str = "scripted"
    level: str = "low"
    repeat: int = 1
    ablation: str = "none"
    limit: int | None = None
    """Questions of each conversation."""
    max_tokens: int | None = None
    idle_timeout: float = 300.0


class Result(Struct, frozen=True):
    """One answer and its grades; None where a grade does not apply."""

    conversation: str
    question: str
    category: str
    repetition: int
    answer: str | None
    seconds: float
    calls: int
    tokens: int
    prompt_characters: int
    shown_first: float | None
    """Share of the evidence in the first prompt."""
    shown: float | None
    """Share of the evidence in any prompt."""
    matched: bool | None
    abstained: bool
    correct: bool | None = None
    """The judge's verdict."""
    notice: str | None = None

    @property
    def identity(self) -> tuple[str, str, int]:
        return self.conversation, self.question, self.repetition


Progress = Callable[[str], None]


class Run:
    def __init__(
        self,
        folder: Path,
        options: Options,
        proxy: ModelProxy | None,
        judge: Judge | None,
        progress: Progress,
    ) -> None:
        self.folder = folder
        self.options = options
        self._proxy = proxy
        self._judge = judge
        self._progress = progress

    def carry_out(self, client: Client, corpus: Sequence[Conversation]) -> list[Result]:
        """The results of all questions, including those of an earlier, interrupted run."""
        results = {result.identity: result for result in read_results(self.folder)}
        self._describe()
        with (self.folder / RESULTS).open("a", encoding="utf-8") as lines:
            for number, conversation in enumerate(corpus, 1):
                questions = [*conversation.questions, *conversation.unanswerable][
                    : self.options.limit
                ]
                remaining = [
                    (question, repetition)
                    for question in questions
                    for repetition in range(self.options.repeat)
                    if (conversation.name, question.text, repetition) not in results
                ]
                self._progress(
                    f"conversation {number}/{len(corpus)} {conversation.name}: "
                    f"{len(remaining)} to ask"
                )
                for result in self._answers(client, conversation, remaining):
                    results[result.identity] = result
                    lines.write(json.dumps(asdict(result), ensure_ascii=False) + "\n")
                    lines.flush()
                    self._check_tokens()
        return list(results.values())

    def _describe(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        file = self.folder / RUN
        described = asdict(self.options) | {"memservice": version("memservice")}
        if self._judge is not None:
            described |= {"judge": self._judge.model, "rubric": RUBRIC_VERSION}
        if file.is_file():
            earlier = json.loads(file.read_text("utf-8"))
            changed = sorted(k for k in described if earlier.get(k) != described[k])
            if changed:
                raise BenchError(
                    f"{self.folder} contains a run with other options ({', '.join(changed)}): name "
                    "another folder, or repeat the options in its run.json"
                )
        file.write_text(json.dumps(described, indent=2) + "\n", "utf-8")

    def _check_tokens(self) -> None:
        limit = self.options.max_tokens
        if limit is not None and self._proxy is not None and self._proxy.tokens > limit:
            raise BenchError(
                f"the run used {self._proxy.tokens:,} tokens, more than --max-tokens {limit:,}: "
                "repeat the command with a larger limit to continue"
            )

    def _answers(
        self, client: Client, conversation: Conversation, remaining: Sequence[tuple[Question, int]]
    ) -> Iterator[Result]:
        if not remaining:
            return
        peers = peer_ids(conversation)
        if self.options.ablation not in ("oracle", "full"):
            self._store(client, conversation.name, conversation, peers)
            self._grade_facts(client, conversation, peers)
        for number, (question, repetition) in enumerate(remaining):
            workspace = conversation.name
            if self.options.ablation == "oracle":
                workspace = f"{conversation.name}-oracle-{number}"
                keep = [turn for turn in conversation.turns if turn.key in question.evidence]
                self._store(client, workspace, replace(conversation, turns=tuple(keep)), peers)
            start = self._proxy.count if self._proxy else 0
            asker = peers.get(question.asker) or next(iter(peers.values()))
            if self.options.ablation == "full":
                answer = self._ask_model(conversation, question)
            else:
                answer = client.chat(workspace, asker, question.text, self.options.level)
            calls = self._proxy.since(start) if self._proxy else None
            yield self._grade(conversation, question, repetition, answer, calls)

    def _ask_model(self, conversation: Conversation, question: Question) -> Answer:
        if self._proxy is None:
            raise BenchError("the ablation `full` needs --model-url: it asks the model itself")
        lines = [
            f"{turn.at:%a %Y-%m-%d %H:%M} {turn.speaker}: {turn.text}"
            for turn in conversation.turns
        ]
        prompt = "\n".join([*lines, "", f"Answer from the conversation: {question.text}"])
        return ask_model(self._proxy.base_url, self.options.model, prompt)

    def _store(
        self, client: Client, workspace: str, conversation: Conversation, peers: dict[str, str]
    ) -> None:
        count = client.message_count(workspace)
        if count not in (0, len(conversation.turns)):
            raise BenchError(
                f"the workspace {workspace} contains {count} messages instead of "
                f"{len(conversation.turns)}: "
                "delete it, or use another server"
            )
        if not count:
            client.ingest(workspace, conversation, peers)
        client.wait_until_idle(workspace, self.options.idle_timeout)

    def _grade_facts(
        self, client: Client, conversation: Conversation, peers: dict[str, str]
    ) -> None:
        """Compare the conclusions with the gold facts, once for each conversation."""
        if conversation.name in read_facts(self.folder):
            return
        conclusions = {
            speaker: client.conclusions(conversation.name, peer) for speaker, peer in peers.items()
        }
        recall = grading.fact_recall(conversation.facts, conclusions)
        if recall is not None:
            count = sum(len(texts) for texts in conclusions.values())
            line = {"conversation": conversation.name, "recall": recall, "conclusions": count}
            with (self.folder / FACTS).open("a", encoding="utf-8") as lines:
                lines.write(json.dumps(line) + "\n")

    def _grade(
        self,
        conversation: Conversation,
        question: Question,
        repetition: int,
        answer: Answer,
        calls: Sequence[Call] | None,
    ) -> Result:
        texts = {turn.key: turn.text for turn in conversation.turns}
        return Result(
            conversation=conversation.name,
            question=question.text,
            category=question.category,
            repetition=repetition,
            answer=answer.content,
            seconds=answer.seconds,
            calls=len(calls or ()),
            tokens=sum(call.tokens for call in calls or ()),
            prompt_characters=sum(len(call.prompt) for call in calls or ()),
            shown_first=grading.evidence_shown(question, texts, calls[:1]) if calls else None,
            shown=grading.evidence_shown(question, texts, calls) if calls else None,
            matched=grading.matches(question, answer.content),
            abstained=grading.abstains(answer.content),
            correct=self._judge.verdict(question, answer.content) if self._judge else None,
            notice=answer.notice,
        )


def peer_ids(conversation: Conversation) -> dict[str, str]:
    """Speaker → id of its peer."""
    return {
        speaker: speaker.replace(" ", "_") if speaker.isascii() else f"peer-{number}"
        for number, speaker in enumerate(conversation.speakers)
    }


def read_results(folder: Path) -> list[Result]:
    """The results in a run's folder, in the order of the answers; empty without such a folder."""
    file = folder / RESULTS
    if not file.is_file():
        return []
    return [Result(**json.loads(line)) for line in file.read_text("utf-8").splitlines()]


def read_facts(folder: Path) -> dict[str, tuple[float, int]]:
    """Conversation → the share of its gold facts that conclusions contain, and the number of
    conclusions."""
    file = folder / FACTS
    if not file.is_file():
        return {}
    lines = map(json.loads, file.read_text("utf-8").splitlines())
    return {line["conversation"]: (line["recall"], line["conclusions"]) for line in lines}


@contextmanager
def scratch(
    folder: Path, ablation: str, model: str, upstream: Upstream | None, *, replay_only: bool
) -> Iterator[tuple[str, ModelProxy]]:
    """Start a scratch instance whose model is behind a proxy. Yields its base URL and the proxy."""
    proxy = ModelProxy(upstream, folder / "recordings", replay_only=replay_only)
    settings = {
        "LLM_MODEL": model,
        "LLM_TRANSPORT": "openai",
        "LLM_OPENAI_BASE_URL": proxy.base_url,
        "LLM_OPENAI_API_KEY": "bench",
        # Otherwise the last messages of a conversation wait for a batch to fill.
        "DERIVER_FLUSH_ENABLED": "true",
        **ABLATIONS[ablation],
    }
    try:
        with served(folder / "instance", settings) as url:
            yield url, proxy
    finally:
        proxy.close()


def estimate(corpus: Sequence[Conversation], options: Options) -> dict[str, Any]:
    """The number of messages and questions, and upper bounds of calls and tokens. Calls no
    model."""
    from memservice.domain import tokens

    messages = sum(len(conversation.turns) for conversation in corpus)
    questions = sum(
        len([*conversation.questions, *conversation.unanswerable][: options.limit])
        for conversation in corpus
    )
    token_count = sum(
        tokens.count(turn.text) for conversation in corpus for turn in conversation.turns
    )
    number = questions * options.repeat
    return {
        "conversations": len(corpus),
        "messages": messages,
        "message_tokens": token_count,
        "questions": number,
        "calls_at_most": messages + number * 10,
        "tokens_about": token_count * 3 + number * 8_000,
    }
