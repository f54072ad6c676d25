"""What the first generation remembers: metamessages, collections, documents and chat, and what the
others make of them."""

from __future__ import annotations

import pytest

from api.conftest import Api
from memservice.domain.records import Document, Metamessage, NamedCollection
from memservice.worker.polling import Worker
from support.api.v1_client import V1Client, uid

pytestmark = pytest.mark.every_index

TORTOISE = "I adopted a tortoise named Balthazar."


@pytest.fixture
def v1(api: Api) -> V1Client:
    return V1Client(api)


@pytest.fixture
def user(v1: V1Client) -> str:
    return v1.user(v1.app())


@pytest.fixture
def shelf(v1: V1Client, user: str) -> str:
    """A collection with three documents."""
    shelf = f"{user}/collections/{v1.post(f'{user}/collections', {'name': 'shelf'})['id']}"
    for text, kind in (
        ("The cat sleeps on the sofa.", "cat"),
        ("A recipe for lentil soup.", "food"),
        ("The cat chases mice.", "cat"),
    ):
        v1.post(f"{shelf}/documents", {"content": text, "metadata": {"kind": kind}})
    return shelf


def contents(documents: list[dict[str, str]]) -> list[str]:
    return [document["content"] for document in documents]


# Metamessages


def test_a_metamessage_is_about_a_user_a_session_or_a_message(v1: V1Client, user: str) -> None:
    session = v1.session(user)
    (message,) = v1.say(session, (True, "hello"))
    path = f"{user}/metamessages"
    plain = v1.post(path, {"metamessage_type": "mood", "content": "happy", "metadata": {"a": 1}})
    assert list(plain) == [
        "id", "label", "content", "user_id", "app_id", "session_id", "message_id", "metadata",
        "created_at", "metamessage_type",
    ]  # fmt: skip
    assert (
        plain["label"],
        plain["metamessage_type"],
        plain["session_id"],
        plain["message_id"],
    ) == ("mood", "mood", None, None)
    about = v1.post(path, {"label": "mood", "content": "", "session_id": uid(session)})
    closest = v1.post(
        path,
        {
            "label": "x",
            "metamessage_type": "y",
            "content": "",
            "session_id": uid(session),
            "message_id": message["id"],
        },
    )
    assert (closest["label"], closest["message_id"]) == ("y", message["id"])
    assert v1.get(f"{path}/{closest['id']}") == closest
    assert v1.listed(path) == [plain["id"], about["id"], closest["id"]]
    assert v1.listed(path, {"label": "mood"}) == [plain["id"], about["id"]]
    assert v1.listed(
        path, {"metamessage_type": "mood", "label": "y", "session_id": uid(session)}
    ) == [about["id"]]
    assert v1.listed(path, {"message_id": message["id"]}) == [closest["id"]]
    assert v1.listed(path, {"session_id": "", "label": ""}) == v1.listed(path)
    assert v1.listed(path, {"session_id": "unknown"}) == []
    assert v1.listed(path, {"filter": {"a": 1}}) == [plain["id"]]


def test_a_metamessage_is_changed(v1: V1Client, user: str) -> None:
    session, other = v1.session(user), v1.session(user)
    (message,) = v1.say(session, (True, "hello"))
    note = v1.post(f"{user}/metamessages", {"label": "a", "content": "text"})
    path = f"{user}/metamessages/{note['id']}"
    assert v1.put(path, {}) == note
    assert v1.put(path, {"label": "b", "metadata": {"n": 1}}) == note | {
        "label": "b",
        "metamessage_type": "b",
        "metadata": {"n": 1},
    }
    assert (
        v1.problem("PUT", path, {"message_id": message["id"]})[1]
        == "Cannot specify message_id without session_id"
    )
    assert v1.put(path, {"session_id": uid(session)})["session_id"] == uid(session)
    assert (
        v1.put(path, {"message_id": message["id"], "session_id": None})["message_id"]
        == message["id"]
    )
    assert (
        v1.refused(404, "PUT", path, {"session_id": "unknown"})
        == "Session not found or does not belong to user"
    )
    assert (
        v1.refused(404, "PUT", path, {"message_id": "unknown"})
        == "Message not found or doesn't belong to session"
    )
    moved = v1.put(path, {"session_id": uid(other)})
    assert (moved["session_id"], moved["message_id"]) == (uid(other), None)


def test_invalid_metamessages_are_refused(v1: V1Client, user: str) -> None:
    path, session = f"{user}/metamessages", v1.session(user)
    assert v1.problem("POST", path, {"content": "x"})[0] == ["body", "metamessage_type"]
    for key in ("metamessage_type", "label"):
        for label in ("", "t" * 51):
            assert v1.problem("POST", path, {key: label, "content": "x"})[0] == ["body", key]
            assert v1.problem("PUT", f"{path}/x", {key: label})[0] == ["body", key]
    assert v1.problem("POST", path, {"label": "t", "content": "x", "message_id": "m"})[
        1
    ].startswith("Cannot specify message_id")
    note = {"label": "t", "content": "x"}
    assert (
        v1.refused(404, "POST", path, note | {"session_id": "s"})
        == "Session not found or does not belong to user"
    )
    unknown = note | {"session_id": uid(session), "message_id": "m"}
    assert (
        v1.refused(404, "POST", path, unknown) == "Message not found or does not belong to session"
    )
    assert v1.refused(404, "GET", f"{path}/x") == "Metamessage with ID x not found"
    assert v1.refused(404, "PUT", f"{path}/x", {}) == "Metamessage with ID x not found"
    app = user.rpartition("/users/")[0]
    assert (
        v1.refused(404, "POST", f"{app}/users/nobody/metamessages", note)
        == "User with ID 'nobody' not found"
    )


# Collections


def test_a_collection_is_created_found_renamed_and_deleted(v1: V1Client, user: str) -> None:
    path = f"{user}/collections"
    collection = v1.post(path, {"name": "my books / 1", "metadata": {"a": 1}})
    assert list(collection) == ["id", "name", "user_id", "app_id", "metadata", "created_at"]
    assert v1.get(path, collection_id=collection["id"]) == collection
    other = v1.post(path, {"name": "other"})
    assert v1.get(f"{path}/name/other") == other
    assert v1.listed(path) == [collection["id"], other["id"]]
    assert v1.listed(path, {"filter": {"a": 1}}) == [collection["id"]]
    assert (
        v1.refused(409, "POST", path, {"name": "other"})
        == "Collection with name 'other' already exists"
    )
    collection_path = f"{path}/{collection['id']}"
    assert (
        v1.refused(409, "PUT", collection_path, {"name": "other"})
        == "Collection update failed - name already in use"
    )
    assert v1.put(collection_path, {"name": "books", "metadata": {}}) == collection | {
        "name": "books",
        "metadata": {},
    }
    assert (
        v1.problem("PUT", collection_path, {})[1]
        == "Invalid collection configuration - at least one field must be provided"
    )
    assert v1.delete(collection_path) == {"message": "Collection deleted successfully"}
    for method, body in (("PUT", {"name": "x"}), ("DELETE", ...)):
        assert (
            v1.refused(404, method, collection_path, body)
            == "Collection not found or does not belong to user"
        )
    assert v1.refused(404, "GET", path, collection_id=collection["id"])
    assert v1.refused(404, "GET", f"{path}/name/books") == "Collection with name 'books' not found"
    assert v1.refused(401, "GET", path) == "Collection ID not found in query parameter or JWT"


@pytest.mark.parametrize("name", ["honcho", "HONCHO", "Honcho"])
def test_a_reserved_collection_name_is_refused(
    v1: V1Client, user: str, shelf: str, name: str
) -> None:
    problem = (["body", "name"], "Value error, Collection name cannot be 'honcho'")
    assert v1.problem("POST", f"{user}/collections", {"name": name}) == problem
    assert v1.problem("PUT", shelf, {"name": name}) == problem


# Documents


def test_documents_are_stored_listed_and_found_by_cosine(v1: V1Client, shelf: str) -> None:
    listing = v1.post(f"{shelf}/documents/list")
    assert list(listing["items"][0]) == [
        "id",
        "content",
        "metadata",
        "created_at",
        "collection_id",
        "app_id",
        "user_id",
    ]
    assert (listing["total"], listing["items"][0]["collection_id"]) == (3, uid(shelf))
    assert v1.listed(f"{shelf}/documents", {"filter": {"kind": "cat"}}) == [
        listing["items"][0]["id"],
        listing["items"][2]["id"],
    ]
    assert v1.get(f"{shelf}/documents/{listing['items'][1]['id']}") == listing["items"][1]
    query = {"query": "lentil soup recipe"}
    assert contents(v1.post(f"{shelf}/documents/query", query | {"top_k": 1})) == [
        "A recipe for lentil soup."
    ]
    every = v1.post(f"{shelf}/documents/query", query)
    assert len(every) == 3, "no cut-off"
    assert every[0]["content"] == "A recipe for lentil soup."
    cats = contents(v1.post(f"{shelf}/documents/query", query | {"filter": {"kind": "cat"}}))
    assert sorted(cats) == ["The cat chases mice.", "The cat sleeps on the sofa."]
    assert len(v1.post(f"{shelf}/documents/query", {"query": "!?"})) == 3
    assert v1.post(f"{shelf.rpartition('/')[0]}/unknown/documents/query", query) == []
    assert v1.post(f"{shelf.rpartition('/')[0]}/unknown/documents/list")["total"] == 0


@pytest.mark.slow
def test_a_filtered_query_finds_distant_documents(v1: V1Client, user: str) -> None:
    path = f"{user}/collections/{v1.post(f'{user}/collections', {'name': 'many'})['id']}/documents"
    for number in range(30):
        v1.post(
            path,
            {"content": f"The cat number {number} sleeps on the sofa.", "metadata": {"n": number}},
        )
    assert contents(
        v1.post(f"{path}/query", {"query": "cat sofa", "top_k": 1, "filter": {"n": 17}})
    ) == ["The cat number 17 sleeps on the sofa."]
    assert len(v1.post(f"{path}/query", {"query": "cat", "top_k": 25})) == 25


def test_a_document_with_new_content_gets_a_new_time(v1: V1Client, shelf: str) -> None:
    document = v1.post(f"{shelf}/documents/list")["items"][0]
    path = f"{shelf}/documents/{document['id']}"
    assert v1.put(path, {"metadata": {"new": 1}}) == document | {"metadata": {"new": 1}}
    changed = v1.put(path, {"content": "Bicycles have two wheels."})
    assert changed["content"] == "Bicycles have two wheels."
    assert changed["created_at"] > document["created_at"]
    assert changed["metadata"] == {"new": 1}
    nearest = v1.post(f"{shelf}/documents/query", {"query": "bicycle wheels", "top_k": 1})
    assert [each["id"] for each in nearest] == [document["id"]]
    assert (
        "two wheels"
        not in contents(
            v1.post(f"{shelf}/documents/query", {"query": "sleeps on the sofa", "top_k": 1})
        )[0]
    )
    assert v1.problem("PUT", path, {})[1] == "Content and metadata cannot both be None"


def test_a_deleted_document_is_not_found(v1: V1Client, shelf: str) -> None:
    document = v1.post(f"{shelf}/documents/list")["items"][0]
    path = f"{shelf}/documents/{document['id']}"
    assert v1.delete(path) == {"message": "Document deleted successfully"}
    assert v1.refused(404, "DELETE", path) == "Document not found or does not belong to user"
    assert v1.refused(404, "GET", path) == f"Document with ID '{document['id']}' not found"
    assert (
        v1.refused(404, "PUT", path, {"content": "x"})
        == f"Document with ID '{document['id']}' not found"
    )
    assert document["content"] not in contents(
        v1.post(f"{shelf}/documents/query", {"query": "cat sleeps sofa"})
    )


def test_equal_documents_are_stored_twice(v1: V1Client, shelf: str) -> None:
    for _ in range(2):
        v1.post(f"{shelf}/documents", {"content": "twice"})
    assert (
        len(
            [
                each
                for each in v1.post(f"{shelf}/documents/list")["items"]
                if each["content"] == "twice"
            ]
        )
        == 2
    )


@pytest.mark.slow
def test_limits_of_documents(v1: V1Client, shelf: str) -> None:
    path = f"{shelf}/documents"
    long = "word " * 20_000
    assert v1.post(path, {"content": long})["content"] == long
    assert v1.problem("POST", path, {"content": long + "x"})[0] == ["body", "content"]
    assert v1.problem("POST", path, {"content": "\0"})[0] == ["body", "content"]
    for top_k in (0, 51):
        assert v1.problem("POST", f"{path}/query", {"query": "x", "top_k": top_k})[0] == [
            "body",
            "top_k",
        ]
    assert v1.problem("POST", f"{path}/query", {"query": "x" * 1001})[0] == ["body", "query"]
    assert (
        v1.refused(404, "POST", f"{shelf}x/documents", {"content": "x"})
        == "Collection not found or does not belong to user"
    )


def test_deleting_a_collection_deletes_its_documents(v1: V1Client, shelf: str) -> None:
    before = _counts(v1)
    v1.delete(shelf)
    after = _counts(v1)
    assert (
        before["documents"] - after["documents"],
        before["collections"] - after["collections"],
    ) == (3, 1)


def _counts(v1: V1Client) -> dict[str, int]:
    with v1.api.runtime.storage.read() as tx:
        tables = {"documents": Document, "collections": NamedCollection, "notes": Metamessage}
        return {name: tx.rows.count(record) for name, record in tables.items()}


@pytest.mark.slow
def test_documents_are_visible_in_their_collection_only(
    v1: V1Client, user: str, shelf: str
) -> None:
    api = v1.api
    assert api.ok(api.post("/conclusions/list"))["total"] == 0
    pair = {"observer": "alice", "observed": "alice"}
    assert api.ok(api.post("/conclusions/query", {"query": "cat", "filters": pair})) == []
    assert api.ok(api.post("/search", {"query": "cat"})) == []
    assert (
        "cat"
        not in api.ok(api.post("/peers/alice/representation", {"search_query": "cat"}))[
            "representation"
        ]
    )
    assert "cat" not in str(
        api.ok(api.post("/peers/alice/chat", {"query": "Where does the cat sleep?"}))["content"]
    )
    api.ok(api.post("/schedule_dream", {"observer": "alice", "dream_type": "omni"}), 204)
    Worker(api.runtime).run_until_idle()
    assert api.ok(api.post("/conclusions/list"))["total"] == 0
    assert len(v1.listed(f"{shelf}/documents")) == 3


def test_deleting_a_workspace_deletes_everything_in_it(v1: V1Client, user: str, shelf: str) -> None:
    v1.post(f"{user}/metamessages", {"label": "x", "content": ""})
    before = _counts(v1)
    v1.api.ok(v1.api.delete(""), 202)
    Worker(v1.api.runtime).run_until_idle()
    after = _counts(v1)
    assert {name: before[name] - after[name] for name in before} == {
        "documents": 3,
        "collections": 1,
        "notes": 1,
    }


# The reserved collection


@pytest.fixture
def reserved(v1: V1Client, user: str) -> str:
    """The user's reserved collection, after a fact was derived."""
    v1.say(v1.session(user), (True, TORTOISE))
    Worker(v1.api.runtime).run_until_idle()
    return f"{user}/collections/{v1.get(f'{user}/collections/name/honcho')['id']}"


def test_facts_are_documents_of_the_reserved_collection(
    v1: V1Client, user: str, reserved: str
) -> None:
    (session,) = v1.listed(f"{user}/sessions")
    (message,) = v1.listed(f"{user}/sessions/{session}/messages")
    (fact,) = v1.post(f"{reserved}/documents/list")["items"]
    assert (fact["content"], fact["metadata"], fact["collection_id"]) == (
        TORTOISE,
        {"message_id": message},
        uid(reserved),
    )
    assert v1.listed(f"{reserved}/documents", {"filter": {"message_id": message}}) == [fact["id"]]
    assert v1.get(f"{reserved}/documents/{fact['id']}") == fact
    assert v1.post(f"{reserved}/documents/query", {"query": "What is the tortoise called?"}) == [
        fact
    ]
    (conclusion,) = v1.api.ok(v1.api.post("/conclusions/list"))["items"]
    assert (conclusion["id"], conclusion["content"]) == (fact["id"], TORTOISE)


def test_the_reserved_collection_appears_with_the_first_fact(v1: V1Client, user: str) -> None:
    api = v1.api
    assert v1.listed(f"{user}/collections") == []
    assert v1.refused(404, "GET", f"{user}/collections/name/honcho")
    api.conclude("alice", "alice", "alice likes tea")
    (collection,) = v1.post(f"{user}/collections/list")["items"]
    assert collection["name"] == "honcho"
    assert contents(v1.post(f"{user}/collections/{collection['id']}/documents/list")["items"]) == [
        "alice likes tea"
    ]


def test_a_document_for_the_reserved_collection_is_a_conclusion(
    v1: V1Client, user: str, reserved: str
) -> None:
    api = v1.api
    for _ in range(2):
        document = v1.post(
            f"{reserved}/documents", {"content": "alice likes tea", "metadata": {"by": "hand"}}
        )
    assert document["metadata"] == {"by": "hand"}
    conclusions = {each["id"]: each for each in api.ok(api.post("/conclusions/list"))["items"]}
    assert len(conclusions) == 3
    shown = conclusions[document["id"]]
    assert (shown["content"], shown["observer_id"], shown["observed_id"], shown["session_id"],
    shown["level"]) == (
        "alice likes tea", "alice", "alice", None, "explicit",
    )  # fmt: skip
    assert v1.listed(f"{reserved}/documents", {"filter": {"by": "hand"}})[1] == document["id"]
    changed = v1.put(
        f"{reserved}/documents/{document['id']}",
        {"content": "alice prefers coffee", "metadata": {}},
    )
    assert changed["created_at"] > document["created_at"]
    assert api.ok(api.get(f"/conclusions/{document['id']}"))["content"] == "alice prefers coffee"
    pair = {"observer": "alice", "observed": "alice"}
    best = api.ok(api.post("/conclusions/query", {"query": "coffee", "filters": pair, "top_k": 1}))
    assert [each["id"] for each in best] == [document["id"]]


def test_the_reserved_collection_cannot_be_changed(v1: V1Client, reserved: str) -> None:
    (fact,) = v1.listed(f"{reserved}/documents")
    assert (
        v1.problem("DELETE", reserved)[1]
        == "Invalid collection configuration - 'honcho' is a reserved name"
    )
    assert (
        v1.problem("DELETE", f"{reserved}/documents/{fact}")[1]
        == "Cannot delete collection with reserved name 'honcho'"
    )
    assert v1.problem("PUT", reserved, {"name": "mine"})[0] == ["body", "name"]
    assert v1.put(reserved, {"metadata": {"a": 1}})["metadata"] == {"a": 1}


def test_conclusions_deleted_in_other_generations_are_not_found(
    v1: V1Client, reserved: str
) -> None:
    (fact,) = v1.listed(f"{reserved}/documents")
    v1.api.ok(v1.api.delete(f"/conclusions/{fact}"), 204)
    assert v1.refused(404, "GET", f"{reserved}/documents/{fact}")
    assert v1.post(f"{reserved}/documents/list")["total"] == 0
    assert v1.post(f"{reserved}/documents/query", {"query": "tortoise"}) == []


def test_conclusions_of_other_observers_are_not_shown(v1: V1Client, reserved: str) -> None:
    v1.api.peer("bob")
    v1.api.conclude("bob", "alice", "alice is tall")
    v1.api.conclude("alice", "bob", "bob is small")
    assert contents(v1.post(f"{reserved}/documents/list")["items"]) == [TORTOISE]


# Chat


@pytest.mark.slow
@pytest.mark.parametrize(
    "queries", ["What is the tortoise called?", ["Hello.", "What is the tortoise called?"]]
)
def test_chat_answers_from_conclusions(
    v1: V1Client, user: str, reserved: str, queries: object
) -> None:
    session = v1.session(user)
    whole = v1.post(f"{session}/chat", {"queries": queries})
    assert list(whole) == ["content"]
    assert "Balthazar" in whole["content"]
    streamed = v1.call("POST", f"{session}/chat", {"queries": queries, "stream": True})
    assert (streamed.status_code, streamed.mimetype) == (200, "text/event-stream")
    assert streamed.text.strip() == whole["content"]
    v1.delete(session)
    assert "Balthazar" in v1.post(f"{session}/chat", {"queries": queries})["content"]
    assert "Balthazar" in v1.post(f"{user}/sessions/unknown/chat", {"queries": queries})["content"]


@pytest.mark.slow
def test_chat_stores_a_metamessage_with_the_newest_message_of_the_user(
    v1: V1Client, user: str, reserved: str
) -> None:
    session = v1.session(user)
    notes = {"metamessage_type": "honcho_user_representation"}
    v1.post(f"{session}/chat", {"queries": "What is the tortoise called?"})
    assert v1.post(f"{user}/metamessages/list", notes)["total"] == 0, (
        "the user has said nothing there"
    )
    v1.say(session, (True, "Hello."), (False, "Good day."))
    for _ in range(2):
        v1.post(f"{session}/chat", {"queries": "What is the tortoise called?"})
    (note,) = v1.post(f"{user}/metamessages/list", notes)["items"]
    message = v1.post(f"{session}/messages/list")["items"][0]
    assert (note["session_id"], note["message_id"], note["label"]) == (
        uid(session),
        message["id"],
        "honcho_user_representation",
    )
    assert "Balthazar" in note["content"]
    v1.say(session, (True, "And now?"))
    v1.post(f"{session}/chat", {"queries": "What is the tortoise called?"})
    assert v1.post(f"{user}/metamessages/list", notes)["total"] == 2


def test_chat_uses_the_name_of_the_user(v1: V1Client) -> None:
    """Also one whose name cannot be an id elsewhere."""
    app = v1.app()
    user = v1.user(app, "Bob Smith")
    session = v1.session(user)
    assert "Bob Smith" in v1.post(f"{session}/chat", {"queries": "Where does he live?"})["content"]
    (user_row,) = v1.post(f"{app}/users/list")["items"]
    v1.put(user, {"name": "Robert Smith"})
    answer = v1.post(f"{session}/chat", {"queries": "Where does he live?"})["content"]
    assert "Robert Smith" in answer
    assert user_row["id"] not in answer


def test_chat_about_an_unknown_user_states_that_nothing_is_known(v1: V1Client, user: str) -> None:
    session = v1.session(user)
    for queries in ("", ["", " "]):
        assert v1.post(f"{session}/chat", {"queries": queries}) == {"content": "None"}
        assert (
            v1.call("POST", f"{session}/chat", {"queries": queries, "stream": True}).text == "None"
        )
    assert isinstance(v1.post(f"{session}/chat", {"queries": "Who is it?"})["content"], str)
    (collection,) = v1.post(f"{user}/collections/list")["items"]
    assert collection["name"] == "honcho", "asking makes it appear"
    app = user.rpartition("/users/")[0]
    assert (
        v1.refused(404, "POST", f"{app}/users/nobody/sessions/x/chat", {"queries": "x"})
        == "User with ID 'nobody' not found"
    )


@pytest.mark.parametrize(
    ("queries", "prefix"),
    [
        ("x" * 10_001, "Value error, Query too long"),
        (["x" * 10_001], "Value error, One or more queries too long"),
        (["x"] * 26, "Value error, Too many queries"),
        ([], "List should have at least 1 item"),
        (5, "Input should be a string"),
        ([None], "Input should be a string"),
        (None, "Field may not be null"),
    ],
)
def test_invalid_questions_are_refused(
    v1: V1Client, user: str, queries: object, prefix: str
) -> None:
    loc, message = v1.problem("POST", f"{v1.session(user)}/chat", {"queries": queries})
    assert loc == ["body", "queries"]
    assert message.startswith(prefix)
