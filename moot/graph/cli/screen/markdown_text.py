"""Words of models as Markdown: laid out on a terminal, as they stand into a file or pipe."""

from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from moot.graph.cli.screen.terminal_text import safe


@dataclass(frozen=True)
class MarkdownText:
    """A text that is laid out where there is a terminal; nothing of it is lost."""

    text: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yield what is shown."""
        words = safe(self.text)
        if not console.is_terminal:
            yield Text(words)
            return
        from markdown_it import MarkdownIt
        from rich.markdown import Markdown

        shown = Markdown(words, hyperlinks=False)
        # rich's own parser takes tags for HTML, and shows none of them.
        reading = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
        shown.parsed = reading.parse(words)
        yield shown
