"""A seeded generator of conversations between a user and an assistant, with known evidence.

Most messages are long: an answer repeats the words of the question many times, in prose, lists and
code, and holds no fact about the user. Facts stand in single sentences of the user's messages, some
recommendations in the middle of an answer. The same part of a project comes up in several sessions.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from msgspec import Struct, field

from memservice.domain.text.words import MONTHS
from memservice_bench import assistant_scenes as scenes
from memservice_bench import hops
from memservice_bench.assistant_scenes import FactKind, Project
from memservice_bench.corpus import HELD_BACK, Conversation, Question, Turn

USER, ASSISTANT = "user", "assistant"


class _Exchange(Struct):
    """A message of the user and the answer, each with the number of the fact that it states."""

    project: Project
    part: str
    statement: str = ""
    fact: int = 0
    pick: str = ""
    """A recommendation within the answer, and its fact."""
    pick_fact: int = 0


class _Pending(Struct):
    """A question with the numbers of its facts instead of turns."""

    text: str
    facts: list[int]
    category: str
    answer: str = ""


class _Maker(Struct):
    rng: random.Random
    projects: list[Project]
    facts: int = 0
    early: list[_Exchange] = field(default_factory=list)
    anywhere: list[_Exchange] = field(default_factory=list)
    late: list[_Exchange] = field(default_factory=list)
    """Exchanges that must come after the `early` ones."""
    pending: list[_Pending] = field(default_factory=list)
    texts: dict[int, tuple[str, str]] = field(default_factory=dict)
    """Owner of each fact, and what a model may conclude from it."""
    inferences: list[tuple[str, str, str, list[int]]] = field(default_factory=list)
    """Level, owner and text of further conclusions, and the facts that they rest on."""

    def fact(self) -> int:
        self.facts += 1
        return self.facts

    def say(
        self, where: list[_Exchange], project: Project, part: str, text: str, **slots: str
    ) -> int:
        """Add an exchange in which the user states a fact; returns the fact's number."""
        number = self.fact()
        statement = self.fill(text, project, part, **slots)
        where.append(_Exchange(project, part, statement[0].upper() + statement[1:], number))
        self.texts[number] = (USER, f"The user on the {project.name}: {statement}")
        return number

    def ask(self, text: str, facts: list[int], category: str, answer: str = "") -> None:
        self.pending.append(_Pending(text, facts, category, answer))

    def fill(self, text: str, project: Project, part: str, **slots: str) -> str:
        rng = self.rng
        word, word2 = rng.sample(project.words, k=2)
        other = rng.choice([name for name in project.parts if name != part])
        slots = {"w": word, "w2": word2} | slots
        return text.format(
            p=part,
            q=other,
            n=project.name,
            t=rng.choice(project.tools),
            k=rng.randint(3, 60),
            k2=rng.randint(61, 300),
            **slots,
        )

    def values(self, kind: FactKind, project: Project, label: str) -> list[str]:
        """Two distinct values of a kind of fact."""
        if label == "deadline":
            days = self.rng.sample(range(330), k=2)
            return [_day(datetime(2024, 2, 1, tzinfo=UTC) + timedelta(days=day)) for day in days]
        return self.rng.sample(kind.values or project.tools, k=2)


def _day(at: datetime) -> str:
    return f"{at.day} {MONTHS[at.month - 1]}"


def _facts(maker: _Maker, project: Project) -> None:
    """Facts about the parts of a project, a question about most, and questions about several."""
    rng = maker.rng
    stated: dict[str, list[tuple[str, int]]] = {}
    for part in project.parts:
        for label in rng.sample(sorted(scenes.FACT_KINDS), k=3):
            kind = scenes.FACT_KINDS[label]
            value, new = maker.values(kind, project, label)
            question = rng.choice(kind.questions).format(p=part)
            changes = label in scenes.CHANGING and rng.random() < 0.35
            target = maker.early if changes else maker.anywhere
            number = maker.say(target, project, part, rng.choice(kind.statements), v=value)
            stated.setdefault(label, []).append((part, number))
            if changes:
                later = maker.say(maker.late, project, part, kind.correction, v=new)
                maker.ask(question, [later], "update", new)
            else:
                maker.ask(question, [number], "information", value)
    for label, first, text in (
        ("money", "multi-session", "How much did I reserve for the {a} and the {b} together?"),
        ("helper", "multi-session", "Do the same people help me with the {a} and the {b}?"),
        ("deadline", "temporal", "How many days lie between the dates of the {a} and the {b}?"),
        ("duration", "temporal", "Which took me longer, the {a} or the {b}?"),
    ):
        several = stated.get(label, [])
        for (a, one), (b, two) in list(zip(several[::2], several[1::2], strict=False))[:2]:
            maker.ask(text.format(a=a, b=b), [one, two], first)
    for label, text in (
        ("trouble", "In which order did I tell you of my troubles with the {n}?"),
        ("origin", "Summarise where my ideas for the {n} came from."),
        ("where", "Summarise the places where I worked on the {n}."),
    ):
        numbers = [number for _, number in stated.get(label, [])]
        if len(numbers) > 1:
            category = "ordering" if label == "trouble" else "summary"
            maker.ask(text.format(n=project.name), numbers, category)


def _talk(maker: _Maker, project: Project) -> None:
    """Recommendations, standing instructions, preferences and contradictions."""
    rng = maker.rng
    for part, value in zip(
        rng.sample(project.parts, k=4), rng.sample(scenes.PICK_VALUES, k=4), strict=True
    ):
        number = maker.fact()
        pick = rng.choice(scenes.PICKS).format(p=part, v=value)
        maker.anywhere.append(_Exchange(project, part, pick=pick, pick_fact=number))
        maker.ask(rng.choice(scenes.PICK_QUESTIONS).format(p=part), [number], "assistant", value)
    for category, pairs in (
        ("instruction", scenes.INSTRUCTIONS),
        ("preference", scenes.PREFERENCES),
    ):
        for statement, question in rng.sample(pairs, k=2):
            part, subject = rng.sample(project.parts, k=2)
            number = maker.say(maker.anywhere, project, part, statement)
            maker.ask(maker.fill(question, project, subject), [number], category)
    for before, after, question in rng.sample(scenes.CONTRADICTIONS, k=2):
        part = rng.choice(project.parts)
        slots = {"v": rng.choice(project.tools), "w": rng.choice(project.words)}
        one = maker.say(maker.early, project, part, before, **slots)
        two = maker.say(maker.late, project, part, after, **slots)
        maker.ask(maker.fill(question, project, part, **slots), [one, two], "contradiction")


def _hops(maker: _Maker, seed: str, held_back: bool) -> None:
    """Chains and traits of the user, with the conclusions that a model may draw."""
    rng = random.Random(f"hops/{seed}")

    def state(request: str, reply: str, concluded: str) -> int:
        project = rng.choice(maker.projects)
        text = f"By the way, somebody asked me “{request}” – {reply}"
        number = maker.say(maker.anywhere, project, rng.choice(project.parts), text)
        maker.texts[number] = (USER, concluded)
        return number

    def ask(text: str, facts: list[int], category: str, answer: str) -> None:
        maker.ask(hops.in_first_person(text), facts, category, answer)

    subjects = [
        (exchange.fact, USER, exchange.part) for exchange in maker.anywhere if exchange.fact
    ]
    derived = hops.add(rng, hops.THE_USER, 7, held_back, state, ask)
    for level, text, numbers in (*derived, *hops.idle_inferences(rng, subjects)):
        maker.inferences.append((level, USER, text, numbers))


def _code(maker: _Maker, project: Project) -> str:
    word, word2, word3 = (
        word.replace(" ", "_").replace("-", "_") for word in maker.rng.sample(project.words, k=3)
    )
    return (
        f"```python\ndef {word}_{word2}({word3}, limit={maker.rng.randint(2, 99)}):\n"
        f"    {word} = load({word3})\n    if not {word}:\n        return None\n"
        f"    return [{word2} for {word2} in {word} if {word2}.size < limit]\n```"
    )


def _list(maker: _Maker, project: Project, part: str, length: int) -> str:
    lines = (maker.fill(maker.rng.choice(scenes.ADVICE), project, part) for _ in range(length))
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def _request(maker: _Maker, exchange: _Exchange) -> str:
    """The user's message: the fact between an opening, asides and a request."""
    rng, project, part = maker.rng, exchange.project, exchange.part
    sentences = [maker.fill(rng.choice(scenes.OPENINGS), project, part)]
    sentences += [
        maker.fill(rng.choice(scenes.ASIDES), project, rng.choice(project.parts))
        for _ in range(rng.randint(0, 3))
    ]
    if exchange.statement:
        sentences.insert(rng.randint(0, len(sentences)), exchange.statement)
    sentences.append(rng.choice(scenes.REQUESTS))
    text = " ".join(sentences)
    extra = rng.random()
    if extra < 0.12:
        text += "\n\n" + _code(maker, project)
    elif extra < 0.22:
        text += "\n\n" + maker.fill(rng.choice(scenes.QUOTATIONS), project, part)
    elif extra < 0.3:
        text += "\n\nMy list:\n" + "\n".join(f"- {word}" for word in rng.sample(project.words, k=4))
    return text


def _answer(maker: _Maker, exchange: _Exchange) -> str:
    """The assistant's message: headings, prose, lists and code, of 200 to 1,200 tokens."""
    rng, project, part = maker.rng, exchange.project, exchange.part
    blocks = [maker.fill(rng.choice(scenes.INTRODUCTIONS), project, part)]
    for heading in rng.sample(scenes.HEADINGS, k=rng.randint(2, 7)):
        prose = " ".join(
            maker.fill(rng.choice(scenes.ADVICE), project, part) for _ in range(rng.randint(2, 5))
        )
        blocks.append(f"## {heading}\n\n{prose}")
        if rng.random() < 0.5:
            blocks.append(_list(maker, project, part, rng.randint(3, 6)))
        if rng.random() < 0.2:
            blocks.append(_code(maker, project))
    if exchange.pick:
        blocks.insert(rng.randint(1, len(blocks)), exchange.pick)
    blocks.append(maker.fill(rng.choice(scenes.CLOSINGS), project, part))
    return "\n\n".join(blocks)


def _lay_out(maker: _Maker, idle: int) -> tuple[list[Turn], dict[int, int]]:
    """Exchanges in order, in sessions of 10 to 40 turns, days apart; and the turn of each fact."""
    rng = maker.rng
    for _ in range(idle):
        project = rng.choice(maker.projects)
        maker.anywhere.append(_Exchange(project, rng.choice(project.parts)))
    rng.shuffle(maker.anywhere)
    middle = len(maker.anywhere) // 2
    halves = (maker.early + maker.anywhere[:middle], maker.late + maker.anywhere[middle:])
    turns: list[Turn] = []
    turn_of: dict[int, int] = {}
    session, seq, length = 0, 0, 0
    at = datetime(2024, rng.randint(1, 12), rng.randint(1, 28), tzinfo=UTC)
    for half in halves:
        rng.shuffle(half)
        for exchange in half:
            if seq >= length:
                session, seq, length = session + 1, 0, rng.randrange(10, 41, 2)
                at += timedelta(days=rng.randint(1, 9), minutes=rng.randrange(300))
            for speaker, text, fact in (
                (USER, _request(maker, exchange), exchange.fact),
                (ASSISTANT, _answer(maker, exchange), exchange.pick_fact),
            ):
                seq, key = seq + 1, len(turns) + 1
                moment = at + timedelta(minutes=seq)
                turns.append(Turn(key, session, seq, speaker, moment, text))
                if fact:
                    turn_of[fact] = key
    return turns, turn_of


def assistant_conversation(
    seed: int,
    number: int,
    idle: int = 60,
    held_back: bool = False,
    hop_split: str | None = None,
    projects: Sequence[Project] = (),
) -> Conversation:
    """One conversation about two projects; the same for the same arguments. `idle` is the number of
    exchanges without a fact: 60 make about 300 messages, 5,000 about 10,000. `hop_split`: with
    questions over several messages (`hops`) of this split; `projects`: instead of those of the
    split."""
    rng = random.Random(f"assistant/{seed}/{number}")
    projects = projects or (
        scenes.PROJECTS[scenes.HELD_BACK :] if held_back else scenes.PROJECTS[: scenes.HELD_BACK]
    )
    maker = _Maker(rng, rng.sample(projects, k=2))
    for project in maker.projects:
        _facts(maker, project)
        _talk(maker, project)
    if hop_split is not None:
        _hops(maker, f"{seed}/{number}", hop_split == HELD_BACK)
    turns, turn_of = _lay_out(maker, idle)
    questions = tuple(
        Question(p.text, frozenset(turn_of[n] for n in p.facts), p.category, p.answer, USER)
        for p in maker.pending
    )
    return Conversation(
        f"assistant-{number}",
        (USER, ASSISTANT),
        tuple(turns),
        questions,
        kind="assistant",
        inferences=hops.inferences(maker.texts, maker.inferences, turn_of),
    )


def assistant_conversations(
    seed: int = 1, count: int = 6, idle: int = 60, held_back: bool = False
) -> list[Conversation]:
    """`count` conversations. `held_back`: about projects that no other conversation is about."""
    return [assistant_conversation(seed, n, idle, held_back) for n in range(count)]


def assistant_hop_conversations(
    seed: int, count: int, split: str, idle: int = 60
) -> list[Conversation]:
    """`count` conversations with questions over several messages."""
    return [
        assistant_conversation(seed, number, idle, split == HELD_BACK, split)
        for number in range(count)
    ]
