"""Claims that a model finds in a finished debate when somebody asks for them, and what this costs."""

from collections.abc import Mapping
from typing import cast

from moot.calls.effects import Update
from moot.claims import ledger_from_events, ledger_rendering
from moot.config.model_settings import is_built_in
from moot.debates import dry_run, stub_replies
from moot.debates.session import DebateSession, is_over
from moot.models.registry import Models
from moot.nodes.extract import extract_rest
from moot.runtime import background_loop, context, environment, fitting, run_node
from moot.state import entries, errors, reducers
from moot.state.conversation import ConversationState, step_number
from moot.storage.catalogue import row_usage


def cost_of_claims(
    session: DebateSession, check: stub_replies.Check = stub_replies.no_check
) -> entries.JsonObject | None:
    """Estimate what `find_claims` takes. The real extraction runs with stub replies. See `Debate`."""
    snapshot = session.state()
    values = cast(ConversationState, snapshot.values)
    if not is_over(snapshot) or _refusal(ctx := _context(session, values)):
        return None
    # Stub claims quote this phrase. With it in each message, claims that need a second call are found, too.
    quotable = [
        {**entry, "content": f"{entry['content']} {stub_replies.CLAIM_QUOTE}"}
        for entry in values["full_transcript"]
    ]
    state = cast(ConversationState, {**values, "full_transcript": quotable})
    runs = []
    for scenario in ("agreeing", "disputing"):
        replies = stub_replies.StubReplies(scenario, ctx.config, check)
        _run(context.node_context(environment.Environment(complete=replies), state, ctx.permissions), None)
        runs.append(dry_run.DryRun(replies.planned, 0, ctx.config.limits.concurrency))
    models, calls = Models(ctx.config.models), [call for run in runs for call in run.planned]
    usd = sum(dry_run.prices(models, call)[0] for call in calls) / len(runs)
    known = not models.names_without_price({call.call.model for call in calls})
    return {"calls": dry_run.Estimate(runs).calls, **({"usd": usd} if known else {})}


def find_claims(session: DebateSession) -> None:
    """Find the claims of a finished debate and store them. See `Debate.find_claims`."""
    with session.writing() as writer:
        snapshot = writer.caught_up()
        values = cast(ConversationState, snapshot.values)
        if not is_over(snapshot):
            raise errors.InputError("the debate is not over: its claims can be found when it has ended")
        ctx = _context(writer, values)
        ctx.permissions.authorize()
        if refusal := _refusal(ctx):
            raise errors.InputError(refusal)
        checkpoint = snapshot.config["configurable"]["checkpoint_id"]
        node = f"find-claims-{_first_unread(values)}"  # a later search makes new calls
        place = run_node.JournalPosition(writer.records, writer.thread, step_number(values), node, checkpoint)
        update, handler = _run(ctx, place)
        if failures := cast(list[Mapping[str, str]], update.get("errors")):
            writer.records.inbox.add_question(writer.thread, handler.failed, ctx.env.clock())
            raise errors.ModelError(failures[0]["error"])
        calls = handler.numbered_receipts(values.get("calls") or [])
        writer.update({**update, "usage": handler.spent, "calls": calls})
        usage = row_usage(reducers.add_totals(values.get("usage") or {}, [handler.spent]))
        writer.records.catalogue.update(writer.thread, **usage, updated_at=ctx.env.clock())


def _run(
    ctx: context.NodeContext, place: run_node.JournalPosition | None
) -> tuple[Update, run_node.EffectHandler]:
    """Make the calls, and return the update of the state and the handler that counted them."""
    flow = fitting.fitted_body("extract", extract_rest)(ctx)
    update, handler = background_loop.call_from_sync(
        run_node.run_to_end, flow, ctx.env, ctx.permissions, place
    )
    return cast(Update, update), handler


def _context(session: DebateSession, values: ConversationState) -> context.NodeContext:
    return context.node_context(session.environment, values, session.permissions(values), session.thread)


def _first_unread(values: ConversationState) -> int:
    return ledger_from_events.ledger_of(values).read_through + 1


def _refusal(ctx: context.NodeContext) -> str:
    """Return why no claims can be found in a finished debate, or `""`."""
    if is_built_in(ctx.config.blackboard.model or ctx.config.model):
        return ledger_rendering.NO_EXTRACTION
    unread = ctx.state["full_transcript"][_first_unread(ctx.state) :]
    if not any(entry["speaker"] in ctx.names and entries.traits_of(entry).argues for entry in unread):
        return "all messages have been searched for claims"
    return ""
