"""A sitting: one judge is asked once, in one order of presentation or about one outcome."""

from dataclasses import dataclass

from pydantic import BaseModel

from moot.nodes.calls import ModelCall, Reply
from moot.nodes.judging.blinding import Blinding
from moot.nodes.judging.opinion_check import OpinionCheck
from moot.state.verdict import Verdict


@dataclass(frozen=True)
class Sitting:
    """What a judge is asked, and what its answer is held to."""

    call: ModelCall
    check: OpinionCheck
    blinding: Blinding | None = None

    def opinion(self, reply: Reply) -> BaseModel | None:
        """Return what the judge said, names and all; `None` where it gave no structured answer."""
        if not reply.ok or reply.data is None or self.call.schema is None:
            return None
        data = self.blinding.unblind_data(reply.data) if self.blinding else reply.data
        return self.call.schema.model_validate(data)

    def failed(self, reply: Reply) -> Verdict:
        """Return the verdict where there is no opinion."""
        error = reply.error or "the judge gave no structured answer"
        return self.check.failed(error, model=self.call.model, usage=reply.usage)
