"""A seeded generator of conversations with known evidence, of any size.

It is difficult for a search by words: most answers share no word with the question, the turns
around them do, other people say similar things about themselves, and idle remarks contain the
question's words without a fact. It is a yardstick for regressions and for comparing backends; no
constant of the product is tuned on it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct, field

from memservice.domain.text.words import MONTHS
from memservice_bench import hops
from memservice_bench.corpus import HELD_BACK, Conversation, Fact, Question, Turn
from memservice_bench.scenes import (
    CONTRADICTIONS,
    ECHOES,
    ENGLISH,
    MENTIONS,
    REACTIONS,
    SMALL_TALK,
    UPDATES,
    Scene,
)
from memservice_bench.scenes_abroad import ABROAD

NAMES = (
    *("Mirela", "Tobias", "Anouk", "Desmond", "Ilka", "Ruben", "Saoirse", "Pavel"),
    *("Greta", "Idris", "Noemi", "Anselm", "Tamsin", "Yusuf", "Leonie", "Casper"),
)

Block = list[tuple[str, str, int | None]]
"""Lines of one exchange: speaker, text, and the number of the fact that the line states, if any."""


class _Pending(Struct):
    """A question with the numbers of its facts instead of turns."""

    text: str
    facts: list[int]
    category: str
    owner: str
    answer: str = ""


class _Maker(Struct):
    """Collects exchanges and questions of one conversation."""

    rng: random.Random
    speakers: Sequence[str]
    mentions: Sequence[str]
    facts: int = 0
    early: list[Block] = field(default_factory=list)
    """Exchanges that must come before the `late` ones."""
    anywhere: list[Block] = field(default_factory=list)
    late: list[Block] = field(default_factory=list)
    pending: list[_Pending] = field(default_factory=list)
    values: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Owner and value of each fact, by its number."""
    texts: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Owner of each fact, and what a model may conclude from it."""
    inferences: list[tuple[str, str, str, list[int]]] = field(default_factory=list)
    """Level, owner and text of further conclusions, and the facts that they rest on."""

    def fact(self) -> int:
        self.facts += 1
        return self.facts

    def other(self, speaker: str) -> str:
        return self.rng.choice([name for name in self.speakers if name != speaker])

    def statement(self, owner: str, ask: str, answer: str) -> tuple[Block, int]:
        """An exchange in which `owner` states one fact."""
        partner, number = self.other(owner), self.fact()
        block: Block = [
            (
                partner,
                ask if self.rng.random() < 0.6 else f"{owner}, {ask[0].lower()}{ask[1:]}",
                None,
            ),
            (owner, answer, number),
        ]
        return block, number

    def scene(self, scene: Scene, owner: str, value: str, english: bool) -> int:
        """One scene of `owner`'s; returns the number of its fact."""
        rng = self.rng
        answer = rng.choice(scene.answers).format(v=value)
        concluded = f"{owner} on the {scene.label}: {answer}"
        if rng.random() < 0.6:
            answer = (
                rng.choice(ECHOES).format(l=scene.label) if english else f"{scene.label}? "
            ) + answer
        block, number = self.statement(owner, rng.choice(scene.asks), answer)
        partner = block[0][0]
        if english and rng.random() < 0.7:
            block.append((partner, rng.choice(REACTIONS).format(p=owner), None))
        if scene.short and rng.random() < 0.6:
            follow, replies, question = scene.short
            detail, reply = self.fact(), rng.choice(replies)
            block += [(partner, follow, None), (owner, reply, detail)]
            self.pending.append(
                _Pending(question.format(n=owner), [detail], "short-answer", owner, reply)
            )
            self.texts[detail] = (owner, f"{owner} on the {scene.label}, asked “{follow}”: {reply}")
        self.anywhere.append(block)
        self.values[number] = (owner, value)
        self.texts[number] = (owner, concluded)
        return number

    def mention(self, label: str) -> None:
        speaker = self.rng.choice(self.speakers)
        partner = self.other(speaker)
        self.anywhere.append(
            [(speaker, self.rng.choice(self.mentions).format(l=label, p=partner), None)]
        )


def _scenes(maker: _Maker, scenes: Sequence[Scene], english: bool) -> list[tuple[Scene, str, int]]:
    """Assign each scene to one speaker, often to a second one with another value, and ask about
    both."""
    rng = maker.rng
    statements: list[tuple[Scene, str, int]] = []
    for scene in scenes:
        owners = rng.sample(list(maker.speakers), k=2 if rng.random() < 0.6 else 1)
        for owner, value in zip(owners, rng.sample(scene.values, k=len(owners)), strict=True):
            number = maker.scene(scene, owner, value, english)
            statements.append((scene, owner, number))
            kinds = [("near", scene.near)] * 3 + [("own", scene.own)] + [("far", scene.far)]
            kind, texts = rng.choice([pair for pair in kinds if pair[1]])
            category = kind if english else "abroad"
            maker.pending.append(
                _Pending(rng.choice(texts).format(n=owner), [number], category, owner, value)
            )
        for _ in range(rng.randint(0, 3)):
            maker.mention(scene.label)
        if english and len(owners) == 1 and rng.random() < 0.4:
            maker.pending.append(
                _Pending(
                    f"Who told of the {scene.label}, and what was it?",
                    [statements[-1][2]],
                    "unnamed",
                    "",
                    f"{statements[-1][1]}\n{maker.values[statements[-1][2]][1]}",
                )
            )
    return statements


def _changes(maker: _Maker) -> None:
    """Facts that are replaced later, and statements that cannot both be true."""
    rng = maker.rng
    for label, ask, first, later, values, question in rng.sample(UPDATES, k=3):
        owner = rng.choice(maker.speakers)
        old, new = rng.sample(values.split("|"), k=2)
        before, superseded = maker.statement(owner, ask, first.format(v=old))
        after, number = maker.statement(owner, ask, later.format(v=new))
        maker.values |= {superseded: (owner, old), number: (owner, new)}
        for fact, reply in ((superseded, first.format(v=old)), (number, later.format(v=new))):
            maker.texts[fact] = (owner, f"{owner} on the {label}: {reply}")
        maker.early.append(before)
        maker.late.append(after)
        maker.pending.append(_Pending(question.format(n=owner), [number], "update", owner, new))
    for label, ask, yes, no, question in rng.sample(CONTRADICTIONS, k=2):
        owner = rng.choice(maker.speakers)
        before, one = maker.statement(owner, ask, yes)
        after, two = maker.statement(owner, ask, no)
        maker.texts[one] = (owner, f"{owner} on {label}: {yes}")
        maker.texts[two] = (owner, f"{owner} on {label}: {no}")
        maker.early.append(before)
        maker.late.append(after)
        maker.pending.append(_Pending(question.format(n=owner), [one, two], "contradiction", owner))


def _multi_hop(maker: _Maker, statements: Sequence[tuple[Scene, str, int]]) -> None:
    """Questions over two scenes of one speaker."""
    for owner in maker.speakers:
        own = [(scene, number) for scene, speaker, number in statements if speaker == owner]
        maker.rng.shuffle(own)
        for (scene, number), (other, another) in list(zip(own[::2], own[1::2], strict=False))[:3]:
            text = f"What do {owner}'s {scene.label} and {owner}'s {other.label} have in common?"
            maker.pending.append(_Pending(text, [number, another], "multi-hop", owner))


def _hops(
    maker: _Maker,
    statements: Sequence[tuple[Scene, str, int]],
    seed: str,
    held_back: bool,
) -> None:
    """Chains and traits of each speaker, with the conclusions that a model may draw."""
    rng = random.Random(f"hops/{seed}")
    for owner in maker.speakers:

        def state(request: str, reply: str, concluded: str, owner: str = owner) -> int:
            block, number = maker.statement(owner, request, reply)
            maker.anywhere.append(block)
            maker.texts[number] = (owner, concluded)
            return number

        def ask(
            text: str, facts: list[int], category: str, answer: str, owner: str = owner
        ) -> None:
            maker.pending.append(_Pending(text, facts, category, owner, answer))

        for level, text, numbers in hops.add(rng, owner, 3, held_back, state, ask):
            maker.inferences.append((level, owner, text, numbers))
    subjects = [(number, owner, scene.label) for scene, owner, number in statements]
    for level, text, numbers in hops.idle_inferences(rng, subjects):
        maker.inferences.append((level, maker.texts[numbers[0]][0], text, numbers))


def _lay_out(
    maker: _Maker, talk: Sequence[tuple[str, str]], idle: int, began: datetime
) -> tuple[list[Turn], dict[int, Turn]]:
    """Exchanges in order, between small talk, in sessions of 14 to 24 turns, days apart. Returns
    the turns, and the turn of each fact."""
    rng = maker.rng
    middle = len(maker.anywhere) // 2
    rng.shuffle(maker.anywhere)
    halves = [maker.early + maker.anywhere[:middle], maker.late + maker.anywhere[middle:]]
    blocks: list[Block] = []
    for half in halves:
        rng.shuffle(half)
        blocks += half
    for _ in range(idle):
        one = rng.choice(maker.speakers)
        two = maker.other(one)
        opener, reply = rng.choice(talk)
        blocks.insert(
            rng.randrange(len(blocks) + 1),
            [(one, opener.format(p=two), None), (two, reply.format(p=one), None)],
        )
    turns: list[Turn] = []
    turn_of: dict[int, Turn] = {}
    session, seq, length, at = 0, 0, 0, began
    for block in blocks:
        if seq >= length:
            session, seq, length = session + 1, 0, rng.randint(14, 24)
            at = (at + timedelta(days=rng.randint(2, 12))).replace(
                hour=rng.randint(8, 21), minute=rng.randrange(60)
            )
        for speaker, text, number in block:
            seq += 1
            turn = Turn(
                len(turns) + 1, session, seq, speaker, at + timedelta(seconds=40 * seq), text
            )
            turns.append(turn)
            if number is not None:
                turn_of[number] = turn
    return turns, turn_of


def _dated(
    maker: _Maker, statements: Sequence[tuple[Scene, str, int]], turn_of: dict[int, Turn]
) -> list[Question]:
    """Questions that name a day. All facts that the speaker stated on that day are evidence."""
    questions: list[Question] = []
    for _, owner, number in maker.rng.sample(list(statements), k=min(6, len(statements))):
        day = turn_of[number].at
        evidence = frozenset(
            turn.key
            for turn in turn_of.values()
            if turn.speaker == owner and turn.at.date() == day.date()
        )
        questions.append(
            Question(
                f"What did {owner} have to tell on {day.day} {MONTHS[day.month - 1]} {day.year}?",
                evidence,
                "dated",
            )
        )
    return questions


def conversation(
    seed: int,
    number: int,
    language: str = "en",
    idle: int = 120,
    hop_split: str | None = None,
    about: Sequence[Scene] = ENGLISH,
) -> Conversation:
    """One conversation; the same for the same arguments. `idle` is the number of exchanges without
    a fact; `hop_split`: with questions over several messages (`hops`) of this split; `about`: the
    scenes of an English one."""
    rng = random.Random(f"{seed}/{number}/{language}")
    english = language == "en"
    scenes, talk, mentions, names = (
        (about, SMALL_TALK, MENTIONS, NAMES) if english else ABROAD[language]
    )
    speakers = rng.sample(list(names), k=rng.choice((2, 2, 3, 4)) if english else 2)
    maker = _Maker(rng, speakers, mentions)
    statements = _scenes(maker, scenes, english)
    if english:
        _changes(maker)
        _multi_hop(maker, statements)
        if hop_split is not None:
            _hops(maker, statements, f"{seed}/{number}", hop_split == HELD_BACK)
    turns, turn_of = _lay_out(
        maker,
        talk,
        idle if english else idle // 3,
        datetime(2023, rng.randint(1, 12), rng.randint(1, 28), tzinfo=UTC),
    )
    questions = [
        Question(p.text, frozenset(turn_of[n].key for n in p.facts), p.category, p.answer, p.owner)
        for p in maker.pending
    ]
    if english:
        questions += _dated(maker, statements, turn_of)
    return Conversation(
        f"{language}-{number}",
        tuple(speakers),
        tuple(turns),
        tuple(questions),
        language,
        unanswerable=_unanswerable(speakers, scenes, statements, f"{seed}/{number}/{language}"),
        facts=tuple(
            Fact(turn_of[number].key, owner, value)
            for number, (owner, value) in sorted(maker.values.items())
        ),
        inferences=hops.inferences(
            maker.texts, maker.inferences, {number: turn.key for number, turn in turn_of.items()}
        ),
    )


def _unanswerable(
    speakers: Sequence[str],
    scenes: Sequence[Scene],
    statements: Sequence[tuple[Scene, str, int]],
    seed: str,
) -> tuple[Question, ...]:
    """Up to ten questions about speakers who stated no such fact."""
    stated = {(scene.label, owner) for scene, owner, _ in statements}
    open_ = [
        Question(scene.near[0].format(n=speaker), frozenset(), "unknown", "", speaker)
        for scene in scenes
        for speaker in speakers
        if (scene.label, speaker) not in stated
    ]
    # A generator of its own, so that the conversation stays the same.
    return tuple(random.Random(f"unanswerable/{seed}").sample(open_, k=min(10, len(open_))))


def hop_conversations(seed: int, count: int, split: str, idle: int = 120) -> list[Conversation]:
    """`count` conversations in English with questions over several messages."""
    return [conversation(seed, number, "en", idle, split) for number in range(count)]


def conversations(seed: int = 1, count: int = 12, idle: int = 120) -> list[Conversation]:
    """`count` conversations: every fourth one in German, Spanish, Japanese or Chinese in turn,
    the others in English."""
    abroad = sorted(ABROAD)
    return [
        conversation(seed, n, abroad[n // 4 % len(abroad)] if n % 4 == 3 else "en", idle)
        for n in range(count)
    ]
