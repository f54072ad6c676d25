"""Loaders for public question sets that users fetch themselves; none of them is part of this
repository."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from benchmarks.corpus import Conversation, Question, Turn

LOCOMO_CATEGORIES = {
    1: "multi-hop",
    2: "temporal",
    3: "open-domain",
    4: "single-hop",
    5: "adversarial",
}
_DIALOGUE_ID = re.compile(r"D:?\s*(\d+)\s*:\s*0*(\d+)")


def _locomo_conversation(number: int, sample: dict[str, Any]) -> Conversation:
    talk = sample["conversation"]
    turns: list[Turn] = []
    keys: dict[tuple[int, int], int] = {}
    names = sorted(
        (n for n in talk if re.fullmatch(r"session_\d+", n)), key=lambda n: int(n.split("_")[1])
    )
    for name in names:
        session = int(name.split("_")[1])
        began = datetime.strptime(
            talk[f"{name}_date_time"].strip(), "%I:%M %p on %d %B, %Y"
        ).replace(tzinfo=UTC)
        for seq, said in enumerate(talk[name], 1):
            key = len(turns) + 1
            if place := _DIALOGUE_ID.search(said["dia_id"]):
                keys[int(place[1]), int(place[2])] = key
            text = said["text"]
            if caption := said.get("blip_caption"):
                text = f"{text} [shares {caption}]"
            turns.append(
                Turn(key, session, seq, said["speaker"], began + timedelta(seconds=30 * seq), text)
            )
    questions: list[Question] = []
    skipped = 0
    for asked in sample["qa"]:
        places = [
            (int(a), int(b))
            for part in asked.get("evidence", ())
            for a, b in _DIALOGUE_ID.findall(str(part))
        ]
        evidence = frozenset(keys[place] for place in places if place in keys)
        if evidence:
            category = LOCOMO_CATEGORIES.get(asked["category"], str(asked["category"]))
            questions.append(Question(str(asked["question"]), evidence, category))
        else:
            skipped += 1
    speakers = (str(talk["speaker_a"]), str(talk["speaker_b"]))
    return Conversation(
        str(sample.get("sample_id", number)),
        speakers,
        tuple(turns),
        tuple(questions),
        skipped=skipped,
    )


def load_locomo(path: Path) -> list[Conversation]:
    """LoCoMo's json: a list of samples, each with `conversation` and `qa`."""
    return [
        _locomo_conversation(number, sample)
        for number, sample in enumerate(json.loads(path.read_text("utf-8")), 1)
    ]


_INDEX_TAIL = re.compile(r"\s*->->\s*[\d,\s]+$")


def _numbers(value: Any) -> set[int]:
    """All message ids in a nest of lists and mappings."""
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
            for said in exchange:
                if anchor := said.get("time_anchor"):
                    try:
                        at = datetime.strptime(anchor, "%B-%d-%Y").replace(tzinfo=UTC)
                    except ValueError as error:
                        raise ValueError(
                            f"{folder.name}: message {said['id']} has an unknown form of "
                            f"date: {anchor!r}"
                        ) from error
                seq += 1
                key = len(turns) + 1
                keys[int(said["id"])] = key
                text = _INDEX_TAIL.sub("", said["content"])
                turns.append(
                    Turn(key, session, seq, said["role"], at + timedelta(seconds=30 * seq), text)
                )
    questions: list[Question] = []
    skipped = 0
    probing = json.loads(
        (folder / "probing_questions" / "probing_questions.json").read_text("utf-8")
    )
    for category, asked in probing.items():
        for one in asked:
            evidence = frozenset(keys[n] for n in _numbers(one.get("source_chat_ids")) if n in keys)
            if evidence:
                questions.append(Question(one["question"], evidence, category.replace("_", "-")))
            else:
                skipped += 1
    return Conversation(
        folder.name, ("user", "assistant"), tuple(turns), tuple(questions), skipped=skipped
    )


def load_beam(path: Path) -> list[Conversation]:
    """BEAM's folders: `path/<number>/chat.json` beside `probing_questions/probing_questions.json`,
    for chats of one size up to 1M."""
    folders = [folder for folder in path.iterdir() if (folder / "chat.json").is_file()]
    if not folders:
        raise ValueError(f"{path}: no folder with a chat.json in it")
    return [
        _beam_conversation(folder)
        for folder in sorted(folders, key=lambda folder: (len(folder.name), folder.name))
    ]
