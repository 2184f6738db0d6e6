from thalweg.cli.follow import Event, parse_events


def test_events_are_read_as_the_standard_says() -> None:
    lines = [
        "retry: 1000",
        "",
        "id: 1-0",
        'data: {"a": 1}',
        "",
        ": a comment",
        "",
        "id: 7",
        "",
        "event: end",
        "data: x",
        "data:y",
        "",
        "id: cut off",
    ]
    assert list(parse_events(iter(lines))) == [
        Event("message", "1-0", '{"a": 1}'),
        Event("message", "7", None),
        Event("end", None, "x\ny"),
    ]
