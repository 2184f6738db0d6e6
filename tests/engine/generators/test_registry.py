import pytest

from thalweg.engine.generators import GENERATORS, GeneratorError, open_generator


def test_uri_opens_a_stream_whatever_its_case():
    generator, stream = open_generator("generator:Auctions/openauction", {"seed": "7"})
    assert (generator.name, stream, generator.settings.seed) == ("auctions", "OpenAuction", 7)


def test_names_are_unique():
    assert len({kind.name for kind in GENERATORS}) == len(GENERATORS)


@pytest.mark.parametrize(
    ("uri", "message"),
    [
        ("auctions/Bid", "not of the form generator:name/Stream"),
        ("generator:auctions", "not of the form generator:name/Stream"),
        ("generator:auktions/Bid", "no generator auktions; did you mean auctions"),
        ("generator:stocks/Qoute", "stocks has no stream Qoute; did you mean Quote"),
    ],
)
def test_mistake_in_a_uri_is_named(uri, message):
    with pytest.raises(GeneratorError, match=message):
        open_generator(uri)
