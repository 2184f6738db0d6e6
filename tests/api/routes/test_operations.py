from tests.api.conftest import LiveService


def test_health_says_how_it_goes(service: LiveService) -> None:
    answer = service.http.get("/health")
    assert answer.status_code == 200
    assert answer.json() == {
        "ok": True,
        "tick": 0,
        "backlog": 0,
        "queries": 0,
        "streams": 0,
        "error": None,
        "problems": [],
    }
    service.site.ticker.stop()  # a tick would find nothing wrong
    service.site.ticker.error = "OSError: No space left on device"
    answer = service.http.get("/health")
    assert answer.status_code == 503
    assert answer.json()["error"] == "OSError: No space left on device"


def test_metrics_are_for_prometheus(service: LiveService) -> None:
    answer = service.http.get("/metrics")
    assert answer.headers["content-type"].startswith("text/plain")
    assert "thalweg_healthy 1.0" in answer.text.splitlines()
