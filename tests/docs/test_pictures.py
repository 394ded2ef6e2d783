"""The pictures of the page on mechanisms are those of a fresh run, and the run shows what the page says."""

from xml.etree import ElementTree

import pytest

from tools.pictures import FOLDER, PLOT, ROOT, TITLES, WIDTH, measured, pictures
from trailboss.mechanisms.registry import MECHANISMS
from trailboss.simulator.measures import Outcome

PAGE = ROOT / "docs/mechanisms.md"


def test_every_mechanism_has_a_picture_on_the_page() -> None:
    """And the folder holds no other drawing."""
    assert set(TITLES) == set(MECHANISMS)
    assert {path.name for path in (ROOT / FOLDER).glob("*.svg")} == {f"{name}.svg" for name in MECHANISMS}
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"](pictures/{name}.svg)" in page for name in MECHANISMS)


@pytest.mark.slow
def test_pictures_equal_those_of_a_fresh_run() -> None:
    """``python -m tools.reference`` would change nothing."""
    for path, drawn in pictures().items():
        assert (ROOT / path).read_text(encoding="utf-8") == drawn


@pytest.mark.slow
def test_pictures_are_well_formed_and_hold_what_they_draw() -> None:
    """Nothing is drawn outside; one block has a width of its own."""
    workload, _ = measured()
    assert PLOT % workload.blocks == 0
    for drawn in pictures().values():
        root = ElementTree.fromstring(drawn)
        assert root.attrib["width"] == str(WIDTH)
        height = int(root.attrib["height"])
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            assert 0 < int(text.attrib["x"]) < WIDTH
            assert 0 < int(text.attrib["y"]) < height


def outcomes(group: str) -> dict[str, Outcome]:
    """Return what each mechanism made of a group of the congested workload."""
    workload, results = measured()
    index = [each.name for each in workload.actors].index(group)
    return {result.mechanism: result.groups[index].outcome for result in results}


def latest(group: str) -> dict[str, int]:
    """Return by how many blocks the latest fire of a group was late, under each mechanism."""
    return {name: outcome.late_max or 0 for name, outcome in outcomes(group).items()}


@pytest.mark.slow
def test_run_shows_what_the_page_says() -> None:
    """The words beside the pictures."""
    rich, wave, poor, patient = (latest(group) for group in ("rich", "wave", "poor", "patient"))
    assert (rich["lane"], rich["auction"], rich["globalbox"]) == (0, 0, 0)
    # Under FIFO all are late alike.
    assert max(rich["fifo"], wave["fifo"], poor["fifo"], patient["fifo"]) <= 2 * min(rich["fifo"], patient["fifo"])
    # In the lane and in the auction those who offer least wait longer than the wave lasts; in Globalbox they do not.
    for name in ("lane", "auction"):
        assert min(poor[name], patient[name]) > 30
        assert wave[name] < poor[name]
    assert wave["globalbox"] < poor["globalbox"] < patient["globalbox"]
    assert patient["globalbox"] - wave["globalbox"] <= 20
    # The poor's timers end for lack of money, but in the auction they wait for it.
    assert {name: outcome.unfunded > 0 for name, outcome in outcomes("poor").items()} == {
        "fifo": True,
        "lane": True,
        "auction": False,
        "globalbox": True,
    }
    assert outcomes("poor")["auction"].overdue > 0
