"""Loaders for public question sets, which users download themselves."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from memservice_bench.corpus import Conversation, Question, Turn

LOCOMO_CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
_DIALOGUE_ID = re.compile(r"D:?\s*(\d+)\s*:\s*0*(\d+)")


def _locomo_conversation(number: int, sample: dict[str, Any]) -> Conversation:
    conversation = sample["conversation"]
    turns: list[Turn] = []
    keys: dict[tuple[int, int], int] = {}
    names = sorted(
        (n for n in conversation if re.fullmatch(r"session_\d+", n)),
        key=lambda n: int(n.split("_")[1]),
    )
    for name in names:
        session = int(name.split("_")[1])
        began = datetime.strptime(
            conversation[f"{name}_date_time"].strip(), "%I:%M %p on %d %B, %Y"
        ).replace(tzinfo=UTC)
        for seq, message in enumerate(conversation[name], 1):
            key = len(turns) + 1
            if position := _DIALOGUE_ID.search(message["dia_id"]):
                keys[int(position[1]), int(position[2])] = key
            text = message["text"]
            if caption := message.get("blip_caption"):
                text = f"{text} [shares {caption}]"
            turns.append(
                Turn(
                    key, session, seq, message["speaker"], began + timedelta(seconds=30 * seq), text
                )
            )
    questions: list[Question] = []
    skipped = 0
    for item in sample["qa"]:
        positions = [
            (int(a), int(b))
            for part in item.get("evidence", ())
            for a, b in _DIALOGUE_ID.findall(str(part))
        ]
        evidence = frozenset(keys[position] for position in positions if position in keys)
        if evidence:
            category = LOCOMO_CATEGORIES.get(item["category"], str(item["category"]))
            answer = str(item.get("answer", ""))
            questions.append(Question(str(item["question"]), evidence, category, answer))
        else:
            skipped += 1
    speakers = (str(conversation["speaker_a"]), str(conversation["speaker_b"]))
    return Conversation(
        str(sample.get("sample_id", number)),
        speakers,
        tuple(turns),
        tuple(questions),
        skipped=skipped,
    )


def load_locomo(path: Path) -> list[Conversation]:
    """Load the JSON file of LoCoMo: a list of samples, each with `conversation` and `qa`."""
    return [
        _locomo_conversation(number, sample)
        for number, sample in enumerate(json.loads(path.read_text("utf-8")), 1)
    ]


_INDEX_TAIL = re.compile(r"\s*->->\s*[\d,\s]+$")


def _numbers(value: Any) -> set[int]:
    """All message ids in nested lists and mappings."""
    if isinstance(value, dict):
        return set().union(*map(_numbers, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(_numbers, value)) if value else set()
    return {int(value)} if str(value).isdigit() else set()


def _beam_conversation(folder: Path) -> Conversation:
    batches = json.loads((folder / "chat.json").read_text("utf-8"))
    turns: list[Turn] = []
    keys: dict[int, int] = {}
    at = datetime(2024, 1, 1, tzinfo=UTC)
    for session, batch in enumerate(batches, 1):
        at += timedelta(days=1)
        seq = 0
        for exchange in batch["turns"]:
            for message in exchange:
                if anchor := message.get("time_anchor"):
                    try:
                        at = datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC)
                    except ValueError as error:
                        raise ValueError(
                            f"{folder.name}: message {message['id']} has an unknown form of "
                            f"date: {anchor!r}"
                        ) from error
                seq += 1
                key = len(turns) + 1
                keys[int(message["id"])] = key
                text = _INDEX_TAIL.sub("", message["content"])
                turns.append(
                    Turn(key, session, seq, message["role"], at + timedelta(seconds=30 * seq), text)
                )
    questions: list[Question] = []
    skipped = 0
    probing = json.loads(
        (folder / "probing_questions" / "probing_questions.json").read_text("utf-8")
    )
    for category, items in probing.items():
        for item in items:
            evidence = frozenset(
                keys[n] for n in _numbers(item.get("source_chat_ids")) if n in keys
            )
            if evidence:
                answer = str(item.get("answer") or item.get("ideal_response") or "")
                questions.append(
                    Question(item["question"], evidence, category.replace("_", "-"), answer)
                )
            else:
                skipped += 1
    return Conversation(
        folder.name,
        ("user", "assistant"),
        tuple(turns),
        tuple(questions),
        kind="assistant",
        skipped=skipped,
    )


def load_beam(path: Path) -> list[Conversation]:
    """Load the folders of BEAM, for chats of one size up to 1M: `path/<number>/chat.json` and
    `path/<number>/probing_questions/probing_questions.json`."""
    folders = [folder for folder in path.iterdir() if (folder / "chat.json").is_file()]
    if not folders:
        raise ValueError(f"{path}: no folder with a chat.json in it")
    return [
        _beam_conversation(folder)
        for folder in sorted(folders, key=lambda folder: (len(folder.name), folder.name))
    ]


def _longmemeval_conversation(entry: dict[str, Any]) -> Conversation:
    turns: list[Turn] = []
    evidence: set[int] = set()
    answers = set(entry.get("answer_session_ids", ()))
    sessions = zip(
        entry["haystack_session_ids"],
        entry["haystack_dates"],
        entry["haystack_sessions"],
        strict=True,
    )
    for session, (name, date, conversation) in enumerate(sessions, 1):
        began = datetime.strptime(re.sub(r" \(\w+\)", "", date), "%Y/%m/%d %H:%M").replace(
            tzinfo=UTC
        )
        for seq, message in enumerate(conversation, 1):
            key = len(turns) + 1
            at = began + timedelta(seconds=30 * seq)
            turns.append(Turn(key, session, seq, message["role"], at, message["content"]))
            # Turns are marked in newer files; older ones mark the session only.
            if message.get("has_answer", "has_answer" not in message and name in answers):
                evidence.add(key)
    abstain = str(entry["question_id"]).endswith("_abs")
    question = Question(
        entry["question"],
        frozenset() if abstain else frozenset(evidence),
        "unknown" if abstain else entry["question_type"],
        "" if abstain else str(entry["answer"]),
        "user",
    )
    has_evidence = bool(question.evidence)
    return Conversation(
        str(entry["question_id"]),
        ("user", "assistant"),
        tuple(turns),
        (question,) if has_evidence else (),
        kind="assistant",
        unanswerable=(question,) if abstain else (),
        skipped=int(not has_evidence and not abstain),
    )


def load_longmemeval(path: Path) -> list[Conversation]:
    """Load a JSON file of LongMemEval: a list of questions, each with its own history."""
    return [_longmemeval_conversation(entry) for entry in json.loads(path.read_text("utf-8"))]
