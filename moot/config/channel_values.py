"""Validation of channel values that come from outside the graph."""

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from langchain_core.messages import convert_to_messages
from pydantic import Field, TypeAdapter, ValidationError, WrapValidator

from moot.config.config_files import make_config, merge_settings
from moot.config.participants import MAX_REQUESTED_DEBATERS, MAX_REQUESTED_JUDGES
from moot.state.conversation import ConversationInput, ConversationState, StateValues, Summary
from moot.state.entries import JsonObject, topic_text
from moot.state.errors import ConfigError, InputError
from moot.state.verdict import PanelVerdict

_MISTAKES_SHOWN = 3  # a wrong type repeats in every item of a list
_CHECKED_ELSEWHERE = frozenset({"messages", "settings"})
"""State channels that `check_types` skips, because other code checks them. LangChain converts `messages`, and
`settings` are validated as a configuration."""
_INTERNAL = frozenset(
    {
        *("protocol_state", "cross_debate_memory", "last_inbox_number", "planned_interjections_used"),
        *("schema_version", "receipts", "calls", "model_facts", "question", "ui", "fence", "options"),
        *("user_provided", "turn_count", "current_speaker", "usage", "summary_versions", "prompt_sources"),
    }
)
"""State channels that only the debate's own nodes can write. Their form is that of a protocol or of
earlier debates, or they follow from other channels, or say what the debate has read, counted and called."""
_AT_START = ("context_documents", "settings")
"""State channels that only the start of a debate reads."""
T = TypeVar("T")
_OrNone = Annotated[T, WrapValidator(lambda value, check: value if value == {} else check(value))]
"""Type of a value that is `{}` if there is none yet."""
_NARROWER: Mapping[str, Any] = {
    "usage": dict[str, Annotated[float, Field(ge=0)]],  # usage cannot be negative
    "status": Literal["new", "running", "paused", "waiting", "done", "limit", "failed"],
    "turn_count": Annotated[int, Field(ge=0)],
    "round": Annotated[int, Field(ge=0)],
    "planned_interjections_used": Annotated[int, Field(ge=0)],
    "full_transcript": list[dict[str, Any]],  # fields of entries to continue are optional
    "rolling_summary": _OrNone[Summary],
    "judge_summary": _OrNone[Summary],
    "perspective_summaries": dict[str, _OrNone[Summary]],
    "verdict": _OrNone[PanelVerdict],
}
"""Stricter types for some state channels. They replace the types that the channels declare. They validate
values that come from outside the graph."""
_APPENDED = frozenset({"claim_events", "reflections", "convergence", "final_answers", "errors", "verdicts"})
"""State channels with lists to which a caller may only add items."""
_MERGED = frozenset({"perspective_summaries", "crux_cards", "crux_rooms", "clarifications"})
"""State channels with mappings to which a caller may add keys, and whose values it may change."""
_STEP_KEYS = ("number", "kind", "phase", "round", "turns")
MAX_NUMBER = 2**53 - 1
"""Largest allowed absolute value of a number that comes from outside the graph. A checkpoint stores
integers below 2**63, so the debate can still add to such a number. JavaScript reads integers up to this
value exactly."""
MAX_DEPTH = 100
"""Maximum nesting depth of values that come from outside the graph. msgpack stores about 1,000 levels."""


@lru_cache
def _adapter(channel: str) -> TypeAdapter[Any]:
    hint = get_type_hints(ConversationState, include_extras=True)[channel]
    channel_type = get_args(hint)[0] if get_origin(hint) is Annotated else hint
    return TypeAdapter(_NARROWER.get(channel, channel_type))


def check_channels(values: Mapping[str, Any]) -> None:
    """Check untrusted values before they are written to a debate's state.

    Raises:
        InputError: A value has the wrong type. The message names the channel and the location.
    """
    for channel, value in values.items():
        check_storable(channel, value, cleans=channel in ConversationInput.__annotations__)
    if "messages" in values:
        _check_messages(values["messages"])
    check_types(values)


def check_types(values: Mapping[str, object]) -> None:
    """Raise an `InputError` that names the channel and the location of a value with a wrong type."""
    for channel in values.keys() & ConversationState.__annotations__.keys() - _CHECKED_ELSEWHERE:
        value = values[channel]
        if isinstance(value, Mapping) and "__overwrite__" in value:
            raise InputError(
                f"{channel}: `__overwrite__` is not allowed here: give the channel's new value directly"
            )
        try:
            _adapter(channel).validate_python(value, strict=True)
        except ValidationError as error:
            mistakes = error.errors(include_url=False)[:_MISTAKES_SHOWN]
            raise InputError(
                "\n".join(
                    f"{'.'.join(map(str, (channel, *each['loc'])))}: {each['msg']}" for each in mistakes
                )
            ) from error
        if (
            channel == "step"
            and isinstance(value, Mapping)
            and (missing := [key for key in _STEP_KEYS if key not in value])
        ):
            raise InputError(f"step: required keys are missing: add {', '.join(missing)}")


def check_storable(place: str, value: object, *, cleans: bool = False, depth: int = 1) -> None:
    """Check that a value from outside the graph can be stored in a checkpoint.

    Its numbers may be at most `MAX_NUMBER`, and its values nested at most `MAX_DEPTH` levels deep.
    With `cleans`, the debate removes lone surrogates itself.

    Raises:
        InputError: A number is too large, a text is not valid, or the values are nested too deeply.
    """
    if isinstance(value, Mapping | list | tuple):
        if depth > MAX_DEPTH:
            channel = place.partition(".")[0]
            raise InputError(
                f"{channel}: the value has more than {MAX_DEPTH} nested levels: use fewer levels"
            )
        for key, each in value.items() if isinstance(value, Mapping) else enumerate(value):
            if isinstance(key, str) and not _is_valid_text(key):
                raise InputError(f"{place}: the key {key!r} contains a lone surrogate: remove the surrogate")
            check_storable(f"{place}.{key}", each, cleans=cleans, depth=depth + 1)
    elif isinstance(value, str):
        if not cleans and not _is_valid_text(value):
            raise InputError(f"{place}: the text contains a lone surrogate: remove the surrogate")
    elif isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{place}: {value} is not a finite number")
    elif isinstance(value, int | float) and abs(value) > MAX_NUMBER:
        raise InputError(f"{place}: the number is too large: give a number of at most {MAX_NUMBER}")


def _is_valid_text(text: str) -> bool:
    """Return True if a text can be encoded as UTF-8, that is, has no lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _check_messages(messages: Any) -> None:
    for number, item in enumerate(messages if isinstance(messages, list) else [messages]):
        if isinstance(item, Mapping) and "op" in item:
            raise InputError(
                f"messages.{number}: only Moot may use the key `op`: remove the key from the message"
            )
        try:
            convert_to_messages([item])
        except Exception as error:  # LangChain documents no exceptions for invalid messages
            raise InputError(
                f"messages.{number}: {item!r} is not a message: give a role and content"
            ) from error


def check_input(graph_input: Mapping[str, Any], *, of_parent: bool = False) -> None:
    """Check that a run's input has only known keys and valid values.

    A value of `None` counts as a missing value.
    A parent graph passes its own state, whose other keys do not matter.

    Raises:
        InputError: A key is unknown, or a value has the wrong type. The message names the key.
    """
    inputs = ConversationInput.__annotations__
    unknown = sorted(str(key) for key in graph_input.keys() - inputs.keys())
    if unknown and not of_parent:
        keys = ", ".join(inputs)
        raise InputError(f"{unknown[0]}: unknown input key of a debate: use one of {keys}")
    known = inputs.keys() - {"topic"}  # `open` reports an invalid topic
    check_channels({key: value for key, value in graph_input.items() if key in known and value is not None})


def check_update(update: Mapping[str, Any], state: StateValues) -> JsonObject:
    """Check the values that a caller writes to a debate's state, and return what to store.

    A value that equals the present one is not written. Of a list or mapping, only new items are. A mapping
    without any item means that there is no value yet. Keys that `config` omits keep their stored values.

    Raises:
        InputError: A channel is unknown or internal, or a value has the wrong type, lacks recorded items or
            changes the topic. The message names the channel.
        ConfigError: `config` is not a valid configuration. The message names the key.
    """
    if unknown := sorted(update.keys() - ConversationState.__annotations__.keys()):
        raise InputError(f"{unknown[0]}: the state of a debate has no such channel: check the name")
    update = {key: value for key, value in update.items() if key not in state or value != state[key]}
    if internal := sorted(_INTERNAL & update.keys()):
        raise InputError(
            f"{internal[0]}: only the debate itself can write to this channel: leave the channel out, or "
            "name the checkpoint whose values you send"
        )
    update = {key: _new_items(key, value, state.get(key)) for key, value in update.items()}
    check_channels(update)
    has_debate = bool(state.get("config"))
    early = sorted(update.keys() - ConversationInput.__annotations__.keys())
    if early and not has_debate:
        raise InputError(
            f"{early[0]}: this thread has no debate yet: start a debate first, and pass its settings in "
            "`context`"
        )
    if has_debate and (late := [channel for channel in _AT_START if channel in update]):
        raise InputError(f"{late[0]}: only the start of a debate reads this channel: send a message instead")
    if has_debate and "topic" in update and topic_text(update["topic"]) != topic_text(state["topic"]):
        raise InputError(
            "topic: the topic of a debate cannot be changed: start another debate, or send an interjection"
        )
    _check_turns(update.get("step") or {}, update.get("config") or state.get("config") or {})
    if "config" not in update:
        return update
    try:
        config = make_config(merge_settings(state.get("config") or {}, update["config"]))
    except ConfigError as error:
        raise ConfigError("\n".join(f"config: {line}" for line in str(error).splitlines())) from error
    stored = state.get("config") or {}
    stored_panel = (stored.get("judge") or {}).get("panel", ())
    for key, noun, limit, now, before in (
        ("debaters", "debaters", MAX_REQUESTED_DEBATERS, config.debaters, stored.get("debaters", ())),
        ("judge.panel", "judges", MAX_REQUESTED_JUDGES, config.judge.panel, stored_panel),
    ):
        if len(now) > max(limit, len(before)):
            raise ConfigError(f"config: {key}: there are {len(now)} {noun}: give at most {limit}")
    return {**update, "config": config.to_json()}


def _new_items(channel: str, value: object, present: Any) -> object:
    """Return the items of a list or mapping that a caller adds to a channel that keeps its present items.

    A caller sends new items only, or the value as read with new items at its end.
    """
    missing: object = None
    appended = channel in _APPENDED or (channel == "full_transcript" and not value)
    if appended and isinstance(value, list) and present:
        if value[: len(present)] == present:
            return value[len(present) :]
        if not value or any(item in present for item in value):
            same = (value[number : number + 1] == [old] for number, old in enumerate(present))
            missing = [*same].index(False)
    elif channel in _MERGED and isinstance(value, Mapping) and present:
        added = {key: each for key, each in value.items() if key not in present or each != present[key]}
        if len(added) < len(value):
            missing = next((key for key in present if key not in value), None)
        value = added
    if missing is not None:
        raise InputError(
            f"{channel}.{missing}: a recorded item is changed or missing, but recorded items stay: send all "
            "items as read with the new ones at the end, or only the new ones"
        )
    return value


def _check_turns(step: Mapping[str, Any], config: Mapping[str, Any]) -> None:
    """Refuse unknown speakers, and more turns than one request may have: a step takes all of its turns."""
    turns = step.get("turns") or []
    if len(turns) > MAX_REQUESTED_DEBATERS:
        raise InputError(
            f"step.turns: there are {len(turns)} turns, but at most {MAX_REQUESTED_DEBATERS} are allowed"
        )
    known = {each.get("id") for each in config.get("debaters") or () if isinstance(each, Mapping)}
    for number, turn in enumerate(turns):
        if known and turn["speaker"] not in known:
            raise InputError(
                f"step.turns.{number}.speaker: {turn['speaker']!r} is not a debater: use a debater's id"
            )
