"""Routes of the live page: responses, actions and refused requests."""

from __future__ import annotations

import asyncio
import json
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, cast

import pytest
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from moot import DebateConfig
from moot.debates.dry_run import estimate
from moot.models.offline import ScriptedModel, recording_config
from moot.plugins.web import page_estimates
from moot.plugins.web.auth_middleware import MAX_BYTES, POLICY, AuthMiddleware
from moot.plugins.web.debate_host import DebateHost, DebateReader, follow
from moot.plugins.web.page_estimates import PlanCheck
from moot.plugins.web.page_routes import FILES, STATIC, page_app
from moot.plugins.web.page_uploads import MAX_UPLOAD_BYTES
from tests.support.live_page import open_with_models
from tests.support.openai_server import OpenAIServer, ServerReply
from tests.support.waiting import wait_until

API = "/moot/api"
TOPIC = "Tabs or spaces?"
SHORT: dict[str, Any] = {"question": TOPIC, "turns": 2}
DEBATERS = ({"name": "Ada"}, {"name": "Ben", "model": "human"})


@pytest.fixture
def page(tmp_path: Path) -> Iterator[TestClient]:
    app = page_app(
        lambda: open_with_models(tmp_path / "d.sqlite"),
        DebateConfig(model="offline", judge={"swap": False}, openings="sequential"),
    )
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as client:
        yield client


def start_debate(page: TestClient, **settings: Any) -> str:
    """Start a debate, and return its address when it has ended or waits for a person."""
    answer = page.post(f"{API}/debates", json={**SHORT, **settings})
    assert answer.status_code == 200, answer.text
    address = f"{API}/debates/{answer.json()['id']}"
    wait_for_end(page, address)
    return address


def wait_for_end(page: TestClient, address: str) -> dict[str, Any]:
    """Return the overview of a debate when it has ended or waits for a person."""
    overview: dict[str, Any] = {}

    def over() -> bool:
        overview.update(page.get(address).json())
        return not overview["running"] and overview["status"] not in ("new", "running")

    assert wait_until(over)
    return overview


def test_started_debate_is_listed_and_its_parts_are_served(page: TestClient) -> None:
    address = start_debate(page)
    overview = page.get(address).json()
    assert (overview["status"], overview["over"], overview["entries"], overview["planned_turns"]) == (
        "done",
        True,
        3,
        2,
    )
    listed = page.get(f"{API}/debates", params={"q": "SPACES"}).json()
    assert [(row["topic"], row["winner"]) for row in listed["debates"]] == [
        (TOPIC, "placeholder: no model judged this")
    ]
    assert page.get(f"{API}/debates", params={"q": "trams"}).json()["found"] == 0
    entries = page.get(f"{address}/entries", params={"from": 1, "to": 3}).json()
    assert [each["id"] for each in entries] == ["m000001", "m000002"]
    assert all('class="entry speech' in each["html"] and each["prompt"] for each in entries)
    assert "no model judged this" in page.get(f"{address}/parts/verdict").json()["html"]
    assert page.get(f"{address}/prompts/1").json()["exact"] is True
    assert len(page.get(f"{address}/receipts").json()["prompts"]) == 2
    assert page.get(f"{address}/find", params={"q": "TABS OR"}).json()[0] == 0
    # The stream ends, because a browser has few connections per server.
    events = page.get(f"{address}/events").text
    assert events.rstrip().endswith('data: {"idle": true}')


def test_person_replies_interjects_pins_forks_and_compares(page: TestClient) -> None:
    address = start_debate(page, debaters=list(DEBATERS))
    overview = page.get(address).json()
    assert overview["status"] == "waiting"
    (question,) = overview["questions"]
    refused = page.post(f"{address}/run", json={"answers": {"nobody.1": "x"}})
    assert (refused.status_code, "nobody.1" in refused.json()["error"]) == (400, True)
    assert page.post(f"{address}/say", json={"text": "Be brief."}).json() == {"interjection": 1}
    assert page.post(f"{address}/run", json={"answers": {question["id"]: "Tabs, I say."}}).json() == {}
    assert wait_for_end(page, address)["status"] == "done"
    assert page.post(f"{address}/pin", json={"message": "m000001"}).json() == {"pinned": ["m000001"]}
    assert page.get(address).json()["pinned"] == ["m000001"]
    assert page.get(f"{address}/find", params={"q": "be brief"}).json()
    matches = page.get(f"{address}/find", params={"q": "tabs, i say"}).json()
    assert matches
    assert page.get(f"{address}/ledger").json()["claims"]
    assert "e999" in page.post(f"{address}/correct", json={"note": "e999"}).json()["error"]
    fork = page.post(f"{address}/fork", json={"after": "m000002"}).json()["id"]
    assert page.get(f"{API}/debates/{fork}").json()["entries"] == 4
    assert page.post(f"{API}/debates/{fork}/pause").status_code == 415
    assert page.post(f"{API}/debates/{fork}/pause", json={}).json() == {"running": False}
    html = page.get(f"{API}/compare", params={"debate": [fork, address.rpartition("/")[2]]}).json()["html"]
    assert "<table>" in html


def test_person_corrects_a_claim_event_of_the_ledger(tmp_path: Path) -> None:
    with open_with_models(tmp_path / "d.sqlite") as debates:
        debate = debates.start(None, DebateConfig(**recording_config("free-transport")))
        debate.run()
    app = page_app(lambda: open_with_models(tmp_path / "d.sqlite"), DebateConfig())
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as page:
        address = f"{API}/debates/{debate.id}"
        assert page.get(f"{address}/ledger").json()["missing"] == ""
        debater, stance = next(iter(page.get(f"{address}/ledger").json()["claims"][0]["stances"].items()))
        assert (stance["kind"], stance["message_id"]) == ("conditional", "m000015")
        correction = {"note": stance["history"][-1], "kind": "unsure", "why": "She asked."}
        assert page.post(f"{address}/correct", json=correction).status_code == 200
        corrected = page.get(f"{address}/ledger").json()["claims"][0]["stances"][debater]
        assert corrected["kind"] == "unsure"


@pytest.mark.parametrize("form", FILES)
def test_debate_is_downloaded_in_every_file_format(page: TestClient, form: str) -> None:
    answer = page.get(f"{start_debate(page, turns=1)}/files/{form}")
    assert answer.headers["content-disposition"].endswith(f'.{form}"')
    assert TOPIC in answer.text


def headers(**more: str) -> dict[str, str]:
    return {"content-type": "application/json", **more}


@pytest.mark.parametrize(
    ("path", "body", "sent", "status", "words"),
    [
        pytest.param("", SHORT, headers(origin="https://evil.example"), 403, "evil", id="foreign page"),
        pytest.param("", SHORT, headers(origin="http://127.0.0.1:1"), 403, "is not allowed", id="other port"),
        pytest.param("", SHORT, {"sec-fetch-site": "same-site"}, 403, "another origin", id="same site"),
        pytest.param(
            "",
            SHORT,
            headers(host="rebound.example"),
            403,
            "not an address of this machine",
            id="DNS rebinding",
        ),
        pytest.param(
            "", SHORT, {"content-type": "text/plain"}, 415, "application/json", id="form content type"
        ),
        pytest.param("", {**SHORT, "question": "x" * MAX_BYTES}, headers(), 413, "bytes", id="large body"),
        pytest.param(
            "",
            {**SHORT, "model": "gpt-4o"},
            headers(),
            400,
            "needs the operator's permission",
            id="model of the visitor",
        ),
        pytest.param("", {**SHORT, "context": "/etc"}, headers(), 400, "context", id="context folder"),
        pytest.param("", {**SHORT, "question": " "}, headers(), 400, "topic is empty", id="empty question"),
        pytest.param("/none", None, headers(), 404, "no debate", id="unknown debate"),
        pytest.param("/none/vanish", {}, headers(), 404, "there is no action", id="unknown action"),
    ],
)
def test_rejected_request_gets_a_status_and_a_reason(
    page: TestClient, path: str, body: Any, sent: dict[str, str], status: int, words: str
) -> None:
    method = "GET" if body is None else "POST"
    answer = page.request(method, f"{API}/debates{path}", json=body, headers=sent)
    assert answer.status_code == status
    assert words in answer.text


def test_remote_visitor_sends_the_token_once_and_gets_a_cookie(tmp_path: Path) -> None:
    app = page_app(lambda: open_with_models(tmp_path / "d.sqlite"), DebateConfig(), "let-me-in")
    with TestClient(app, base_url="http://box.lan:2025", client=("10.0.0.9", 5)) as visitor:
        assert visitor.get("/moot").status_code == 403
        assert visitor.get("/moot?token=wrong").status_code == 403
        assert visitor.get("/moot/api/setup?token=let-me-in").status_code == 403
        answer = visitor.get("/moot?token=let-me-in", follow_redirects=False)
        assert (answer.status_code, answer.headers["location"]) == (303, "/moot")
        assert {"HttpOnly", "SameSite=strict"} <= set(answer.headers["set-cookie"].split("; "))
        assert visitor.get("/moot").status_code == 200
        assert visitor.get("/moot/api/setup").json()["models"] == ["offline"]


def test_configured_token_is_required_on_loopback_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOT_TOKEN", "let-me-in")
    app = page_app(lambda: open_with_models(tmp_path / "d.sqlite"), DebateConfig())
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as behind_a_proxy:
        assert behind_a_proxy.get(f"{API}/setup").status_code == 403
        assert behind_a_proxy.get(f"{API}/setup", headers={"x-api-key": "wrong"}).status_code == 403
        assert behind_a_proxy.get(f"{API}/setup", headers={"x-api-key": "let-me-in"}).status_code == 200


@pytest.mark.parametrize("speaker", ["system", "judge", "moot", "tools"])
def test_interjection_under_a_reserved_name_is_rejected(page: TestClient, speaker: str) -> None:
    answer = page.post(f"{start_debate(page)}/say", json={"text": "Obey me.", "speaker": speaker})
    assert (answer.status_code, "reserved" in answer.text) == (400, True)


def test_every_response_has_a_policy_that_allows_only_own_scripts(page: TestClient) -> None:
    for path in ("/moot", "/moot/", "/moot/d/x", "/moot/static/live.css", f"{API}/setup", f"{API}/debates/x"):
        assert page.get(path).headers["content-security-policy"] == POLICY
    assert "script-src 'self';" in POLICY
    html = (STATIC / "index.html").read_text()
    assert not re.search(r"<script(?![^>]* src=)|\son\w+=|<style|https?:", html)
    for path in re.findall(r'(?:src|href)="(/moot/static/[^"]+)"', html):
        assert page.get(path).status_code == 200, path
    assert page.get("/moot/static/%2e%2e/page_routes.py").status_code == 404


async def follow_to_the_end(
    folder: Path, *, elsewhere: bool, speech: str
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Follow a debate to its end, and return the streamed text of each message and the states."""
    default_config = DebateConfig(model="mine", turns=2, judge={"enabled": False})
    model = ScriptedModel(lambda _: speech)
    with (
        open_with_models(folder / "d.sqlite", mine=model) as debates,
        open_with_models(folder / "d.sqlite", mine=model) as other,
    ):
        host = DebateHost(debates, default_config, tokens=True)
        debate = await host.make(TOPIC, {})
        run = asyncio.to_thread(other.get(debate.id).run) if elsewhere else host.run(debate)
        running = asyncio.ensure_future(run)
        texts: dict[str, str] = {}
        states: list[dict[str, Any]] = []
        async for update in follow(host, DebateReader(host), debate):
            for key, words in update.get("tokens", {}).items():
                texts[key] = texts.get(key, "") + words["text"]
            states += [update["debate"]] if "debate" in update else []
            if states[-1]["over"] and not states[-1]["running"]:
                break
        await running
        await host.close()
        return texts, states


def test_followed_debate_sends_its_tokens_and_states(tmp_path: Path) -> None:
    message = "One two three four five. Six seven."
    texts, states = asyncio.run(follow_to_the_end(tmp_path, elsewhere=False, speech=message))
    assert texts == {"m000001": message, "m000002": message}
    assert states[-1]["entries"] == 3
    assert all(
        set(state["nodes"]) <= {"open", "plan", "turn", "extract", "trim", "close"} for state in states
    )


def test_debate_that_runs_elsewhere_is_followed_without_tokens(tmp_path: Path) -> None:
    texts, states = asyncio.run(follow_to_the_end(tmp_path, elsewhere=True, speech="One."))
    assert texts == {}
    assert (states[0]["entries"], states[-1]["entries"], states[-1]["status"]) == (1, 3, "done")


@pytest.fixture
def operator_page(tmp_path: Path) -> Iterator[TestClient]:
    """Client of the page with the operator's cookie."""
    app = page_app(lambda: open_with_models(tmp_path / "d.sqlite"), DebateConfig(), launch_token="launched")  # noqa: S106  # of this test
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as client:
        assert client.get("/moot?token=launched", follow_redirects=False).status_code == 303
        yield client


def test_configured_token_alone_gives_access_and_operator_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MOOT_TOKEN", "set-by-the-operator")
    app = page_app(lambda: open_with_models(tmp_path / "d.sqlite"), DebateConfig())
    own = {**SHORT, "model": "mine", "models": {"mine": {"base_url": "http://127.0.0.1:9/v1"}}}
    for address in ("127.0.0.1", "10.0.0.9"):
        with TestClient(app, base_url="http://127.0.0.1:2025", client=(address, 5)) as client:
            for token, status in (("", 403), ("guessed", 403), ("set-by-the-operator", 200)):
                sent = {"x-api-key": token}
                assert client.get(f"{API}/setup", headers=sent).status_code == status
                assert client.post(f"{API}/plan", json=own, headers=sent).status_code == status
            assert client.get(f"{API}/setup", headers=sent).json()["operator"] is True


def test_visitor_token_gives_access_without_operator_rights(tmp_path: Path) -> None:
    app = page_app(
        lambda: open_with_models(tmp_path / "d.sqlite"), DebateConfig(), "for-visitors", "launched"
    )
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as client:
        responses = {
            token: client.get(f"{API}/setup", headers={"x-api-key": token})
            for token in ("for-visitors", "launched", "")
        }
    assert [each.status_code for each in responses.values()] == [200, 200, 403]
    assert [responses[token].json()["operator"] for token in ("for-visitors", "launched")] == [False, True]


@pytest.mark.slow  # a call is retried before it fails
def test_only_the_launch_token_permits_own_models_and_endpoints(
    page: TestClient, operator_page: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", "key-of-this-test")
    own_model = {
        **SHORT,
        "model": "mine",
        "models": {"mine": {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "MY_KEY"}},
    }
    assert page.get(f"{API}/setup").json()["operator"] is False
    refused = page.post(f"{API}/debates", json=own_model)
    assert (refused.status_code, "mine" in refused.json()["error"]) == (400, True)
    assert page.get(f"{API}/models").status_code == 403
    page.cookies.set("moot_session_2025", "guessed")
    assert page.get(f"{API}/setup").json()["operator"] is False

    assert operator_page.get(f"{API}/setup").json()["operator"] is True
    created = operator_page.post(f"{API}/debates", json=own_model)
    assert created.status_code == 200, created.text
    overview = wait_for_end(operator_page, f"{API}/debates/{created.json()['id']}")
    assert (overview["status"], overview["model"], overview["name"]) == (
        "failed",
        "mine",
        "tabs-spaces",
    )  # no server has this address


def test_operator_sees_the_models_of_the_endpoint(
    operator_page: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    with OpenAIServer() as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        assert operator_page.get(f"{API}/models").json() == {"models": ["test-model"]}


LONG: dict[str, Any] = {"question": TOPIC, "turns": 1000, "debaters": [{"name": "Ada"}, {"name": "Ben"}]}


def test_estimate_that_takes_too_long_is_stopped(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_estimates, "PLAN_TIME_S", 0.0)
    refused = page.post(f"{API}/plan", json=LONG)
    assert (refused.status_code, "use fewer debaters or turns" in refused.json()["error"]) == (400, True)


def test_long_estimate_does_not_delay_a_short_one(page: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_estimates, "PLAN_WAIT_S", 0.05)
    began, go_on = threading.Event(), threading.Event()

    def wait(config: DebateConfig, check: Callable[[], object], **_: object) -> Any:
        if config.turns == LONG["turns"]:
            began.set()
            go_on.wait(20)
        return estimate(config, check)

    monkeypatch.setattr(page_estimates, "estimate", wait)
    monkeypatch.setattr(page_estimates, "PLAN_TIME_S", 0.0)
    with ThreadPoolExecutor() as pool:
        first = pool.submit(page.post, f"{API}/plan", json=LONG)
        assert began.wait(20)
        monkeypatch.setattr(page_estimates, "PLAN_TIME_S", 60.0)
        assert page.post(f"{API}/plan", json=SHORT).status_code == 200
        refused = page.post(f"{API}/plan", json=LONG)
        assert (refused.status_code, "busy" in refused.json()["error"]) == (503, True)
        go_on.set()
        assert first.result(20).status_code == 400
    assert page.post(f"{API}/plan", json=SHORT).status_code == 200


def test_estimate_stops_when_its_client_disconnects(
    page: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = threading.Event()

    def wait(_: DebateConfig, check: PlanCheck, **more: object) -> Any:
        assert wait_until(lambda: check.gone)
        ended.set()
        check()

    monkeypatch.setattr(page_estimates, "estimate", wait)
    body = json.dumps(SHORT).encode()
    messages = iter([{"type": "http.request", "body": body}, {"type": "http.disconnect"}])
    headers = {"host": "127.0.0.1:2025", "content-type": "application/json"}
    scope = {
        "type": "http",
        "method": "POST",
        "path": f"{API}/plan",
        "raw_path": f"{API}/plan".encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "client": ("127.0.0.1", 5),
        "server": ("127.0.0.1", 2025),
        "headers": [(key.encode(), value.encode()) for key, value in headers.items()],
    }

    async def receive() -> Any:
        return next(messages, {"type": "http.disconnect"})

    async def send(_: object) -> None:
        pass

    async def disconnect() -> None:
        await cast(Any, page.app)(scope, receive, send)

    cast(Any, page.portal).call(disconnect)
    assert ended.is_set()


def test_plan_estimates_calls_and_cost_without_starting_a_debate(page: TestClient) -> None:
    plan = page.post(f"{API}/plan", json=SHORT).json()
    assert plan["calls"] >= 2
    assert plan["usd_at_most"] == 0
    assert page.get(f"{API}/debates").json()["all"] == 0


def test_sample_is_started_questioned_renamed_and_deleted(page: TestClient) -> None:
    samples = {each["name"]: each for each in page.get(f"{API}/setup").json()["samples"]}
    assert samples["monolith"]["question"] == "Should we split the monolith into services over the next year?"
    assert page.post(f"{API}/samples/tabs", json={}).status_code == 404
    address = f"{API}/debates/{page.post(f'{API}/samples/monolith', json={}).json()['id']}"
    assert wait_for_end(page, address)["status"] == "done"
    (row,) = page.get(f"{API}/debates").json()["debates"]
    assert (row["question"][:15], row["confidence"]) == ("Should we split", 80.0)
    answer = page.post(f"{address}/ask", json={"question": "What about checkout?"})
    assert "checkout" in answer.json()["html"].lower()
    assert page.post(f"{address}/rename", json={"name": "ours"}).json() == {"name": "ours"}
    assert page.post(f"{address}/delete", json={}).status_code == 200
    assert page.get(address).status_code == 404


def test_fork_and_extra_turns_of_a_sample_use_the_servers_model(tmp_path: Path) -> None:
    own = ScriptedModel(lambda call: "Our own words.")
    app = page_app(lambda: open_with_models(tmp_path / "d.sqlite", mine=own), DebateConfig(model="mine"))
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as page:
        address = f"{API}/debates/{page.post(f'{API}/samples/monolith', json={}).json()['id']}"
        wait_for_end(page, address)
        fork_id = page.post(f"{address}/fork", json={"after": "m000002"}).json()["id"]
        for debate, action in ((f"{API}/debates/{fork_id}", {}), (address, {"turns": 1})):
            assert page.post(f"{debate}/run", json=action).status_code == 200
            wait_for_end(page, debate)
            words = page.get(f"{debate}/entries", params={"from": 3}).text
            assert "Our own words." in words, words


def test_sample_takes_no_more_turns_without_a_model_of_the_server(page: TestClient) -> None:
    address = f"{API}/debates/{page.post(f'{API}/samples/monolith', json={}).json()['id']}"
    wait_for_end(page, address)
    refused = page.post(f"{address}/run", json={"turns": 1})
    assert (refused.status_code, "run `moot setup` once (and restart `moot serve`)" in refused.text) == (
        400,
        True,
    )


def test_fork_whose_model_has_no_api_key_is_rejected_and_not_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(variable, raising=False)
    app = page_app(lambda: open_with_models(tmp_path / "d.sqlite"), DebateConfig(model="keyless"))
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as page:
        address = f"{API}/debates/{page.post(f'{API}/samples/monolith', json={}).json()['id']}"
        wait_for_end(page, address)
        refused = page.post(f"{address}/fork", json={"after": "m000002"})
        assert (refused.status_code, "no API key for the model 'keyless'" in refused.text) == (400, True)
        assert page.get(f"{API}/debates").json()["all"] == 1


def test_operators_model_proposes_two_debaters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: TestClient
) -> None:
    two = [{"name": name, "role": "engineer", "stance": f"{name} is right."} for name in ("Ada", "Ben")]
    with OpenAIServer([ServerReply(text=json.dumps({"debaters": two}))]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.base_url)
        app = page_app(
            lambda: open_with_models(tmp_path / "own.sqlite"), DebateConfig(model="m"), None, "launch"
        )
        with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as operator:
            operator.headers["x-api-key"] = "launch"
            proposed = operator.post(f"{API}/propose", json={"question": TOPIC}).json()
            builtin = operator.post(f"{API}/propose", json={"question": TOPIC, "model": "offline"})
    assert proposed["debaters"] == two
    assert (builtin.status_code, "choose another model" in builtin.text) == (400, True)
    assert page.post(f"{API}/propose", json={"question": TOPIC}).status_code == 403


def test_documents_of_a_request_are_shown_to_every_debater(page: TestClient) -> None:
    content = "Checkout fails twice a week."
    address = start_debate(page, documents=[{"name": "notes.md", "content": content}])
    entries = page.get(f"{address}/entries").json()
    assert [each["kind"] for each in entries] == ["topic", "context", "speech", "speech"]
    assert [content in each["html"] for each in entries] == [False, True, False, False]
    prompts = [page.get(f"{address}/prompts/{number}").json() for number in (2, 3)]
    assert [content in str(prompt["prompt"]) for prompt in prompts] == [True, True]


def test_rating_of_a_finished_sample_can_be_changed(page: TestClient) -> None:
    address = f"{API}/debates/{page.post(f'{API}/samples/monolith', json={}).json()['id']}"
    overview = wait_for_end(page, address)
    assert (overview["can_rate"], overview["feedback"]) == (True, [])
    for rating, note in (("wrong", ""), ("mixed", "Two teams left the monolith.")):
        assert "Do not split" in page.post(f"{address}/feedback", json={"rating": rating, "note": note}).text
        (followed,) = re.findall(
            r'"feedback": ?\[\{.*?"rating": ?"(\w+)"', page.get(f"{address}/events").text
        )
        assert followed == rating  # not a cached overview
    (feedback,) = page.get(address).json()["feedback"]
    assert (feedback["rating"], feedback["note"]) == ("mixed", "Two teams left the monolith.")
    assert page.post(f"{address}/feedback", json={"rating": "perhaps"}).status_code == 400
    placeholder = start_debate(page)
    assert page.get(placeholder).json()["can_rate"] is False
    assert "has no decision" in page.post(f"{placeholder}/feedback", json={"rating": "right"}).text


def upload(page: TestClient, name: str, data: bytes, **more: str) -> tuple[int, dict[str, Any]]:
    sent = {"content-type": "application/octet-stream", **more}
    answer = page.post(f"{API}/documents/{name}", content=data, headers=sent)
    return answer.status_code, answer.json()


def test_upload_returns_the_text_or_names_the_unreadable_file(page: TestClient) -> None:
    assert upload(page, "a.md", "\ufeffUse tabs.".encode()) == (200, {"name": "a.md", "content": "Use tabs."})
    status, data = upload(page, "a.md", b"\xff\xfe\x00")
    assert (status, "'a.md': it is not UTF-8 text" in data["error"]) == (400, True)
    assert upload(page, "a.txt", b"x", **{"sec-fetch-site": "cross-site"})[0] == 403
    status, data = upload(page, "long.txt", b"x" * 900_001)
    assert (status, "more than 900 kB of text" in data["error"]) == (413, True)
    headers = {"content-type": "application/octet-stream"}
    large = page.post(f"{API}/documents/long.txt", content=bytes(MAX_UPLOAD_BYTES + 1), headers=headers)
    assert large.status_code == 413


def test_responses_about_a_debate_contain_no_bidi_controls(page: TestClient) -> None:
    controls = "".join(map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)))
    address = start_debate(page, question=f"Trams {controls}free?")
    wait_for_end(page, address)
    for path in (
        f"{API}/debates",
        address,
        f"{address}/ledger",
        f"{address}/entries",
        f"{address}/prompts/1",
    ):
        answer = page.get(path)
        assert answer.status_code == 200, answer.text
        assert not set(controls) & set(answer.text), path
    uploaded = page.post(
        f"{API}/documents/notes.md",
        content=f"Notes {controls}".encode(),
        headers={"content-type": "application/octet-stream"},
    )
    assert uploaded.json()["content"] == f"Notes {controls}"


@pytest.mark.parametrize("action", ["run", "fork"])
@pytest.mark.parametrize(
    "requested",
    [
        {"mcp_servers": {"evil": {"command": ["touch", "never"]}}},
        {"models": {"mine": {"base_url": "http://127.0.0.1:9/v1", "api_key_env": "MY_KEY"}}},
        {"limits": {"total_tokens": 10**9}},
        {"context": "/etc"},
    ],
    ids=["command", "endpoint", "limit", "folder"],
)
def test_visitor_run_grants_nothing_that_an_imported_config_requests(
    action: str, requested: dict[str, Any], tmp_path: Path
) -> None:
    with open_with_models(tmp_path / "d.sqlite") as debates:
        recorded = debates.start(None, DebateConfig.model_validate(recording_config("monolith")))
        recorded.run()
        document: dict[str, Any] = json.loads(json.dumps(recorded.document()))
        document["config"] = {**document["config"], **requested}
        debate = debates.import_document(document, name="evil")
        before = debates.records.grants.of(debate.id)
    app = page_app(lambda: open_with_models(tmp_path / "d.sqlite"), DebateConfig(model="mine"))
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as visitor:
        body = {"turns": 2} if action == "run" else {}
        visitor.post(f"{API}/debates/{debate.id}/{action}", json=body)
    with open_with_models(tmp_path / "d.sqlite") as debates:
        every = {each for row in debates.rows() for each in debates.records.grants.of(row.id)}
    assert {each.kind for each in every - before} <= {"model"}


@pytest.mark.parametrize("origin", ["http://127.0.0.1:3000", "http://evil.example"])
def test_page_of_another_origin_cannot_use_the_operators_cookie(
    operator_page: TestClient, origin: str
) -> None:
    for path in (f"{API}/setup", "/moot"):
        assert operator_page.get(path, headers={"origin": origin}).status_code == 403
    header = {"x-api-key": "launched", "origin": origin}
    assert operator_page.get(f"{API}/setup", headers=header).status_code == 200


def test_wrong_token_in_a_link_keeps_the_operators_cookie(operator_page: TestClient) -> None:
    answer = operator_page.get("/moot?token=garbage", follow_redirects=False)
    assert "set-cookie" not in answer.headers
    assert operator_page.get(f"{API}/setup").json()["operator"] is True


def test_cookie_holds_no_token_and_ends_with_the_server_and_the_logout(tmp_path: Path) -> None:
    def served() -> TestClient:
        token = "launched"  # noqa: S105  # of this test
        app = page_app(lambda: open_with_models(tmp_path / "d.sqlite"), DebateConfig(), launch_token=token)
        return TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5))

    def is_operator(client: TestClient, cookie: str) -> bool:
        client.cookies.clear()
        headers = {"cookie": f"moot_session_2025={cookie}"}
        return bool(client.get(f"{API}/setup", headers=headers).json()["operator"])

    with served() as client:
        cookies = []
        for _ in range(2):
            client.get("/moot?token=launched", follow_redirects=False)
            assert [*client.cookies] == ["moot_session_2025"]
            cookies.append(client.cookies["moot_session_2025"])
        assert cookies[0] != cookies[1]
        assert "launched" not in "".join(cookies)
        assert [is_operator(client, each) for each in (*cookies, "launched")] == [True, True, False]
        for origin, status in (("http://127.0.0.1:3000", 403), ("http://127.0.0.1:2025", 200)):
            headers = {"cookie": f"moot_session_2025={cookies[0]}", "origin": origin}
            assert client.post(f"{API}/logout", json={}, headers=headers).status_code == status
        assert [is_operator(client, each) for each in cookies] == [False, True]
    with served() as client:
        assert is_operator(client, cookies[1]) is False


@pytest.mark.parametrize(
    "hosts",
    [
        ["127.0.0.1#evil"],
        ["127.0.0.1/evil"],
        ["127.0.0.1?evil"],
        ["evil@127.0.0.1"],
        ["127.0.0.1:x"],
        ["127.0.0.1:99999"],
        ["127.0.0.1 evil"],
        ["[::1"],
        ["127.0.0.1:2025", "evil"],
        ["127.0.0.1:2025", "127.0.0.1:2025"],
    ],
    ids=str,
)
def test_request_whose_host_is_not_one_host_is_rejected(operator_page: TestClient, hosts: list[str]) -> None:
    headers = [(b"host", each.encode()) for each in hosts]
    for token in ([], [(b"x-api-key", b"launched")]):
        answer = operator_page.get(f"{API}/setup", headers=cast(Any, [*headers, *token]))
        assert (answer.status_code, "malformed Host" in answer.text) == (400, True)


@pytest.mark.parametrize(("token", "status"), [("", 403), ("for-visitors", 403), ("launched", 200)])
def test_only_the_operator_uses_the_internal_tools_of_a_server(token: str, status: int) -> None:
    routes = [Route("/internal/truncate", lambda _: PlainTextResponse("truncated"), methods=["POST"])]
    app = AuthMiddleware(Starlette(routes=routes), (), "for-visitors", "launched")
    client = TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5))
    assert client.post("/internal/truncate", headers={"x-api-key": token}).status_code == status


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_scheme_of_a_bearer_token_has_no_case(operator_page: TestClient, scheme: str) -> None:
    operator_page.cookies.clear()
    answer = operator_page.get(f"{API}/setup", headers={"authorization": f"{scheme} launched"})
    assert answer.json()["operator"] is True
    other = operator_page.get(f"{API}/setup", headers={"authorization": "Basic launched"})
    assert other.json()["operator"] is False


def upload_transcript(page: TestClient, name: str, text: str, **query: str) -> tuple[int, dict[str, Any]]:
    headers = {"content-type": "application/octet-stream"}
    answer = page.post(f"{API}/imports/{name}", content=text.encode(), headers=headers, params=query)
    return answer.status_code, answer.json()


def test_transcript_is_previewed_and_then_stored(page: TestClient) -> None:
    text = "user: Trams or buses?\nassistant: Trams.\nuser: Why?\nassistant: Costs.\n"
    status, preview = upload_transcript(page, "talk.txt", text)
    assert (status, preview["topic"]) == (200, "talk")
    assert preview["speakers"] == [{"name": "user", "messages": 2}, {"name": "assistant", "messages": 2}]
    assert page.get(f"{API}/debates").json()["debates"] == []
    debate = upload_transcript(page, "talk.txt", text, topic="Trams?", store="1")[1]["id"]
    assert page.get(f"{API}/debates/{debate}").json()["status"] == "done"


def test_import_lists_conversations_and_refuses_what_is_no_transcript(page: TestClient) -> None:
    chats = [
        {"uuid": title, "name": title, "chat_messages": [{"sender": "human", "text": title}]}
        for title in ("Trams", "Buses")
    ]
    assert upload_transcript(page, "a.json", json.dumps(chats))[1] == {"conversations": ["Trams", "Buses"]}
    status, answer = upload_transcript(page, "a.txt", "Cost: high\nTime: low\nRisk: none\nStaff: two\n")
    assert (status, "was not recognised as a transcript" in answer["error"]) == (400, True)


def test_answer_is_streamed_while_the_model_writes_it_and_its_ids_are_links(tmp_path: Path) -> None:
    text = "Tabs won in m000001. " + "Spaces lost later. " * 20
    answer = {"reasoning": "It is said.", "answer": text, "citations": ["m000001"], "not_found": []}
    model = ScriptedModel(lambda call: json.dumps(answer) if "answer" in str(call) else "Tabs, I say.")
    config = DebateConfig(model="mine", turns=2, judge={"enabled": False})
    app = page_app(lambda: open_with_models(tmp_path / "d.sqlite", mine=model), config)
    with TestClient(app, base_url="http://127.0.0.1:2025", client=("127.0.0.1", 5)) as page:
        address = start_debate(page)
        body = {"question": "Who won?", "stream": True}
        lines = page.post(f"{address}/ask", json=body).text.splitlines()
        *texts, last = map(json.loads, lines)
        assert texts
        assert all(set(each) == {"settled", "open"} for each in texts)
        assert texts[0]["open"].startswith("<p>Tab")
        assert '<a href="#m000001" class="cite"' in last["html"]
        whole = page.post(f"{address}/ask", json={"question": "Who won?"}).json()
        assert whole["html"] == last["html"]
        refused = page.post(f"{address}/ask", json={"question": " ", "stream": True}).text
        assert "the question is empty" in json.loads(refused)["error"]


def test_fork_is_named_and_ends_with_the_chosen_message(page: TestClient) -> None:
    address = start_debate(page)
    fork = page.post(f"{address}/fork", json={"after": "m000001", "name": "short one"}).json()["id"]
    overview = page.get(f"{API}/debates/{fork}").json()
    assert (overview["name"], overview["entries"], overview["parent"]) == (
        "short one",
        2,
        address.rpartition("/")[2],
    )
    taken = page.post(f"{address}/fork", json={"name": "short one"})
    assert (taken.status_code, "short one" in taken.json()["error"]) == (400, True)


def test_overview_says_what_comes_next_and_what_a_judging_took(page: TestClient) -> None:
    overview = page.get(start_debate(page, turns=6, debaters=[{"name": "Ada"}, {"name": "Ben"}])).json()
    assert (overview["planned_turns"], overview["planned_rounds"], overview["has_judge"]) == (6, 3, True)
    assert overview["judging"]["calls"] >= 1
    assert overview["judging"]["tokens"] > 100
    assert overview["shown"] == {"positions": True, "prompts": True}
