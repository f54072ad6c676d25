"""What is drawn from a talk without a model: whose statements they are, what replaces what, and
what stands on a card."""

from __future__ import annotations

from support.clients.published_client.harness import Caller, contents, scenario

HOME, NEW_HOME = "I live in Leeds.", "I moved to York last weekend."
AGE = "How old are you? – 34"
OF_BEN, OF_ADA = "Ben is allergic to nuts.", "Ada lives in Rome."
CASTLE = "If I were rich I'd buy a castle in Wales."
BRIEF = "Be brief in your answers, please."
DELIVERY = "Ship everything to my office, 12 Mill Lane."


@scenario
async def statements_keep_their_speaker_and_the_newest_value_comes_first(c: Caller) -> None:
    honcho = c.honcho()
    ada, ben = await c(honcho).peer("ada"), await c(honcho).peer("ben")
    session = await c(honcho).session("talk", peers=[ada, ben])
    talk = [(ada, "Hi there!"), (ada, HOME), (ben, "How old are you?"), (ada, "34")]
    talk += [(ada, OF_BEN), (ben, OF_ADA), (ada, CASTLE), (ada, BRIEF), (ada, DELIVERY)]
    talk += [(ada, "What time is it?"), (ada, "lol ok thanks"), (ada, "Write a story about Rome.")]
    await c.talk(session, *talk)
    await c.settled(honcho)
    assert contents(await c.every(await c(ben.conclusions).list())) == [OF_ADA]
    assert contents(await c.every(await c(ada.conclusions).list(reverse=True))) == [
        HOME,
        AGE,
        OF_BEN,
        CASTLE,
        BRIEF,
        DELIVERY,
    ]
    assert sorted(await c(ada).get_card()) == [
        f"ATTRIBUTE: {HOME}",
        f"INSTRUCTION: {BRIEF}",
        f"INSTRUCTION: {DELIVERY}",
    ]

    await c.talk(session, (ada, NEW_HOME))
    await c.settled(honcho)
    current = contents(await c.every(await c(ada.conclusions).list()))
    assert NEW_HOME in current
    assert HOME not in current
    assert f"ATTRIBUTE: {NEW_HOME}" in await c(ada).get_card()
    _, newest, *before = (await c(ada).chat("Where does Ada live?")).split("\n- ")
    assert "ada moved to York last weekend." in newest
    assert any(f"ada, earlier: {HOME}" in line for line in before)
    assert any(f"ben, earlier: {OF_ADA}" in line for line in before)
    _, age, *_ = (await c(ada).chat("How old is Ada?")).split("\n- ")
    assert AGE in age
    assert OF_BEN in await c(ben).chat("What is Ben allergic to?")
    assert "no stored statement about ben answers this" in await c(ben).chat("Where does Ben live?")
