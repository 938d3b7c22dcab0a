"""Results of programs in which language models debate, such as llm-council, Council and TradingAgents."""

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Reader, Source, choose_conversation
from moot.plugins.importing.message_objects import JsonDict, first_text
from moot.plugins.importing.readers.speaker_lines import messages_under, speaker_lines
from moot.state.errors import InputError


def _dicts(value: object) -> list[JsonDict]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def _read_llm_council(source: Source) -> ParsedTranscript | None:
    value = source.json
    turns = _dicts(value.get("messages")) if isinstance(value, dict) else []
    if not any("stage1" in turn for turn in turns):
        return None
    messages, left_out, solution = list[ParsedMessage](), LeftOut(), ""
    for number, turn in enumerate(turns, start=1):
        if "stage1" not in turn:
            messages.append(ParsedMessage(first_text(turn, ("role",)), first_text(turn, ("content",))))
            continue
        for answer in _dicts(turn["stage1"]):
            messages.append(_answer(answer, ("response",), number))
        for ranking in _dicts(turn.get("stage2")):
            messages.append(_answer(ranking, ("ranking",), number))
        if isinstance(final := turn.get("stage3"), dict):
            messages.append(_answer(final, ("response",), number))
            solution = first_text(final, ("response",))
        left_out["metadata record"] += "metadata" in turn
    assert isinstance(value, dict)  # noqa: S101  # chosen so above
    topic = next((message.content for message in messages if message.speaker == "user"), "")
    return ParsedTranscript(messages, topic or first_text(value, ("title",)), solution, left_out=left_out)


def _answer(item: JsonDict, keys: tuple[str, ...], number: int) -> ParsedMessage:
    return ParsedMessage(first_text(item, ("model",)) or "model", first_text(item, keys), round=number)


LLM_COUNCIL = Reader("llm-council conversation", "json", _read_llm_council)


def _read_council(source: Source) -> ParsedTranscript | None:
    events = _dicts(source.json)
    if not events or not isinstance(source.json, list) or len(events) < len(source.json):
        return None
    if not any(event.get("kind") == "turn.end" and "expertSlug" in event for event in events):
        return None
    names, messages, round = dict[str, str](), list[ParsedMessage](), 0
    for event in events:
        if event.get("kind") == "panel.assembled":
            for expert in _dicts(event.get("experts")):
                names[first_text(expert, ("slug",))] = first_text(expert, ("displayName", "slug"))
        elif event.get("kind") == "round.start":
            round += 1
        elif event.get("kind") == "turn.end":
            speaker, text = first_text(event, ("expertSlug",)), first_text(event, ("content",))
            messages.append(ParsedMessage(speaker, text, round=round))
    return ParsedTranscript(messages, names=names)


COUNCIL = Reader("Council export", "json", _read_council)


def _read_mallm(source: Source) -> ParsedTranscript | None:
    value = source.json
    runs = _dicts(value if isinstance(value, list) else [value])
    if not runs or not all(isinstance(run.get("globalMemory"), list) for run in runs):
        return None
    run = choose_conversation(runs, [first_text(each, ("exampleId", "dataset")) for each in runs], source)
    messages = [
        ParsedMessage(
            first_text(memory, ("persona", "agent_id", "agentId")),
            first_text(memory, ("message", "solution")),
            round=number if isinstance(number := memory.get("turn"), int) else 0,
        )
        for memory in _dicts(run["globalMemory"])
    ]
    inputs = run.get("input")
    lines = [str(line) for line in inputs] if isinstance(inputs, list) else [str(inputs or "")]
    topic = " ".join([first_text(run, ("instruction",)), *lines]).strip()
    solution = first_text(run, ("finalAnswer", "answer", "solution"))
    return ParsedTranscript(messages, topic, solution)


MALLM = Reader("MALLM result", "json", _read_mallm)


def _read_chateval(source: Source) -> ParsedTranscript | None:
    value = source.json
    items = _dicts(value if isinstance(value, list) else [value])
    if not items or not all(_is_chateval(item) for item in items):
        return None
    item = choose_conversation(items, [first_text(each, ("question", "src")) for each in items], source)
    responses = item.get("response")
    messages = [
        ParsedMessage(str(model), str(text))
        for model, text in (responses.items() if isinstance(responses, dict) else ())
    ]
    messages += [
        ParsedMessage(first_text(each, ("role",)), first_text(each, ("evaluation",)))
        for each in _dicts(item["evaluation"])
    ]
    return ParsedTranscript(messages, first_text(item, ("question", "src")))


def _is_chateval(item: JsonDict) -> bool:
    evaluations = _dicts(item.get("evaluation"))
    return bool(evaluations) and all("role" in each and "evaluation" in each for each in evaluations)


CHATEVAL = Reader("ChatEval result", "json", _read_chateval)


_DEBATE_KEY = "investment_debate_state"


def _read_trading_agents(source: Source) -> ParsedTranscript | None:
    """Read the debate of the researchers from a final state, or from a log with one state a day."""
    value = source.json
    states = [value] if isinstance(value, dict) and _DEBATE_KEY in value else []
    states = states or (_dicts([*value.values()]) if isinstance(value, dict) else [])
    if not states or not all(isinstance(state.get(_DEBATE_KEY), dict) for state in states):
        return None
    titles = [first_text(state, ("trade_date", "company_of_interest")) for state in states]
    state = choose_conversation(states, titles, source)
    debate = state[_DEBATE_KEY]
    assert isinstance(debate, dict)  # noqa: S101  # checked above
    lines = first_text(debate, ("history",)).split("\n")
    if not (heads := speaker_lines(lines)):
        raise InputError(f"line 1: {_DEBATE_KEY}.history is empty: the researchers did not debate")
    left_out = LeftOut({"risk debate": int("risk_debate_state" in state)})
    solution = first_text(debate, ("judge_decision",))
    topic = first_text(state, ("company_of_interest",))
    return ParsedTranscript(messages_under(lines, heads).messages, topic, solution, left_out=left_out)


TRADING_AGENTS = Reader("TradingAgents state", "json", _read_trading_agents)
