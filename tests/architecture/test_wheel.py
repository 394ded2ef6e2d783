"""What is installed has what is no Python: templates, and the types of ``pvm_host``; and the hook names a command."""

from pathlib import Path
from zipfile import ZipFile

import pytest
import yaml
from hatchling.builders.wheel import WheelBuilder

from tools.host_stub import STUB
from trailboss.cli.commands.new import COMMON, LAYOUT, SHARED, TEMPLATES
from trailboss.cli.main import COMMANDS

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_wheel_has_templates_and_types(tmp_path: Path) -> None:
    """A stub package stands beside the package, as PEP 561 wants."""
    [wheel] = WheelBuilder(str(ROOT)).build(directory=str(tmp_path), versions=["standard"])
    names = set(ZipFile(wheel).namelist())
    assert STUB.removeprefix("src/") in names
    for template in TEMPLATES:
        for name in LAYOUT:
            folder = COMMON if name in SHARED else template
            assert f"trailboss/cli/templates/{folder}/{name}.template" in names


def test_hook_runs_a_command_on_actors() -> None:
    """Pre-commit reads it at the root of the repository."""
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    program, command = hook["entry"].split()
    assert (hook["id"], program) == ("trailboss-check", "trailboss")
    assert command in [entry.name for entry in COMMANDS]
