"""Documents in the browser: one element a section, drawn once and changed in place from one refresh to the next."""

from typing import Any

from nicegui import ui
from nicegui.element import Element
from nicegui.elements.echart import EChart

from trailboss.explorer.documents import Chart, Document, Section, encoded
from trailboss.explorer.shell import Pulse

Model = dict[str, Any]


class SectionElement(Element, component="assets/explorer_section.js"):
    """A part of a page that is drawn from data."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self._props["model"] = model

    def show(self, model: Model) -> None:
        """Show another state, if it is another."""
        if model != self._props["model"]:
            self._props["model"] = model
            self.update()


class ChartElement(EChart, component="assets/explorer_chart.js"):
    """A chart in the colours of the page."""

    def __init__(self, chart: Chart) -> None:
        super().__init__(chart.options)
        # Its own component watches the options.
        self._update_method = None
        self._props["label"] = chart.label

    def show(self, chart: Chart) -> None:
        """Show another state."""
        self._props["options"] = chart.options
        self._props["label"] = chart.label
        self.update()


class ShellElement(Element, component="assets/explorer_shell.js"):
    """What the frame of a page does in the browser.

    It emits ``seen`` when the page comes to the foreground or leaves it, and ``go`` with the query of another page of a
    list.
    """

    def __init__(self, live: Model) -> None:
        super().__init__()
        self._props["live"] = live

    def show(self, live: Model) -> None:
        """Show other numbers in header and footer, if they are others."""
        if live != self._props["live"]:
            self._props["live"] = live
            self.update()


class DocumentView:
    """A document as one client sees it."""

    def __init__(self, document: Document, pulse: Pulse) -> None:
        with ui.element("main").classes("page").props("id=main tabindex=-1"):
            self._heading = SectionElement(_heading(document))
            self._grid = ui.element("div").classes("grid")
        SectionElement(_foot(pulse))
        self._sections: dict[str, _Drawn] = {}
        self._show_sections(document)

    def show(self, document: Document) -> None:
        """Show a document in place of the one that is shown: what is the same stays untouched."""
        self._heading.show(_heading(document))
        self._show_sections(document)

    def _show_sections(self, document: Document) -> None:
        wanted = {section.key: section for section in document.sections}
        for key in [key for key in self._sections if key not in wanted]:
            self._sections.pop(key).element.delete()
        for at, (key, section) in enumerate(wanted.items()):
            standing = self._sections.get(key)
            if standing is None:
                with self._grid:
                    self._sections[key] = drawn = _Drawn(section)
                if at < len(wanted) - 1 or len(self._sections) > at + 1:
                    drawn.element.move(target_index=at)
            else:
                standing.show(section)


class _Drawn:
    """A section in the browser, with its chart if it is one."""

    def __init__(self, section: Section) -> None:
        self._shown = section
        self.element = SectionElement(_model(section)).classes(section.span)
        self._chart: ChartElement | None = None
        if isinstance(section, Chart):
            with self.element:
                self._chart = ChartElement(section)

    def show(self, section: Section) -> None:
        if section == self._shown:
            return
        self._shown = section
        self.element.show(_model(section))
        if self._chart is not None and isinstance(section, Chart):
            self._chart.show(section)


def _model(section: Section) -> Model:
    model = encoded(section)
    # A chart's options belong to the element within, so that new numbers leave the frame alone.
    model.pop("options", None)
    return model


def _heading(document: Document) -> Model:
    return {"type": "heading", "title": document.heading, "subject": [encoded(cell) for cell in document.subject]}


def _foot(pulse: Pulse) -> Model:
    parts = (("State root", "state-root", pulse.state_root, "mono id"), ("", "chain", pulse.chain, ""))
    names = ("label", "name", "text", "kind")
    return {"type": "foot", "key": "foot", "parts": [dict(zip(names, part, strict=True)) for part in parts]}
