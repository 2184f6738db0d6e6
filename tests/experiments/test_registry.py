import pytest

from thalweg.experiments.registry import UnknownExperiment, experiments, load


def test_every_file_is_an_experiment_but_those_that_are_shared(folder):
    assert experiments() == {"broken": "Never runs.", "coin-toss": "How often a coin shows heads."}


def test_a_new_file_is_all_it_takes(folder):
    (folder / "a_new_one.py").write_text('"""Fresh."""\n')
    assert list(experiments()) == ["a-new-one", "broken", "coin-toss"]


def test_an_experiment_is_loaded_by_its_name(folder):
    assert load("coin-toss").Parameters().seeds == 20


@pytest.mark.parametrize("name", ["coin-tos", "coin_toss", "toss-coin"])
def test_an_unknown_name_gets_a_suggestion(folder, name):
    with pytest.raises(UnknownExperiment, match="did you mean coin-toss"):
        load(name)


def test_a_name_like_no_other_gets_none(folder):
    with pytest.raises(UnknownExperiment) as caught:
        load("xyz")
    assert "did you mean" not in str(caught.value)


def test_every_experiment_of_the_catalogue_has_the_common_form():
    for name, about in experiments().items():
        module = load(name)
        assert about, name
        assert isinstance(module.Parameters(), module.Parameters), name
        assert isinstance(module.Parameters.quick(), module.Parameters), name
        assert callable(module.run), name
