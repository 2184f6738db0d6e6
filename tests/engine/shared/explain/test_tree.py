from thalweg.engine.shared.explain.tree import Branch


def test_inputs_hang_below_with_their_remarks() -> None:
    tree = Branch(
        "join",
        ("a remark",),
        (Branch("left", ("of the left",), (Branch("deep"),)), Branch("right", ("of the right",))),
    )
    assert tree.text().splitlines() == [
        "join",
        "│  a remark",
        "├─ left",
        "│  │  of the left",
        "│  └─ deep",
        "└─ right",
        "      of the right",
    ]


def test_facts_are_for_programs_only() -> None:
    assert Branch("x", facts={"rows": 3}).data() == {
        "title": "x",
        "remarks": [],
        "rows": 3,
        "inputs": [],
    }
    assert "3" not in Branch("x", facts={"rows": 3}).text()
