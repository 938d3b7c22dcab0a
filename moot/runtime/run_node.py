"""Runner of node bodies, for sync and async graphs.

A node body is a generator without input or output of its own. It reads the state, yields *effects* (a batch
of model calls, local work, a question to a person, a progress event), receives the outcome of each, and
returns its update of the state. The runner handles the effects, like httpx with `Auth.auth_flow`.

The calls of a batch run concurrently. Each reply is committed to the journal before it is used. After a crash
the body starts again and receives its replies from the journal.
"""

import asyncio
import time
import uuid
from collections.abc import Awaitable, Callable, Collection, Generator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar, cast

from langchain_core.runnables import Runnable, RunnableConfig
from langgraph.config import get_stream_writer
from langgraph.errors import GraphInterrupt
from langgraph.runtime import Runtime, get_runtime
from langgraph.types import interrupt

from moot.calls import concurrency, effects, model_calls
from moot.config import DebateConfig, boundary, debate_config
from moot.config.stages import authorize, authorize_operator, requested_config
from moot.models.endpoints import server_facts
from moot.people import new_input_text
from moot.runtime import background_loop, environment as environments, fitting, spending
from moot.runtime.context import NodeFunction, node_context
from moot.runtime.telemetry import call_span, note_recovered, step_span
from moot.state import conversation
from moot.state.entries import JsonObject, ModelFacts, memoize_by_identity
from moot.state.errors import BudgetReached, ConfigError, ModelError, StorageError
from moot.state.langgraph_internals import checkpointer_in, is_nested
from moot.state.reducers import add_totals, merge_facts
from moot.state.settings import redact_values
from moot.storage.journal import Journal, JournalKey
from moot.storage.leases import lease_in
from moot.storage.records import Records, records_of

T = TypeVar("T")
HandledEffect = TypeVar("HandledEffect")


@dataclass(frozen=True)
class JournalPosition:
    """Place in the journal where the replies to a node's model calls are stored."""

    records: Records | None = None
    """Moot's database tables, which include rate limits and shared budgets. `None` if there is no
    database."""
    debate: str = ""
    """LangGraph thread id of the debate."""
    step: int = 0
    """Number of the debate step in which the node makes its model calls."""
    node: str = ""
    """Name of the graph node that makes the model calls."""
    base_checkpoint: str = ""
    """Id of the checkpoint from which the node started."""
    resumed: bool = False
    """True if this run continues a step that was interrupted."""
    stores_replies: bool = True
    """True if model replies are stored in the debate's journal and reused from it. Calls outside the
    debate's graph do not use the journal."""

    @property
    def journal(self) -> Journal | None:
        """Journal that stores the replies to model calls, or `None` if they are not stored."""
        return self.records.journal if self.records is not None and self.stores_replies else None


class EffectHandler:
    """Handler for the model calls and local jobs that a node requests."""

    def __init__(
        self,
        env: environments.Environment,
        permissions: boundary.Permissions,
        position: JournalPosition,
        run: RunnableConfig | None = None,
        *,
        limit: asyncio.Semaphore | None = None,
    ) -> None:
        """Create a handler. `limit` bounds concurrent calls. Default: the run's `limits.concurrency`."""
        self.spent: dict[str, float] = {}
        """Usage of all calls so far."""
        self.failed: dict[str, float] = {}
        """Usage of failed calls so far, which the journal does not store."""
        self.receipts: list[conversation.CallReceipt] = []
        """Receipts of the calls so far, except debaters' turns. They have no numbers yet."""
        self.known: Mapping[str, ModelFacts] = {}
        """What the debate's state says about its models."""
        self.facts: dict[str, ModelFacts] = {}
        """What the calls so far have shown about their models."""
        self.call_limit = spending.CallLimit()
        """Calls that the operator's limits refuse."""
        self.batches = 0
        """Number of completed batches."""
        self.position = position
        self._env, self._run = env, run
        self._permissions = permissions
        self._limit = limit or asyncio.Semaphore(permissions.config.limits.concurrency)
        self._reached = ""
        self._failure: StorageError | None = None
        """Error of a reply that could not be stored. No further call of the batch is made."""

    async def handle(
        self, effect: Sequence[model_calls.ModelCall] | effects.LocalWork
    ) -> list[model_calls.Reply] | list[str]:
        """Carry out model calls or local jobs, and return the results."""
        return await (
            self.run_local_work(effect) if isinstance(effect, effects.LocalWork) else self.call_models(effect)
        )

    async def call_models(self, calls: Sequence[model_calls.ModelCall]) -> list[model_calls.Reply]:
        """Make a batch of model calls, and return the replies in the same order.

        Raises:
            BudgetReached: The shared budget of several debates was reached before the last call. The replies
                that were received are in the journal.
        """
        if refusal := self.call_limit.refusal(calls):
            return [model_calls.Reply(error=refusal) for _ in calls]
        replies = await self.gather([(call.digest, partial(self._ask, call)) for call in calls])
        if self._reached:
            raise BudgetReached(self._reached)
        for call, reply in zip(calls, replies, strict=True):
            self.facts = merge_facts(self.facts, [reply.facts])
            used = [{"calls": 1}, reply.usage]
            self.spent = add_totals(self.spent, used)
            if not reply.ok:
                self.failed = add_totals(self.failed, used)
            if call.purpose != "turn":  # the node `turn` writes the receipts of turns
                self.receipts.append(_receipt(call, reply, self.position))
        return replies

    async def ask_servers(self) -> None:
        """Ask the models' servers for the sizes of their contexts."""
        with suppress(ConfigError):  # the first call reports it
            models = self._env.models_of(self._permissions)
            self.facts = await server_facts(models, self._permissions.config.model_names())

    async def run_local_work(self, work: effects.LocalWork) -> list[str]:
        """Run local jobs, journal their results, and return them in the same order."""

        async def run(job: effects.LocalJob, key: JournalKey) -> model_calls.Reply:
            return await self._store(key, model_calls.Reply(text=await concurrency.to_thread(job.run)))

        done = await self.gather([(job.digest, partial(run, job)) for job in work.jobs])
        return [reply.text for reply in done]

    def numbered_receipts(self, before: Sequence[conversation.CallReceipt]) -> list[conversation.CallReceipt]:
        """Return the records of this run's calls, numbered after those of earlier calls."""
        return [
            {**receipt, "id": f"c{number:06d}"} for number, receipt in enumerate(self.receipts, len(before))
        ]

    async def gather(
        self, requests: Sequence[tuple[str, Callable[[JournalKey], Awaitable[model_calls.Reply]]]]
    ) -> list[model_calls.Reply]:
        """Return the reply to each request by digest, from the journal if possible.

        Requests run concurrently. Each makes and stores its reply.
        """
        position, journal = self.position, self.position.journal
        keys = [
            JournalKey(position.debate, position.step, position.node, self.batches, batch_index, digest)
            for batch_index, (digest, _) in enumerate(requests)
        ]
        known: Sequence[model_calls.Reply | None] = [None] * len(keys)
        if journal is not None:
            get = journal.get
            known = await concurrency.run_inline(
                lambda: [get(key, position.base_checkpoint, resumed=position.resumed) for key in keys]
            )
            if None in known:
                await concurrency.run_inline(journal.require_space, sum(each is None for each in known))

        async def reply_to(
            make: Callable[[JournalKey], Awaitable[model_calls.Reply]],
            key: JournalKey,
            known_reply: model_calls.Reply | None,
        ) -> model_calls.Reply:
            return await make(key) if known_reply is None else known_reply

        work = map(reply_to, [make for _, make in requests], keys, known)
        replies = await asyncio.gather(*work, return_exceptions=True)
        self.batches += 1
        for reply in replies:  # if one fails, the others end first, because their calls are paid for
            if isinstance(reply, BaseException):
                raise reply
        return cast(list[model_calls.Reply], replies)

    async def _ask(self, call: model_calls.ModelCall, key: JournalKey) -> model_calls.Reply:
        try:
            models = self._env.models_of(self._permissions)
        except ConfigError as refused:
            return model_calls.Reply(error=str(refused))
        records, debate = self.position.records, self.position.debate
        models.learn(self.known)
        if records is not None:
            models = replace(models, rate_limiter=records.rate_limiter)
        async with self._limit:
            if self._failure is not None:
                raise self._failure
            if records and (reached := await concurrency.run_inline(records.budgets.reached, debate)):
                self._reached = reached
                return model_calls.Reply(error=reached)
            compatible = models.is_openai_compatible(call.model)
            with call_span(call, debate, compatible=compatible) as replies:
                replies.append(await concurrency.drain(self._env.complete(call, models, config=self._run)))
            return await self._store(key, replies[0])

    @concurrency.shielded  # a received reply has been charged, so a stopping run stores it first
    async def _store(self, key: JournalKey, reply: model_calls.Reply) -> model_calls.Reply:
        """Store a reply in the journal unless it failed, and charge it to the budget of several debates."""
        # An endpoint or a tool may repeat a key in its reply. The key must not be stored or sent to others.
        reply = model_calls.Reply.from_json(cast(JsonObject, redact_values(reply.to_json())))
        if reply.is_final and (journal := self.position.journal) is not None:
            try:
                await concurrency.run_inline(journal.put, key, self.position.base_checkpoint, reply)
            except StorageError as error:
                self._failure = error
                raise
        if reply.usage and (records := self.position.records) is not None:
            await concurrency.run_inline(records.budgets.spend, self.position.debate, reply.usage)
        return reply


def _receipt(
    call: model_calls.ModelCall, reply: model_calls.Reply, position: JournalPosition
) -> conversation.CallReceipt:
    prompt = call.prompt or model_calls.Prompt(call.messages, call.prompt_tokens, 0)
    return {
        "id": "",
        "purpose": call.purpose,
        "memory_kind": call.memory_kind,
        "step": position.step,
        "node": position.node,
        "call_index": call.call_index,
        **prompt.to_receipt(),  # type: ignore[typeddict-item]  # which has no `options`
        "model": reply.model or call.model,
        "usage": reply.usage,
        "error": reply.error,
        "digest": call.digest,
        "checkpoint": position.base_checkpoint,
    }


async def run_generator(
    flow: Generator[HandledEffect, Any, T], handle: Callable[[HandledEffect], Awaitable[object]]
) -> T:
    """Run a generator to its end, `handle` what it yields, and return its result."""
    outcome: object = None
    try:
        while True:
            outcome = await handle(flow.send(outcome))
    except StopIteration as end:
        result: T = end.value
        return result
    finally:
        flow.close()


async def run_to_end(
    flow: model_calls.CallGenerator[T] | effects.BackgroundTask[T],
    environment: environments.Environment,
    permissions: boundary.Permissions,
    position: JournalPosition | None = None,
) -> tuple[T, EffectHandler]:
    """Run a generator outside a graph, and return its result and the handler of its model calls."""
    handler = EffectHandler(environment, permissions, position or JournalPosition())
    return await run_generator(flow, handler.handle), handler


class _NodeRun:
    """One run of a graph node, with the permissions and database records that it uses."""

    def __init__(
        self,
        name: str,
        env: environments.Environment,
        state: conversation.ConversationState,
        config: RunnableConfig,
    ) -> None:
        runtime: Runtime[DebateConfig | boundary.ClientConfig | boundary.UntrustedConfig] = get_runtime()
        info = runtime.execution_info
        checkpointer = checkpointer_in(config)
        conversation.check_schema_version(state)
        self.state = state
        self.config = config
        self.store = runtime.store
        self.records: Records | None = records_of(checkpointer) if checkpointer is not None else None
        if self.records is not None and (lease := lease_in(config)):
            self.records = self.records.fenced_by(lease)
        debate = (info.thread_id if info else None) or ""
        self._run_context = runtime.context
        permissions = self._permissions(env)
        checkpoint, nested = (info.checkpoint_id, is_nested(info.checkpoint_ns)) if info else ("", False)
        self.context = node_context(env, state, permissions, debate, checkpoint, nested=nested)
        step = conversation.step_number(state)
        resumed = bool(state.get("step", {}).get("resumed"))
        self._answer = new_input_text(state) if resumed else None
        self._position = JournalPosition(self.records, debate, step, name, self.context.checkpoint, resumed)
        self._answered = False
        self._started = time.monotonic()

    def _permissions(
        self, env: environments.Environment, granted: Collection[boundary.Capability] = ()
    ) -> boundary.Permissions:
        """Return the permissions under which the debate runs.

        A `DebateConfig` object was created in this process, so it counts as the operator's. A server's
        request is an `UntrustedConfig`, merged over the operator's configuration, or a complete
        `ClientConfig`. The context of a parent graph is ignored.
        """
        context, operator = self._run_context, self._operator_config(env)
        if self.state.get("config"):
            return authorize(
                debate_config.runnable_config(self.state), operator, granted, env.safe_capabilities
            )
        if isinstance(context, boundary.ClientConfig):
            return authorize(context.config, operator, granted, env.safe_capabilities)
        requests = [context.requested_settings] if isinstance(context, boundary.UntrustedConfig) else []
        requests += [self.state["settings"]] if self.state.get("settings") else []
        if requests:
            return authorize(requested_config(operator, *requests), operator, granted, env.safe_capabilities)
        if not isinstance(context, DebateConfig):
            return authorize(operator, operator, granted, env.safe_capabilities)
        permissions = authorize_operator(operator)
        return replace(
            permissions, granted={*permissions.granted, *granted}, safe_capabilities=env.safe_capabilities
        )

    def _operator_config(self, env: environments.Environment) -> DebateConfig:
        context = self._run_context
        if isinstance(context, boundary.ClientConfig):
            return context.operator
        return context if isinstance(context, DebateConfig) else env.default_config()

    def _needs_grants(self) -> bool:
        """Return True if this run needs capabilities granted to its debate."""
        permissions = self.context.permissions
        limited = bool(self.state.get("config")) and permissions.config is not self.context.config
        return limited or bool(
            permissions.granted or permissions.config.context_paths()  # paths are resolved in a thread
            if self._position.node == "open"
            else boundary.capabilities_of(permissions.config)
        )

    def _with_grants(self, records: Records) -> boundary.Permissions:
        """Return the debate's permissions, including granted capabilities.

        In the node `open`, the capabilities are first granted. A configuration that the operator gave this
        debate is granted completely. Otherwise only what the operator's default configuration names is
        granted.
        """
        env, position = self.context.env, self._position
        if position.node == "open" and position.debate and not self.state.get("config"):
            operator = self._operator_config(env)
            if isinstance(self._run_context, DebateConfig):
                granted = authorize_operator(operator).granted
            else:
                used = boundary.capabilities_of(self.context.permissions.config).keys()
                granted = used & boundary.capabilities_of(operator).keys()
            records.grants.add(position.debate, granted)
        permissions = self._permissions(env, records.grants.of(position.debate))
        with suppress(ConfigError):  # called in this thread only to fill the cache, because it reads files
            permissions.authorize()
        return permissions

    async def run_body(self, body: NodeFunction) -> effects.Update:
        """Run the node's function, and return its state update with usage and call records."""
        origin, permissions = self.context, self.context.permissions
        if self.records is not None and self._needs_grants():
            permissions = await concurrency.run_in_thread(self._with_grants, self.records)
        if self.state.get("config") and permissions.config is not origin.config:
            # The body reads its limits from the state.
            self.state = {**self.state, "config": _frozen(permissions.config)}
        if self._position.node == "open" and self.records is not None and self.state.get("usage"):
            # The body checks the operator's limits before it answers a question in the chat.
            pending = self.records.with_pending_usage
            counted = await concurrency.run_in_thread(pending, origin.debate, self.state)
            self.state = cast(conversation.ConversationState, {**self.state, "usage": counted["usage"]})
        self.effect_handler = EffectHandler(origin.env, permissions, self._position, self.config)
        known = self.effect_handler.known = self.state.get("model_facts") or {}
        if self._position.node == "open" and not self.state.get("config"):  # before the first prompt is built
            await self.effect_handler.ask_servers()
        self.context = node_context(origin.env, self.state, permissions, *origin.origin, nested=origin.nested)
        node, reached = self._position.node, self.context.ceiling_reached
        if reached and node in spending.LENGTHENING_NODES:
            return {}  # `plan` ends the debate
        self.effect_handler.call_limit = spending.call_limit(self.state, reached, node, origin.checkpoint)
        fitted = fitting.fitted_body(node, body)
        update: effects.Update = dict(await run_generator(fitted(self.context), self._handle_effect) or {})
        if (facts := self.effect_handler.facts) and merge_facts(known, [facts]) != known:
            update["model_facts"] = facts
        if self._answered:
            update["messages"] = [{"op": "drop_replies"}, *update.get("messages", [])]
        if self.effect_handler.batches:
            spent = {**self.effect_handler.spent, "elapsed_s": time.monotonic() - self._started}
            update["usage"] = add_totals(spent, [update.get("usage", {})])
        if receipts := self.effect_handler.numbered_receipts(self.state.get("calls") or []):
            update["calls"] = receipts
        return update

    def failed_run(self, error: ModelError) -> conversation.FailedRun:
        """Return a record of this failed run, with its error and its usage."""
        position = self._position
        usage = {**self.effect_handler.failed, "elapsed_s": time.monotonic() - self._started}
        record: conversation.ErrorRecord = {
            "step": position.step,
            "node": position.node,
            "error": str(error),
            "at": self.context.env.clock(),
            "run": str(uuid.uuid4()),
        }
        return conversation.FailedRun(record, usage)

    async def _handle_effect(self, effect: effects.Effect) -> Any:
        if isinstance(effect, effects.Ask):
            if self._answer is not None and not effects.is_pause(effect.payload):
                answer, self._answer, self._answered = self._answer, None, True
                return answer
            return interrupt(effect.payload, response_schema=effect.payload.get("response_schema"))
        if isinstance(effect, effects.Emit):
            get_stream_writer()(dict(effect.event))
            return None
        if isinstance(effect, effects.ReadInbox):
            return await concurrency.run_inline(self._read_inbox, effect.after)
        if isinstance(effect, effects.PutInStore | effects.SearchStore):
            return await self._use_store(effect)
        return await self.effect_handler.handle(effect)

    async def _use_store(self, effect: effects.PutInStore | effects.SearchStore) -> list[JsonObject]:
        """Write to LangGraph's store or search it. A failure is an event and does not end the debate."""
        if self.store is None:
            return []
        try:
            if isinstance(effect, effects.PutInStore):
                await self.store.aput(effect.namespace, effect.key, dict(effect.value))
                return []
            items = await self.store.asearch(effect.namespace, limit=effect.limit)
        except Exception as error:
            get_stream_writer()({"event": "store_failed", "error": f"{type(error).__name__}: {error}"})
            return []
        latest = sorted(items, key=lambda item: (item.updated_at, item.key), reverse=True)
        return [item.value for item in latest]

    def _read_inbox(self, after: int) -> effects.InboxContents:
        if self.records is None or not self.context.debate:
            return effects.InboxContents()
        inbox, debate = self.records.inbox, self.context.debate
        unread, failed = inbox.since(debate, after), self.records.failed.of(debate)
        # The pause is read last, because reading it removes it.
        pause = inbox.consume_pause(debate)
        return effects.InboxContents(
            unread.messages, pause, failed, unread.question_usage, unread.last_number
        )


@memoize_by_identity()
def _frozen(config: DebateConfig) -> JsonObject:
    return config.to_json()


class Node(Runnable[conversation.ConversationState, effects.Update]):
    """Graph node for synchronous and asynchronous graphs. LangGraph itself traces the node."""

    def __init__(self, name: str, body: NodeFunction, env: environments.Environment) -> None:
        self.name = name
        self.body, self._env = body, env

    async def ainvoke(
        self, input: conversation.ConversationState, config: RunnableConfig | None = None, **_: object
    ) -> effects.Update:
        """Run the node body, and record the debate's progress in the list of debates."""
        config = config or {}
        saver = checkpointer_in(config)
        if saver and not hasattr(saver, "records"):
            await concurrency.run_in_thread(
                records_of, saver
            )  # with one of LangGraph's own savers, this opens a database
        with step_span(str(self.name), input.get("step") or {}, config):
            run = _NodeRun(str(self.name), self._env, input, config)
            env, records, debate = self._env, run.records, run.context.debate
            if records is None or not debate:
                update = await run.run_body(self.body)
                note_recovered(update)
                return update
            if run.state.get("config") and not run.state.get("step"):
                # A debate that a LangGraph server started is listed before its first call.
                await concurrency.run_inline(records.catalogue.note_begun, debate)
            try:
                update = await run.run_body(self.body)
                note_recovered(update)
                if environments.changes_catalogue(run.state, update):
                    await concurrency.run_inline(
                        env.on_progress, records, debate, run.state, update, env.clock()
                    )
            except ModelError as error:
                await concurrency.run_in_thread(
                    environments.record_failure, records, debate, run.state, run.failed_run(error)
                )
                raise
            except GraphInterrupt as waiting:
                pauses = bool(waiting.args) and all(effects.is_pause(each.value) for each in waiting.args[0])
                status = "paused" if pauses else "waiting"
                await asyncio.to_thread(records.catalogue.update, debate, status=status)
                raise
            return update

    def invoke(
        self, input: conversation.ConversationState, config: RunnableConfig | None = None, **_: object
    ) -> effects.Update:
        """Run the node body in a synchronous graph."""
        return background_loop.call_from_sync(self.ainvoke, input, config)
