"""`search_debate`: what was said before, also long before the window."""

from moot.nodes.text.plain import excerpt
from moot.nodes.tools.files import Query, matches_text, query_words
from moot.nodes.tools.tool import Surroundings, Tool
from moot.state.entries import kind_of

MAX_HITS = 10
EXCERPT_CHARS = 300


class SearchDebate(Tool):
    """Messages that hold the query's words, those with most of them first, the newest among equals."""

    name = "search_debate"
    about = "Search what has been said in this debate. Returns excerpts with message ids."

    query: Query

    def run(self, around: Surroundings) -> str:
        """Return the best messages."""
        words = query_words(self.query)
        hits = []
        for entry in around.transcript:
            folded = entry["content"].casefold()
            found = [at for word in words if (at := folded.find(word)) >= 0]
            if found and kind_of(entry).by != "tools":
                passage = excerpt(entry["content"], EXCERPT_CHARS, min(found))
                hits.append((len(found), entry["seq"], f"{entry['speaker']} [{entry['id']}]: {passage}"))
        best = [line for _, _, line in sorted(hits, reverse=True)[:MAX_HITS]]
        return matches_text(self.query, len(hits), best)
