"""Which files of a folder are actors."""

from trailboss.lint import actor_files

ACTORS = {
    "a.py": "import pvm_host\n",
    "b.py": "from cowboy_sdk import actor\n",
    "c.py": "from trailboss.sdk import schedule_timer\n",
    "d.py": "def tick(payload):\n    return pvm_host.self_address()\n",
    "deep/er/e.py": "import trailboss.sdk as timers\n",
    "f.py": "import pvm_host\ndef broken(:\n",
}
OTHERS = {
    "g.py": "import json\n",
    "test_h.py": "import pvm_host\n",
    "i_test.py": "import pvm_host\n",
    "conftest.py": "import pvm_host\n",
    "j.py": "import pytest\nimport pvm_host\n",
    "k.py": "from trailboss.testing import LocalChain\nfrom cowboy_sdk import codec\n",
    "l.py": "from cowboy_sdk.testing import SimulatedChain\n",
    "m.py": '"""Says pvm_host."""\n',
    "n.txt": "import pvm_host\n",
    ".venv/o.py": "import pvm_host\n",
    "node_modules/p.py": "import pvm_host\n",
    "q.py": "def broken(:\n",
}


def test_files_are_actors_when_they_use_the_host_or_an_sdk(tmp_path):
    """In folders below too, in order; tests, programs and what is installed are none."""
    for name, text in (ACTORS | OTHERS).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert [path.relative_to(tmp_path).as_posix() for path in actor_files(tmp_path)] == sorted(ACTORS)
