"""``python -m trailboss``: the program without its script."""

from trailboss.cli.main import app

app(prog_name="trailboss")
