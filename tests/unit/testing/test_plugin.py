"""The pytest plugin in a project of its own."""

import pytest

pytestmark = pytest.mark.slow


def test_fixture_gives_a_fresh_chain_when_a_project_asks_for_it(pytester: pytest.Pytester) -> None:
    """No import, no configuration; the marker starts the chain otherwise, the nearest one last."""
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.trailboss(preset="minimal")


        def test_fresh(chain):
            assert chain.height == 0
            chain.mine()


        def test_fresh_again(chain):
            assert chain.height == 0
            assert chain.chain.params.calendar.ring_size == 8


        @pytest.mark.trailboss(params={"timers.max_timers_per_actor": 3})
        def test_marked(chain):
            assert chain.chain.params.calendar.ring_size == 8
            assert chain.chain.rules().timer.max_timers_per_actor == 3
        """
    )
    pytester.runpytest_inprocess("--strict-markers").assert_outcomes(passed=3)


def test_fixture_gives_a_fresh_chain_when_the_marker_names_a_directory(pytester: pytest.Pytester) -> None:
    """Each test has its own, below its ``tmp_path``, so tests and workers do not meet."""
    pytester.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.trailboss(data_dir="kept")


        @pytest.mark.parametrize("number", range(2))
        def test_fresh(chain, tmp_path, number):
            assert chain.height == 0
            chain.mine()
            assert (tmp_path / "kept" / "chain.mdb").exists()
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(passed=2)
    assert not (pytester.path / "kept").exists()


def test_marker_is_refused_when_it_has_positional_arguments(pytester: pytest.Pytester) -> None:
    """The message names the mistake."""
    pytester.makepyfile(
        """
        import pytest


        @pytest.mark.trailboss("minimal")
        def test_marked(chain):
            pass
        """
    )
    ended = pytester.runpytest_inprocess()
    ended.assert_outcomes(errors=1)
    ended.stdout.fnmatch_lines(["*@pytest.mark.trailboss takes keywords only, got ('minimal',)*"])


def test_plugin_imports_nothing_when_pytest_starts(pytester: pytest.Pytester) -> None:
    """Coverage must see the package's own imports, so they wait until a test asks for a chain."""
    pytester.makepyfile(
        """
        import sys


        def test_nothing_is_loaded():
            loaded = [name for name in sys.modules if name.startswith("trailboss.")]
            assert sorted(loaded) == ["trailboss.testing", "trailboss.testing.plugin"]
        """
    )
    pytester.runpytest_subprocess().assert_outcomes(passed=1)


def test_failing_test_shows_its_own_line_and_what_happened(pytester: pytest.Pytester) -> None:
    """Not the lines of the package: of expectations, of those that make no sense, and of calls that raise."""
    pytester.makepyfile(
        """
        import pytest

        SHOP = "def pay(payload):\\n    raise ValueError('no money')\\n"


        @pytest.fixture
        def shop(chain):
            return chain.label(chain.deploy(SHOP, sender=chain.accounts[0]), "shop")


        def test_plain(chain, shop):
            assert shop.call("pay", sender=chain.accounts[0]).ok


        def test_expected(chain, shop):
            with chain.expect_revert("E1202"):
                shop.call("pay", sender=chain.accounts[0])


        def test_meaningless(chain, shop):
            with chain.expect_fires(-1):
                chain.mine()


        def test_checked(chain, shop):
            shop.call("pay", sender=chain.accounts[0], check=True)


        def test_gathered(chain, shop):
            with chain.one_block():
                shop.call("pay", sender=chain.accounts[0], check=True)


        def test_unknown(chain, shop):
            chain.explain(bytes(32))


        def test_equal(chain, shop):
            one, other = (shop.call("pay", sender=each) for each in chain.accounts[:2])
            assert one == other
        """
    )
    result = pytester.runpytest_inprocess("-vv")
    result.assert_outcomes(failed=7)
    result.stdout.fnmatch_lines(
        [
            ">       assert shop.call(*",
            "E        +  where False = <Receipt reverted with E1210 pvm_error: ValueError: no money, line 2, in pay, *",
            ">       with chain.expect_revert(*",
            "E       AssertionError: expected: exactly one receipt fails with E1202",
            ">       with chain.expect_fires(-1):",
            "E       ValueError: expect_fires(count=-1): at least 0",
            ">       shop.call(*check=True)",
            "E       trailboss.testing.parties.RevertedError: reverted: E1210 pvm_error: ValueError: no money *",
            ">       with chain.one_block():",
            "E       trailboss.testing.parties.RevertedError: reverted: E1210 pvm_error: ValueError: no money *",
            ">       chain.explain(bytes(32))",
            "E       trailboss.primitives.errors.Rejection: E1203 not_found: no block of this chain scheduled *",
            ">       assert one == other",
            "E *  payer: account 0 (0x*) != account 1 (0x*)",
        ]
    )
    result.stdout.no_fnmatch_line("*src/trailboss*")
    result.stdout.no_fnmatch_line("*contextlib*")
    pytester.runpytest_inprocess("--full-trace", "-k", "unknown").stdout.fnmatch_lines(["*trailboss/views/explain*"])


FAILING = """
    SOURCE = "def fail(payload):\\n    pvm_host.set_state(b'k', b'v')\\n    raise ValueError('no')\\n"


    def test_fails(chain):
        sender = chain.accounts[0]
        actor = chain.deploy(SOURCE, sender=sender)
        actor.call("fail", sender=sender)
        chain.mine()
        assert chain.height == 99
"""


CLOSED = FAILING.replace("chain.mine()", "chain.close()").replace(
    "    def test", "    import pytest\n\n\n    @pytest.mark.trailboss(data_dir='chain')\n    def test"
)


def test_failing_test_shows_what_reverted_last(pytester: pytest.Pytester) -> None:
    """The call tree of the last reverted execution, in a section of its own."""
    pytester.makepyfile(FAILING)
    shown = pytester.runpytest_inprocess().stdout
    shown.fnmatch_lines(
        ["*- trailboss: last reverted execution -*", "transaction 0x*reverted*line 3, in fail*", "*slot k: none → v*"]
    )


def test_failing_test_shows_no_trace_when_the_option_says_so_or_nothing_reverted(pytester: pytest.Pytester) -> None:
    """Nor does a test that passes, whatever reverted in it, or one whose fixture is another thing."""
    pytester.makepyfile(FAILING)
    shown = pytester.runpytest_inprocess("--trailboss-no-trace").stdout
    shown.no_fnmatch_line("*last reverted*")
    pytester.makepyfile(FAILING.replace("== 99", "== 3"))
    pytester.runpytest_inprocess("-rA").stdout.no_fnmatch_line("*last reverted*")
    pytester.makepyfile("def test_calm(chain):\n    assert chain.height == 1")
    pytester.runpytest_inprocess().stdout.no_fnmatch_line("*last reverted*")
    other = (
        "import pytest\n\n@pytest.fixture\ndef chain():\n    return 1\n\ndef test_other(chain):\n    assert chain == 2"
    )
    pytester.makepyfile(other)
    pytester.runpytest_inprocess().stdout.no_fnmatch_line("*last reverted*")


def test_failure_of_a_test_is_shown_when_its_chain_cannot_be_traced(pytester: pytest.Pytester) -> None:
    """As when the test has closed it: the section says why, and the report is complete."""
    pytester.makepyfile(CLOSED)
    ended = pytester.runpytest_inprocess()
    ended.assert_outcomes(failed=1)
    ended.stdout.fnmatch_lines(
        ["*assert 2 == 99*", "*- trailboss: last reverted execution -*", "it cannot be traced: *"]
    )
