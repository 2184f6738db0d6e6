import threading
import time
from pathlib import Path

import httpx
from tests.api.conftest import LiveService

from thalweg.cli.follow import Event, parse_events

SCRIPT = "CREATE STREAM S (a INTEGER) TIMESTAMP BY ts; CREATE QUERY q AS SELECT a FROM S"


def push(service: LiveService, ts: int) -> None:
    service.http.post("/streams/S/tuples", json=[{"ts": ts, "a": ts}])


def take(service: LiveService, count: int, last_id: str | None = None) -> list[Event]:
    """So many rows, or the end, as a client sees them that then hangs up."""
    headers = {"Last-Event-ID": last_id} if last_id else {}
    found: list[Event] = []
    with httpx.stream(
        "GET", f"{service.url}/queries/q/results", headers=headers, timeout=120, trust_env=False
    ) as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        for event in parse_events(answer.iter_lines()):
            if event.kind != "frontier":
                found.append(event)
            if len(found) == count:
                break
    return found


def test_a_client_that_keeps_its_id_gets_every_row_once(service: LiveService) -> None:
    service.http.post("/queries", content=SCRIPT)
    for ts in range(20):
        push(service, ts)
        service.site.settle()
    seen: list[Event] = []
    for size in (1, 5, 2, 7, 4):
        seen += take(service, size, seen[-1].id if seen else None)
    assert [event.data for event in seen] == [
        f'{{"query":"q","ts":{ts},"op":"+","row":{{"a":{ts}}}}}' for ts in range(19)
    ]
    assert len({event.id for event in seen}) == 19


def test_rows_are_pushed_as_they_come(service: LiveService) -> None:
    service.http.post("/queries", content=SCRIPT)
    found: list[Event] = []
    rows = threading.Semaphore(0)

    def follow() -> None:
        with httpx.stream(
            "GET", f"{service.url}/queries/q/results", timeout=120, trust_env=False
        ) as answer:
            for event in parse_events(answer.iter_lines()):
                if event.kind != "frontier":
                    found.append(event)
                    rows.release()

    follower = threading.Thread(target=follow)
    follower.start()
    push(service, 0)
    for ts in range(1, 6):
        push(service, ts)  # row i becomes final with tuple i + 1
        assert rows.acquire(timeout=120)
    service.http.delete("/queries/q")
    follower.join(120)
    assert not follower.is_alive()
    assert found[-1] == Event("end", None, '{"reason": "stopped"}')
    assert len(found) == 6


def test_ids_move_on_in_ticks_that_say_nothing(tmp_path: Path) -> None:
    """Else a quiet query's reader would come back with an id whose results are long gone."""
    service = LiveService(tmp_path / "quiet", retained_ticks=5)
    try:
        service.http.post("/queries", content=SCRIPT + " WHERE a < 2; SELECT COUNT(*) FROM S")
        for ts in range(15):
            push(service, ts)
            service.site.settle()
        ids: list[str] = []
        with httpx.stream(
            "GET", f"{service.url}/queries/q/results", timeout=120, trust_env=False
        ) as answer:
            for event in parse_events(answer.iter_lines()):
                if event.kind == "frontier":
                    assert event.id == "1.14"
                    assert event.data == '{"frontier": 14}'
                    ids.append(event.id)
                    break
        for ts in range(15, 18):
            push(service, ts)
            service.site.settle()
        assert (
            service.http.get(f"/queries/q/results?format=json&after={ids[-1]}").json()["rows"] == []
        )
        gone = service.http.get("/queries/q/results?format=json&after=1.2.0")
        assert gone.status_code == 410
    finally:
        service.close()


def test_a_query_whose_streams_have_ended_ends_its_events(service: LiveService) -> None:
    service.http.post("/queries", content=SCRIPT)
    push(service, 1)
    service.http.post("/streams/S/finish")
    assert [e.kind for e in take(service, 2)] == ["message", "end"]


def test_the_service_stops_while_clients_follow(tmp_path: Path) -> None:
    service = LiveService(tmp_path / "stopping")
    service.http.post("/queries", content=SCRIPT)
    got: list[Event] = []
    follower = threading.Thread(target=lambda: got.extend(take(service, 5)))
    follower.start()
    push(service, 1)
    time.sleep(0.3)
    began = time.monotonic()
    service.close()
    follower.join(60)
    assert not follower.is_alive()
    assert time.monotonic() - began < 9  # at 10 s it would be ended the hard way
