"""The pictures of the page on mechanisms are those of a fresh run, and the run shows what the page says."""

from xml.etree import ElementTree

from tools.pictures import FOLDER, PLOT, ROOT, TITLES, WIDTH, PictureRun, measured, pictures
from trailboss.mechanisms.registry import MECHANISMS

PAGE = ROOT / "docs/mechanisms.md"


def test_every_mechanism_has_a_picture_on_the_page() -> None:
    """And the folder holds no other drawing."""
    assert set(TITLES) == set(MECHANISMS)
    assert {path.name for path in (ROOT / FOLDER).glob("*.svg")} == {f"{name}.svg" for name in MECHANISMS}
    page = PAGE.read_text(encoding="utf-8")
    assert all(f"](pictures/{name}.svg)" in page for name in MECHANISMS)


def test_pictures_equal_those_of_a_fresh_run() -> None:
    """``python -m tools.reference`` would change nothing."""
    for path, drawn in pictures().items():
        assert (ROOT / path).read_text(encoding="utf-8") == drawn


def test_pictures_are_well_formed_and_hold_what_they_draw() -> None:
    """Nothing is drawn outside; one block has a width of its own."""
    scenario, _ = measured()
    assert PLOT % scenario.blocks == 0
    for drawn in pictures().values():
        root = ElementTree.fromstring(drawn)
        assert root.attrib["width"] == str(WIDTH)
        height = int(root.attrib["height"])
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            assert 0 < int(text.attrib["x"]) < WIDTH
            assert 0 < int(text.attrib["y"]) < height


def number_of(name: str) -> int:
    """Return the number of an agent of the scenario."""
    scenario, _ = measured()
    return [row.name for row in scenario.agents].index(name)


def latest(name: str) -> dict[str, int]:
    """Return by how many blocks the latest fire of an agent was late, under each mechanism."""
    return {run.mechanism: run.late(number_of(name))[-1] for run in measured()[1]}


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
    runs: dict[str, PictureRun] = {run.mechanism: run for run in measured()[1]}
    number = number_of("poor")
    ended = {name: run.unfunded[number] > 0 for name, run in runs.items()}
    assert ended == {"fifo": True, "lane": True, "auction": False, "globalbox": True}
    assert {name: run.waiting[number] > 0 for name, run in runs.items()} == {
        name: not ends for name, ends in ended.items()
    }


def test_budget_is_one_and_fifo_leaves_some_of_it() -> None:
    """FIFO reserves gas limits; the others fill a block by use."""
    runs = {run.mechanism: run for run in measured()[1]}
    assert {run.budget for run in runs.values()} == {1_000_000}
    fullest = {name: max(block.cycles for block in run.blocks) for name, run in runs.items()}
    assert fullest["fifo"] < fullest["lane"] <= 1_000_000
