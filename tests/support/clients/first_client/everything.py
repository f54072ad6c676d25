"""All that the first generation's client can do."""

from __future__ import annotations

import honcho  # type: ignore[import-not-found]  # installed in the client's own environment only

from support.clients.first_client.harness import Caller, contents, ids, scenario

METADATA = {"plan": "gold", "seats": 3, "tags": ["a", "b"], "deep": {"x": None}, "blåbær": "🫐"}
TORTOISE = "I adopted a tortoise named Balthazar last spring."
WORK = "I work as a nurse at the hospital in Bergen."


@scenario
async def apps_are_named_found_and_renamed(c: Caller) -> None:
    name = c.name("An app /")
    app = await c.apps.create(name=name, metadata=METADATA)
    assert (app.name, app.metadata, len(app.id)) == (name, METADATA, 21)
    assert await c.apps.get(app_id=app.id) == app
    plain = c.name()
    other = await c.apps.get_or_create(plain)
    assert await c.apps.get_or_create(plain) == await c.apps.get_by_name(plain) == other
    changed = await c.apps.update(app.id, name=f"{name}!", metadata={"a": 1})
    assert (changed.id, changed.name, changed.metadata, changed.created_at) == (
        app.id,
        f"{name}!",
        {"a": 1},
        app.created_at,
    )
    newest = await c.page(c.apps.list(reverse=True, size=100))
    assert ids(newest).index(other.id) < ids(newest).index(app.id)
    assert ids(await c.page(c.apps.list(filter={"a": 1}, reverse=True, size=1))) == [app.id]
    await c.raises(honcho.NotFoundError, c.apps.get_by_name(c.name()))
    await c.raises(honcho.UnprocessableEntityError, c.apps.create(name=""))


@scenario
async def a_conflict_is_told_at_once(c: Caller) -> None:
    name = c.name()
    await c.apps.create(name=name)
    patient = c.with_key(c.api._target.api_key, retries=2)
    error = await c.raises(honcho.ConflictError, patient.apps.create(name=name))
    assert error.response.json() == {"detail": f"App with name '{name}' already exists"}
    assert error.request.headers["x-stainless-retry-count"] == "0", "the client tried again"


@scenario
async def users_are_named_found_and_renamed(c: Caller) -> None:
    app = (await c.apps.create(name=c.name())).id
    users = [
        await c.users.create(app, name=f"User {number}", metadata={"n": number % 2})
        for number in range(5)
    ]
    assert {user.app_id for user in users} == {app}
    assert await c.users.get(app, user_id=users[2].id) == users[2]
    assert await c.users.get_by_name("User 3", app_id=app) == users[3]
    assert await c.users.get_or_create("User 4", app_id=app) == users[4]
    new = await c.users.get_or_create("New one", app_id=app)
    page = await c.users.list(app, size=2, page=2)
    assert (ids(page.items), page.total, page.page, page.size, page.pages) == (
        ids(users[2:4]),
        6,
        2,
        2,
        3,
    )
    assert ids(await c.page(c.users.list(app, filter={"n": 1}, reverse=True))) == [
        users[3].id,
        users[1].id,
    ]
    renamed = await c.users.update(users[0].id, app_id=app, name="Ann")
    assert (renamed.id, renamed.name, renamed.metadata) == (users[0].id, "Ann", {"n": 0})
    await c.raises(honcho.ConflictError, c.users.update(new.id, app_id=app, name="Ann"))
    await c.raises(honcho.NotFoundError, c.users.get(app, user_id="nobody"))


@scenario
async def sessions_are_kept_archived_and_cloned(c: Caller) -> None:
    own = await c.user()
    one = await c.sessions.create(**own, metadata=METADATA)
    two = await c.sessions.create(**own)
    assert (one.is_active, one.user_id, one.app_id, one.metadata) == (
        True,
        own["user_id"],
        own["app_id"],
        METADATA,
    )
    assert await c.sessions.get(**own, session_id=one.id) == one
    assert ids(await c.page(c.sessions.list(**own, filter={"plan": "gold"}))) == [one.id]
    drafts = [{"content": f"message {number}", "is_user": number % 2 == 0} for number in range(4)]
    messages = await c.sessions.messages.batch(one.id, **own, messages=drafts)
    await c.users.metamessages.create(
        **own, metamessage_type="mark", content="x", session_id=one.id, message_id=messages[0].id
    )
    clone = await c.sessions.clone(one.id, **own, message_id=messages[1].id, deep_copy=True)
    assert (clone.metadata, clone.is_active, clone.user_id) == (METADATA, True, own["user_id"])
    assert contents(await c.page(c.sessions.messages.list(clone.id, **own))) == [
        "message 0",
        "message 1",
    ]
    assert len(await c.page(c.users.metamessages.list(**own, session_id=clone.id))) == 1
    empty = await c.sessions.clone(two.id, **own)
    assert (await c.sessions.get(**own, session_id=empty.id)).id == empty.id
    await c.sessions.delete(one.id, **own)
    assert (await c.sessions.get(**own, session_id=one.id)).is_active is False
    assert ids(await c.page(c.sessions.list(**own))) == [one.id, two.id, clone.id, empty.id]
    assert ids(await c.page(c.sessions.list(**own, is_active=True, reverse=True))) == [
        empty.id,
        clone.id,
        two.id,
    ]
    assert (await c.sessions.update(one.id, **own, metadata={})).metadata == {}
    await c.raises(honcho.NotFoundError, c.sessions.get(**own, session_id="nothing"))


@scenario
async def messages_are_kept_in_order(c: Caller) -> None:
    own = await c.user()
    session = (await c.sessions.create(**own)).id
    first = await c.sessions.messages.create(
        session, **own, content="", is_user=True, metadata={"k": [1, 2]}
    )
    many = await c.sessions.messages.batch(
        session,
        **own,
        messages=[{"content": f"m{number}", "is_user": bool(number % 2)} for number in range(100)],
    )
    assert contents(many) == [f"m{number}" for number in range(100)]
    assert [message.is_user for message in many[:3]] == [False, True, False]
    assert {(message.session_id, message.user_id, message.app_id) for message in many} == {
        (session, own["user_id"], own["app_id"])
    }
    last = await c.sessions.messages.list(session, **own, size=10, page=11)
    assert (contents(last.items), last.total, last.pages) == (["m99"], 101, 11)
    assert await c.page(c.sessions.messages.list(session, **own, filter={"k": [2]})) == [first]
    changed = await c.sessions.messages.update(
        first.id, **own, session_id=session, metadata={"new": True}
    )
    assert changed.metadata == {"new": True}
    assert await c.sessions.messages.get(first.id, **own, session_id=session) == changed
    await c.raises(
        honcho.NotFoundError,
        c.sessions.messages.create("nothing", **own, content="x", is_user=True),
    )


@scenario
async def metamessages_are_notes(c: Caller) -> None:
    own = await c.user()
    notes = c.users.metamessages
    session = (await c.sessions.create(**own)).id
    note_message = await c.sessions.messages.create(session, **own, content="hello", is_user=True)
    plain = await notes.create(**own, metamessage_type="mood", content="happy", metadata={"a": 1})
    close = await notes.create(
        **own, metamessage_type="mark", content="", session_id=session, message_id=note_message.id
    )
    assert (plain.metamessage_type, plain.session_id, close.message_id, close.session_id) == (
        "mood",
        None,
        note_message.id,
        session,
    )
    assert await notes.get(close.id, **own) == close
    assert ids(await c.page(notes.list(**own))) == [plain.id, close.id]
    assert ids(await c.page(notes.list(**own, metamessage_type="mood", filter={"a": 1}))) == [
        plain.id
    ]
    assert ids(await c.page(notes.list(**own, session_id=session, message_id=note_message.id))) == [
        close.id
    ]
    moved = await notes.update(plain.id, **own, session_id=session, metamessage_type="tone")
    assert (moved.session_id, moved.metamessage_type, moved.metadata, moved.content) == (
        session,
        "tone",
        {"a": 1},
        "happy",
    )
    await c.raises(
        honcho.UnprocessableEntityError,
        notes.create(**own, metamessage_type="x", content="", message_id=note_message.id),
    )


@scenario
async def documents_are_found_in_collections(c: Caller) -> None:
    own = await c.user()
    collections, documents = c.users.collections, c.users.collections.documents
    shelf = await collections.create(**own, name="my shelf", metadata=METADATA)
    assert (
        await collections.get(**own, collection_id=shelf.id)
        == await collections.get_by_name("my shelf", **own)
        == shelf
    )
    assert (await collections.update(shelf.id, **own, name="books")).name == "books"
    assert ids(await c.page(collections.list(**own, filter={"plan": "gold"}))) == [shelf.id]
    await c.raises(honcho.ConflictError, collections.create(**own, name="books"))
    await c.raises(honcho.UnprocessableEntityError, collections.create(**own, name="Honcho"))
    texts = ("The cat sleeps on the sofa.", "A recipe for lentil soup.", "Stars are very far away.")
    rows = [
        await documents.create(shelf.id, **own, content=text, metadata={"n": n})
        for n, text in enumerate(texts)
    ]
    assert tuple(contents(await c.page(documents.list(shelf.id, **own)))) == texts
    assert ids(await c.page(documents.list(shelf.id, **own, filter={"n": 1}))) == [rows[1].id]
    assert contents(await documents.query(shelf.id, **own, query="soup recipe", top_k=1)) == [
        texts[1]
    ]
    assert len(await documents.query(shelf.id, **own, query="soup recipe")) == 3
    assert contents(
        await documents.query(shelf.id, **own, query="soup recipe", filter={"n": 2})
    ) == [texts[2]]
    inside = {**own, "collection_id": shelf.id}
    changed = await documents.update(rows[0].id, **inside, content="Dogs like to run.", metadata={})
    assert (changed.content, changed.metadata) == ("Dogs like to run.", {})
    assert changed.created_at > rows[0].created_at
    assert await documents.get(rows[0].id, **inside) == changed
    await documents.delete(rows[2].id, **inside)
    await c.raises(honcho.NotFoundError, documents.get(rows[2].id, **inside))
    await collections.delete(shelf.id, **own)
    await c.raises(honcho.NotFoundError, collections.get(**own, collection_id=shelf.id))


@scenario
async def what_the_user_says_is_learnt_and_answered_from(c: Caller) -> None:
    own = await c.user()
    documents = c.users.collections.documents
    session = (await c.sessions.create(**own)).id
    messages = await c.sessions.messages.batch(
        session,
        **own,
        messages=[{"content": TORTOISE, "is_user": True}, {"content": WORK, "is_user": False}],
    )

    async def learnt() -> list[str]:
        listing = await c.page(c.users.collections.list(**own))
        return (
            ids(listing) if listing and await c.page(documents.list(listing[0].id, **own)) else []
        )

    (collection,) = await c.until(learnt)
    facts = await c.page(documents.list(collection, **own))
    assert [(fact.content, fact.metadata) for fact in facts] == [
        (TORTOISE, {"message_id": messages[0].id})
    ]
    assert (await c.users.collections.get_by_name("honcho", **own)).id == collection
    question = "What is the tortoise called?"
    assert contents(await documents.query(collection, **own, query=question)) == [TORTOISE]
    answer = (await c.sessions.chat(session, **own, queries=question)).content
    assert "Balthazar" in answer
    assert (
        "Balthazar" in (await c.sessions.chat(session, **own, queries=["Hello.", question])).content
    )
    kind, text = await c.sessions.streamed("chat", session, **own, queries=question, stream=True)
    assert kind.startswith("text/event-stream")
    assert text.strip() == answer
    await c.raises(honcho.UnprocessableEntityError, c.users.collections.delete(collection, **own))


@scenario
async def keys_open_what_they_name(c: Caller) -> None:
    own, other = await c.user(), await c.user()
    session = (await c.sessions.create(**own)).id

    async def key(**named: str) -> str:
        minted = await c.api.keys.create(**named)
        return str(minted["key"] if isinstance(minted, dict) else minted.key)

    app = c.with_key(await key(app_id=own["app_id"]))
    assert (await app.apps.get()).id == own["app_id"]
    assert len(await c.page(app.apps.users.list(own["app_id"]))) == 1
    await c.raises(honcho.AuthenticationError, app.apps.users.list(other["app_id"]))
    await c.raises(honcho.AuthenticationError, app.apps.create(name=c.name()))
    user = c.with_key(await key(user_id=own["user_id"], expires_at="2999-01-01T00:00:00Z"))
    assert (await user.apps.users.get(own["app_id"])).id == own["user_id"]
    assert ids(await c.page(user.apps.users.sessions.list(**own))) == [session]
    await c.raises(honcho.AuthenticationError, user.apps.users.list(own["app_id"]))
    narrow = c.with_key(await key(session_id=session)).apps.users
    assert (await narrow.sessions.get(**own)).id == session
    assert (
        await narrow.sessions.messages.create(session, **own, content="x", is_user=True)
    ).content == "x"
    await c.raises(honcho.AuthenticationError, narrow.sessions.list(**own))
    shelf = (await c.users.collections.create(**own, name="shelf")).id
    narrow = c.with_key(await key(collection_id=shelf)).apps.users
    assert (await narrow.collections.get(**own)).id == shelf
    assert (await narrow.collections.documents.create(shelf, **own, content="x")).content == "x"
    await c.raises(honcho.AuthenticationError, narrow.collections.list(**own))
    await c.raises(honcho.AuthenticationError, c.with_key("nonsense").apps.get())
    await c.raises(honcho.UnprocessableEntityError, c.api.keys.create())
