"""What holds for every route: errors, slashes, methods, bodies, CORS, request ids."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

import pytest

from memservice.api.errors import DAMAGED, UNAVAILABLE
from memservice.domain import errors
from memservice.services import peers, workspaces

if TYPE_CHECKING:
    from api.conftest import Api

JSON = "application/json"


def test_health_needs_no_key(api: Api) -> None:
    answer = api.get("//health")
    assert api.ok(answer) == {"status": "ok"}
    assert answer.data == b'{"status":"ok"}'
    assert answer.content_type == JSON


class TestRoutes:
    @pytest.mark.parametrize(
        "path",
        [
            "/v3",
            "/v3/",
            "/v3/nothing",
            "/v1/nothing",
            "/v2/nothing",
            "/v3/workspaces/w/peers/p/chat/x",
            "/%00",
            "/é/\u202e",
            "/v3/workspaces/a%2Fb/peers",
            "/v3//workspaces",
            "/dashboard",
        ],
    )
    def test_unknown_routes_are_404(self, api: Api, path: str) -> None:
        for method in ("GET", "POST", "DELETE", "OPTIONS"):
            answer = api.client.open(base_url="http://localhost", method=method, path=path)
            assert answer.status_code == 404, (method, path)
            assert answer.get_json() == {"detail": "Not Found"}

    @pytest.mark.parametrize(
        ("method", "path", "allowed"),
        [
            ("PUT", "//health", {"GET", "HEAD"}),
            ("GET", "//v3/workspaces", {"POST"}),
            ("GET", "//v3/workspaces/list", {"POST", "PUT", "DELETE"}),
            ("PATCH", "", {"PUT", "DELETE"}),
            ("GET", "/peers", {"POST"}),
            ("HEAD", "/peers", {"POST"}),
            ("OPTIONS", "/peers", {"POST"}),
            ("OPTIONS", "//health", {"GET", "HEAD"}),
            ("TRACE", "//health", {"GET", "HEAD"}),
            ("BREW", "//health", {"GET", "HEAD"}),
        ],
    )
    def test_a_wrong_method_is_405(
        self, api: Api, method: str, path: str, allowed: set[str]
    ) -> None:
        answer = api.call(method, path)
        assert answer.status_code == 405
        if method != "HEAD":
            assert answer.get_json() == {"detail": "Method Not Allowed"}
        assert set(answer.headers["Allow"].split(", ")) == allowed

    def test_head_answers_as_get_without_a_body(self, api: Api) -> None:
        for path in ("//health", "/sessions/s/context"):
            got, head = api.get(path), api.call("HEAD", path)
            assert head.status_code == got.status_code == 200
            assert head.data == b""
            assert head.headers["Content-Length"] == got.headers["Content-Length"]

    @pytest.mark.parametrize("slashes", ["/", "//", "///"])
    def test_a_trailing_slash_redirects_with_307(self, api: Api, slashes: str) -> None:
        for method, path in (
            ("POST", "/peers"),
            ("PUT", "/sessions/s"),
            ("GET", "/queue/status"),
            ("DELETE", "/conclusions/x"),
        ):
            answer = api.call(method, path + slashes + "?a=b%20c&d")
            assert answer.status_code == 307, (method, path)
            assert answer.headers["Location"] == f"/v3/workspaces/{api.workspace}{path}?a=b%20c&d"

    def test_the_redirect_keeps_odd_names(self, api: Api) -> None:
        answer = api.put("/peers/a%20%C3%A9%3F%23/", {})
        assert answer.status_code == 307
        assert (
            answer.headers["Location"] == f"/v3/workspaces/{api.workspace}/peers/a%20%C3%A9%3F%23"
        )

    def test_a_redirect_stays_on_the_server(self, api: Api) -> None:
        for path in ("//evil.example/", "/\\evil.example/", "/nothing/"):
            answer = api.client.open(
                base_url="http://localhost",
                method="GET",
                path="/x",
                environ_overrides={"PATH_INFO": path},
            )
            assert answer.status_code == 404
            assert "Location" not in answer.headers

    def test_a_wrong_method_with_a_slash_redirects_first(self, api: Api) -> None:
        assert api.get("/peers/").status_code == 307

    def test_long_urls_are_answered(self, api: Api) -> None:
        assert api.get("/sessions/" + "x" * 60_000 + "/context").status_code == 200
        api.refused(api.get("/queue/status?session_id=%00"), ["query", "session_id"])
        assert api.get("/queue/status?session_id=" + "y" * 60_000).status_code == 200


class TestBodies:
    URL = "//v3/workspaces"

    def test_a_missing_body_is_reported_as_missing(self, api: Api) -> None:
        cases: list[dict[str, Any]] = [
            {},
            {"content_type": JSON},
            {"data": b"null", "content_type": JSON},
            {"data": b" ", "content_type": JSON},
        ]
        for options in cases:
            problems = api.refused(api.post(self.URL, **options), ["body"])
            assert problems == [{"loc": ["body"], "msg": "Field required", "type": "missing"}]

    @pytest.mark.parametrize(
        "data",
        [
            b"{",
            b'{"id": }',
            b"\xff\xfe",
            b"{'id': 'x'}",
            b'{"id": "x"} x',
            b"\xef\xbb\xbf{}",
            b'"\x01"',
        ],
    )
    def test_broken_json_says_where(self, api: Api, data: bytes) -> None:
        problems = api.refused(api.post(self.URL, data=data, content_type=JSON))
        assert len(problems) == 1
        assert problems[0]["type"] == "json_invalid"
        assert problems[0]["loc"][0] == "body"
        assert isinstance(problems[0]["loc"][1], int)

    @pytest.mark.parametrize(
        "data",
        [
            b'{"id": "x", "metadata": {"n": NaN}}',
            b'{"id": "x", "metadata": {"n": -Infinity}}',
            b'{"id": "x", "metadata": {"n": 1e999}}',
            b'{"id": "x", "metadata": {"n": 9223372036854775808}}',
            b'{"id": "x", "metadata": {"n": ' + b"9" * 5_000 + b"}}",
            b'{"id": "x", "metadata": {"s": "\\ud800"}}',
            b'{"id": "x", "metadata": {"\\udfff": 1}}',
            b'{"id": "x", "metadata": ' + b'{"a":' * 200 + b"1" + b"}" * 201,
            b"[" * 100_000 + b"]" * 100_000,
            b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        ],
    )
    def test_json_that_cannot_be_stored_is_refused(self, api: Api, data: bytes) -> None:
        problems = api.refused(api.post(self.URL, data=data, content_type=JSON))
        assert problems[0]["loc"][0] == "body"

    @pytest.mark.parametrize("value", [[], "text", 5, True, [{"id": "x"}]])
    def test_anything_but_an_object_is_refused(self, api: Api, value: object) -> None:
        assert (
            api.refused(api.post(self.URL, value), ["body"])[0]["type"] == "model_attributes_type"
        )

    @pytest.mark.parametrize(
        "kind",
        [
            "text/plain",
            "application/x-www-form-urlencoded",
            "multipart/form-data",
            "nonsense",
            "application/jsonx",
        ],
    )
    def test_a_body_of_another_type_is_refused(self, api: Api, kind: str) -> None:
        body = json.dumps({"id": api.workspace})
        assert (
            "application/json"
            in api.refused(api.post(self.URL, data=body, content_type=kind), ["body"])[0]["msg"]
        )

    @pytest.mark.parametrize(
        "kind",
        [JSON, "application/json; charset=utf-8", "APPLICATION/JSON", "application/vnd.api+json"],
    )
    def test_json_media_types_are_accepted(self, api: Api, kind: str) -> None:
        api.ok(api.post(self.URL, data=json.dumps({"id": api.workspace}), content_type=kind), 201)

    def test_a_body_without_a_type_is_json_unless_a_page_sends_it(self, api: Api) -> None:
        body = json.dumps({"id": api.workspace})
        assert api.ok(
            api.post(self.URL, data=body, headers={"Origin": "http://evil.example"}), 400
        ) == {"detail": "Disallowed CORS origin"}
        api.refused(api.post(self.URL, data=body, headers={"Origin": "http://localhost"}), ["body"])
        api.ok(api.post(self.URL, data=body), 201)

    def test_unknown_keys_are_ignored(self, api: Api) -> None:
        api.ok(api.post(self.URL, {"id": api.workspace, "nonsense": {"deep": [1]}}), 201)

    def test_problems_of_query_and_body_are_reported_together(self, api: Api) -> None:
        answer = api.post(
            "/peers/list?page=0&size=1000&reverse=perhaps", {"filters": [], "kind": 5}
        )
        api.refused(
            answer,
            ["query", "page"],
            ["query", "size"],
            ["query", "reverse"],
            ["body", "filters"],
            ["body", "kind"],
        )
        answer = api.post(
            "//v3/workspaces/not%20good/peers/list?page=0", data=b"{", content_type=JSON
        )
        problems = api.refused(answer, ["path", "workspace_id"], ["query", "page"])
        assert [problem["type"] for problem in problems].count("json_invalid") == 1

    def test_a_body_that_is_too_large_is_413(self, api: Api) -> None:
        answer = api.post(
            self.URL,
            data=b"{}",
            content_type=JSON,
            environ_overrides={"CONTENT_LENGTH": str(2**30)},
        )
        assert api.ok(answer, 413) == {
            "detail": "The request's body is too large: at most 1048576 bytes are read here"
        }

    def test_an_unused_body_is_ignored(self, api: Api) -> None:
        assert api.get("//health", data=b"\xff{", content_type=JSON).status_code == 200
        assert api.get("/queue/status", data=b"\xff{", content_type=JSON).status_code == 200

    def test_a_query_string_that_is_not_utf8_is_refused(self, api: Api) -> None:
        environment = {"QUERY_STRING": "page=\xff", "REQUEST_METHOD": "POST"}
        answer = api.client.post(
            f"/v3/workspaces/{api.workspace}/peers/list", environ_overrides=environment
        )
        api.refused(answer)
        assert api.post("/peers/list?%FF=%FF&a=%zz").status_code == 200

    def test_answers_are_json_in_utf8_without_escapes(self, api: Api) -> None:
        answer = api.post(self.URL, {"id": api.workspace, "metadata": {"é": "日本 \u2028"}})
        assert answer.content_type == JSON
        assert "日本".encode() in answer.data
        assert b": " not in answer.data


class TestErrors:
    @pytest.mark.parametrize(
        ("error", "status"),
        [
            (errors.NotFound("Peer x not found"), 404),
            (errors.Conflict("There are active sessions"), 409),
            (errors.Refused("Too many observers"), 400),
            (errors.Unauthorised("Invalid JWT"), 401),
            (errors.TooLarge("Too large"), 413),
            (errors.UnsupportedMedia("Unsupported file type"), 415),
        ],
    )
    def test_of_the_domain_have_their_status_and_text(
        self, api: Api, monkeypatch: pytest.MonkeyPatch, error: Exception, status: int
    ) -> None:
        self.fail(monkeypatch, error)
        assert api.ok(api.put("", {}), status) == {"detail": str(error)}

    @staticmethod
    def fail(monkeypatch: pytest.MonkeyPatch, error: Exception) -> None:
        def update(*args: object) -> None:
            raise error

        monkeypatch.setattr(workspaces, "update", update)

    def test_unavailable_is_503_with_retry_after(
        self, api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.fail(
            monkeypatch, errors.Unavailable("the database x on 10.0.0.7 is locked", retry_after=3)
        )
        with caplog.at_level("WARNING", "memservice.api"):
            answer = api.put("", {})
        assert api.ok(answer, 503) == {"detail": UNAVAILABLE}
        assert answer.headers["Retry-After"] == "3"
        assert "10.0.0.7" in caplog.text, "where it is, is for the log alone"
        self.fail(monkeypatch, errors.Busy("other files are being read", retry_after=5))
        assert api.ok(api.put("", {}), 503) == {"detail": "other files are being read"}

    def test_damage_is_500_without_retry_after(
        self, api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.fail(monkeypatch, errors.Damaged("the database /var/lib/x.db is damaged"))
        with caplog.at_level("WARNING", "memservice.api"):
            answer = api.put("", {})
        assert api.ok(answer, 500) == {"detail": DAMAGED}
        assert "Retry-After" not in answer.headers
        assert answer.headers["x-should-retry"] == "false"
        assert "/var/lib/x.db" in caplog.text

    def test_a_newer_schema_is_503(self, api: Api, monkeypatch: pytest.MonkeyPatch) -> None:
        """Another server, of the newer release, can answer."""
        self.fail(monkeypatch, errors.SchemaVersionError("schema 9999 on 10.0.0.7"))
        answer = api.put("", {})
        assert api.ok(answer, 503) == {"detail": UNAVAILABLE}
        assert answer.headers["Retry-After"] == "1"

    def test_invalid_input_lists_every_problem(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        self.fail(
            monkeypatch,
            errors.InvalidInput(
                errors.Problem(("metadata", "a", 0), "first"),
                errors.Problem(("workspace_id",), "second", "kind"),
            ),
        )
        assert api.ok(api.put("", {}), 422) == {
            "detail": [
                {"loc": ["body", "metadata", "a", 0], "msg": "first", "type": "value_error"},
                {"loc": ["path", "workspace_id"], "msg": "second", "type": "kind"},
            ]
        }

    def test_an_unexpected_error_is_500_and_logged_without_its_text(
        self, api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        # joined below, so that no line of this file holds them whole
        written = ["what the user", "my secret"]

        def update(*args: object) -> None:
            try:
                raise KeyError(written[0] + " wrote")
            except KeyError as cause:
                raise RuntimeError(written[1] + " diary") from cause

        monkeypatch.setattr(peers, "update", update)
        with caplog.at_level(logging.DEBUG):
            answer = api.put("/peers/alice", {"metadata": {"x": written[1] + " diary"}})
        assert api.ok(answer, 500) == {"detail": "An unexpected error occurred"}
        assert "builtins.RuntimeError from builtins.KeyError" in caplog.text
        assert "PUT /v3/workspaces/<workspace_id>/peers/<peer_id>" in caplog.text
        assert "test_conventions.py" in caplog.text
        assert written[0] + " wrote" not in caplog.text
        assert written[1] + " diary" not in caplog.text

    def test_an_operators_error_is_500_and_logged_in_full(
        self, api: Api, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
    ) -> None:
        self.fail(monkeypatch, errors.ConfigurationError("Run: memservice db reindex"))
        assert api.ok(api.put("", {}), 500) == {"detail": "An unexpected error occurred"}
        assert "Run: memservice db reindex" in caplog.text


class TestCors:
    ALLOWED = "http://localhost"

    def test_an_allowed_origin_may_read_answers_and_errors(
        self, api: Api, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(workspaces, "update", lambda *args: 1 / 0)
        for answer, status in (
            (api.get("//health", headers={"Origin": self.ALLOWED}), 200),
            (api.get("//nothing", headers={"Origin": self.ALLOWED}), 404),
            (api.post("//v3/workspaces", [], headers={"Origin": self.ALLOWED}), 422),
            (api.put("", {}, headers={"Origin": self.ALLOWED}), 500),
        ):
            assert answer.status_code == status
            assert answer.headers["Access-Control-Allow-Origin"] == self.ALLOWED
            assert answer.headers["Access-Control-Allow-Credentials"] == "true"
            assert "Origin" in answer.headers["Vary"]

    def test_another_origin_gets_no_cors_headers(self, api: Api) -> None:
        for origin in (
            "http://evil.example",
            "http://localhost.evil.example",
            "null",
            "http://localhost:81",
        ):
            answer = api.get("//health", headers={"Origin": origin})
            assert answer.status_code == 200
            assert "Access-Control-Allow-Origin" not in answer.headers

    def test_a_request_without_an_origin_gets_no_cors_headers(self, api: Api) -> None:
        answer = api.get("//health")
        assert not [
            name
            for name in answer.headers.keys()  # noqa: SIM118
            if name.startswith("Access-Control") or name == "Vary"
        ]

    def test_a_preflight_is_answered_for_any_path(self, api: Api) -> None:
        headers = {
            "Origin": self.ALLOWED,
            "Access-Control-Request-Method": "DELETE",
            "Access-Control-Request-Headers": "x-honcho-host, authorization",
        }
        for path in ("//health", "/peers", "//nothing"):
            answer = api.call("OPTIONS", path, headers=headers)
            assert answer.status_code == 200
            assert answer.headers["Access-Control-Allow-Origin"] == self.ALLOWED
            assert answer.headers["Access-Control-Allow-Methods"] == "DELETE"
            assert answer.headers["Access-Control-Allow-Headers"] == "x-honcho-host, authorization"
            assert answer.headers["Access-Control-Max-Age"] == "600"
            assert answer.headers["Access-Control-Allow-Credentials"] == "true"

    def test_a_disallowed_preflight_is_400_in_plain_text(self, api: Api) -> None:
        headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        answer = api.call("OPTIONS", "/peers", headers=headers)
        assert answer.status_code == 400
        assert answer.text == "Disallowed CORS origin"
        assert answer.mimetype == "text/plain"
        assert "Access-Control-Allow-Origin" not in answer.headers


class TestRequestId:
    def test_a_sent_request_id_is_used(self, api: Api) -> None:
        assert (
            api.get("//health", headers={"X-Request-Id": "abc-1.2_3"}).headers["X-Request-Id"]
            == "abc-1.2_3"
        )

    @pytest.mark.parametrize("request_id", ["", "a b", "x" * 129, "é", "a;b", None])
    def test_a_request_id_is_created_if_none_is_sent(
        self, api: Api, request_id: str | None
    ) -> None:
        headers = {} if request_id is None else {"X-Request-Id": request_id}
        request_ids = {
            api.get("//nothing", headers=headers).headers["X-Request-Id"] for _ in range(3)
        }
        assert len(request_ids) == 3
        assert all(number.isalnum() and len(number) == 16 for number in request_ids)

    def test_one_line_is_logged_per_request_without_texts_of_users(
        self, api: Api, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.INFO, "memservice.requests"):
            api.get("/peers/a%0Ab/context?search_query=my+secret", headers={"X-Request-Id": "r1"})
        lines = [
            record.getMessage() for record in caplog.records if record.name == "memservice.requests"
        ]
        assert len(lines) == 1
        assert "\n" not in lines[0]
        assert "secret" not in lines[0]
        assert (
            f"method=GET path=/v3/workspaces/{api.workspace}/peers/a%0Ab/context status=404 ms="
            in lines[0]
        )
        assert lines[0].endswith("request_id=r1")

    def test_no_line_is_logged_below_the_level(
        self, api: Api, caplog: pytest.LogCaptureFixture
    ) -> None:
        with caplog.at_level(logging.WARNING, "memservice.requests"):
            api.get("//health")
        assert not [record for record in caplog.records if record.name == "memservice.requests"]


def test_any_client_header_is_accepted(api: Api) -> None:
    assert api.get("//health", headers={"X-Honcho-Host": "x" * 5_000 + " (é)"}).status_code == 200
    assert api.get("//health", headers={"Authorization": "Bearer nonsense"}).status_code == 200
    assert api.get("/queue/status", headers={"Authorization": "Basic nonsense"}).status_code == 200
