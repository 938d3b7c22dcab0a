"""Outcome of a protocol: how a debate is decided, and what its reports state as the answer."""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from moot.config import DebateConfig, section
from moot.judging.judge_spec import JudgeSpec
from moot.protocols.voting import AnswerBallot, VoteCount, ballots_of_answers, vote_headline
from moot.state.conversation import ConversationState
from moot.state.entries import Entry
from moot.state.verdict import COUNT, NO_WINNER, PanelVerdict, Stage


class Proceedings(NamedTuple):
    """What a verdict rests on."""

    spec: JudgeSpec
    """Settings of the judge."""
    entries: list[Entry] | None = None
    """Entries that the judge must read. `None`: all debaters' messages."""
    final_round: Sequence[Entry] = ()
    """Entries that are summarized if the judge's prompt has no space for them."""
    stages: Sequence[Stage] = ()
    """Completed stages of the debate, each with its answer and its number of calls."""


class Outcome(section.ProtocolSpec):
    """Role of a protocol that decides a debate. By default, a judge decides."""

    judge_spec: JudgeSpec = JudgeSpec()
    """Default settings for the judge of a debate."""
    decides_by: Literal["judge", "vote", "weighted-vote"] = "judge"
    """Default of the setting `decide`: the judge, a vote, or a vote weighted by the debaters' confidence."""
    win_text: str = "{} wins"
    """Template of the text that announces the debate's winner. `{}` is replaced by the winner's name."""
    result: str = "Verdict"
    """Title of the result section in reports."""
    answer_heading: str = ""
    """Heading for the debate's answer in reports. Reports show it above a verdict that states no decision. If
    it is `""`, the answer appears only below the verdict."""
    always_answers: bool = False
    """True if the debate's solution always ends with the final answer. The final answer is the text that
    `final_answer` returns. Otherwise, this text is used only if there is no other solution."""

    def proceedings(self, state: ConversationState, config: DebateConfig) -> Proceedings:
        """Return what the verdict on a debate rests on."""
        return Proceedings(self.judge_spec)

    def method(self, config: DebateConfig) -> Literal["judge", "vote", "weighted-vote"]:
        """Return the method that decides the debate, such as `vote`."""
        return config.decide or self.decides_by

    def deciders(self, state: ConversationState, config: DebateConfig) -> list[str]:
        """Return the ids of the debaters who must give a final answer before the vote."""
        if self.method(config) == "judge" or self.counts_messages(config):
            return []
        speakers = {entry["speaker"] for entry in state["full_transcript"]}
        return [debater for debater in config.names() if debater in speakers]

    def counts_messages(self, config: DebateConfig) -> bool:
        """Return True if the answers in the debaters' messages decide, as in a vote."""
        return False

    def ballots(self, state: ConversationState, config: DebateConfig) -> list[AnswerBallot]:
        """Return the answers that count in the vote. By default, they are the debaters' final answers."""
        turns = state.get("turn_count", 0)
        return ballots_of_answers([each for each in state.get("final_answers", []) if each["turns"] == turns])

    def vote(self, state: ConversationState, config: DebateConfig) -> VoteCount | None:
        """Count the votes. `None`: a judge decides the debate."""
        method = self.method(config)
        if method == "judge":
            return None
        return VoteCount(self.ballots(state, config), config, weighted=method == "weighted-vote")

    def protocol_verdict(self, state: ConversationState, config: DebateConfig) -> PanelVerdict | None:
        """Return the verdict that the protocol makes without a judge, for example by a vote.

        Return `None` if a judge decides the debate.
        """
        count = self.vote(state, config)
        return count.verdict(state["topic"]) if count else None

    def final_answer(self, state: ConversationState) -> str:
        """Return the protocol's own final answer on the topic as Markdown, or `""` if there is none."""
        return ""

    def at_a_glance(self, solution: str) -> str:
        """Return an excerpt of the solution that is short enough for one screen."""
        return solution

    def headline(self, verdict: PanelVerdict, names: Mapping[str, str]) -> str:
        """Return one line that states a valid verdict's result. `names` is keyed by debater id."""
        if verdict["judge"] == COUNT and "outcome" in verdict:
            return vote_headline(verdict)
        winner = verdict["winner"]
        if not winner:
            return "Judged, without a winner"
        no_winner = NO_WINNER.get(winner, "")
        return no_winner.capitalize() or self.win_text.format(names.get(winner, winner))
