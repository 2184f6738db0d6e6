"""The network of the experiments: shortest paths, and the trees that follow from them."""

from __future__ import annotations

import numpy as np
import pytest

from thalweg.experiments.cosmos.setting import setting


def test_the_links_of_a_path_add_up_to_its_latency() -> None:
    made = setting(1, providers=12, sources=5, nodes=96)
    for source, (paths, link_ms) in enumerate(
        zip(made.trees.paths, made.trees.link_ms, strict=True)
    ):
        assert paths.T @ link_ms == pytest.approx(made.network.source_ms[source])
    assert not set(made.providers.tolist()) & set(made.sources.tolist())
    assert (np.diag(made.network.latency_ms) == 0).all()


def test_too_many_providers_are_refused() -> None:
    with pytest.raises(ValueError, match="don't fit on 96 nodes"):
        setting(1, providers=90, sources=50, nodes=96)
