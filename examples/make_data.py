"""Makes the sample data beside it, the same every time: `python examples/make_data.py`."""

from __future__ import annotations

import json
import random
from datetime import datetime, timedelta
from pathlib import Path

from thalweg.engine.generators import make_generator, write_files

HERE = Path(__file__).parent


def auctions() -> None:
    """Ten hours of a small auction house: about 250 openings, and their closings."""
    for stream, limit, form in (("OpenAuction", 250, "csv"), ("ClosedAuction", 220, "json")):
        options = {"rate": "0.12", "seed": "1", "limit": str(limit)}
        (written,) = write_files(
            make_generator("auctions", options), stream, HERE / "auction", limit, form
        )
        written.rename(HERE / "auction" / f"{stream}.{form}")


def packets() -> None:
    """An hour of three routers, a folder of files for each."""
    options = {"rate": "0.0625", "hosts": "60", "seed": "1", "limit": "90"}
    for router in ("X", "Y", "Z"):
        folder = HERE / "packets" / router
        write_files(make_generator("packets", options), router, folder, 40, "csv")


STOCKS = {
    "GOOGLE": ("NasdaqGS", 302.0),
    "Microsoft": ("NasdaqGS", 19.9),
    "Apple": ("NasdaqGS", 76.0),
    "Intel": ("NasdaqGS", 24.0),
    "IBM": ("NYSE", 82.0),
    "SAP": ("XETRA", 39.0),
}


def stocks() -> None:
    """A morning of six stocks, quoted every two minutes."""
    chance = random.Random(1)
    prices = {name: price for name, (_, price) in STOCKS.items()}
    with (HERE / "stocks" / "quotes.json").open("w") as out:
        for step in range(75):
            moment = datetime(2025, 3, 3, 9, 30) + timedelta(minutes=2 * step)
            for name, (market, _) in STOCKS.items():
                prices[name] = round(prices[name] * chance.gauss(1.0, 0.006), 2)
                quote = {"name": name, "market": market, "price": prices[name]}
                out.write(json.dumps({**quote, "time": f"{moment:%Y-%m-%d %H:%M:%S}"}) + "\n")


if __name__ == "__main__":
    for folder in ("auction", "packets", "stocks"):
        (HERE / folder).mkdir(exist_ok=True)
    auctions()
    packets()
    stocks()
