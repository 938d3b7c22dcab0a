"""JSON exports of Slack, Discord and Telegram."""

import html
from collections.abc import Iterable, Iterator, Sequence

from moot.importers import LeftOut, ParsedMessage, ParsedTranscript, Reader, Source, choose_conversation
from moot.plugins.importing.message_objects import JsonDict, first_text, readable_time, replies_of, speaker_of


def _objects(value: object) -> list[JsonDict]:
    """Return the messages in a list or under the key `messages`, or `[]` if there are none."""
    items = value.get("messages") if isinstance(value, dict) else value
    is_list = isinstance(items, list) and all(isinstance(item, dict) for item in items)
    return items if is_list and isinstance(items, list) else []


def _count_files(item: JsonDict, keys: Iterable[str], left_out: LeftOut) -> None:
    left_out["attachment"] += sum(
        len(value) if isinstance(value, list) else 1 for key in keys if (value := item.get(key))
    )


def _in_order(items: Sequence[JsonDict], key: str) -> list[JsonDict]:
    """Sort messages by time. The services' APIs return the newest message first."""
    return sorted(items, key=lambda item: str(item.get(key) or ""))


def _read_slack(source: Source) -> ParsedTranscript | None:
    items = _objects(source.json)
    items = [each for item in items for each in (item, *_objects(item.get("slackdump_thread_replies")))]
    if not items or not all("ts" in item and item.get("type", "message") == "message" for item in items):
        return None
    names = {str(item["user"]): name for item in items if "user" in item and (name := _slack_name(item))}
    left_out, messages = LeftOut(), list[ParsedMessage]()
    for item in _in_order(items, "ts"):
        if item.get("subtype") not in (None, "bot_message", "thread_broadcast", "me_message", "file_share"):
            left_out["system message"] += 1
            continue
        _count_files(item, ("files", "attachments"), left_out)
        user = first_text(item, ("user", "username", "bot_id"))
        name = names.get(user) or _slack_name(item) or user
        text = html.unescape(first_text(item, ("text",)) or "".join(_block_texts(item.get("blocks"))))
        if not text:
            left_out["empty message"] += not any(item.get(key) for key in ("files", "attachments"))
        elif name:
            messages.append(ParsedMessage(name, text, readable_time(item["ts"])))
    return ParsedTranscript(messages, left_out=left_out)


def _block_texts(block: object) -> Iterator[str]:
    """Yield the texts in the blocks of a message, which apps send without a plain text."""
    if isinstance(block, list):
        for each in block:
            yield from _block_texts(each)
    elif isinstance(block, dict):
        text = block.get("text")
        yield from [text] if isinstance(text, str) else _block_texts([text, block.get("elements")])
        yield "\n" if block.get("type") in ("section", "rich_text_section") else ""


def _slack_name(item: JsonDict) -> str:
    for key in ("user_profile", "bot_profile"):
        if isinstance(profile := item.get(key), dict):
            return first_text(profile, ("real_name", "display_name", "name"))
    return first_text(item, ("username",))


SLACK = Reader("Slack export", "json", _read_slack)

_DISCORD_SPEECH = (None, "Default", "Reply", "ChatInputCommand", "ThreadStarterMessage", 0, 19, 20, 21)
"""Message types of Discord's exports and of its API that are written by a user."""


def _read_discord(source: Source) -> ParsedTranscript | None:
    value = source.json
    items = _objects(value)
    if not items or not all(
        isinstance(item.get("author"), dict) and "content" in item and "timestamp" in item for item in items
    ):
        return None
    left_out, messages = LeftOut(), list[ParsedMessage]()
    for item in _in_order(items, "timestamp"):
        if item.get("type") not in _DISCORD_SPEECH:
            left_out["system message"] += 1
            continue
        _count_files(item, ("attachments", "embeds", "stickers", "sticker_items"), left_out)
        author = item["author"]
        assert isinstance(author, dict)  # noqa: S101  # checked above
        name = first_text(author, ("nickname", "global_name", "name", "username", "id"))
        messages.append(ParsedMessage(name, first_text(item, ("content",)), first_text(item, ("timestamp",))))
    channel = value.get("channel") if isinstance(value, dict) else None
    topic = first_text(channel, ("topic",)) if isinstance(channel, dict) else ""
    return ParsedTranscript(messages, topic, left_out=left_out)


DISCORD = Reader("Discord export", "json", _read_discord)


def _read_messenger(source: Source) -> ParsedTranscript | None:
    items = _objects(source.json)
    if not items or not all({"sender_name", "timestamp_ms"} <= item.keys() for item in items):
        return None
    left_out, messages = LeftOut(), list[ParsedMessage]()
    for item in sorted(items, key=lambda item: first_text(item, ("timestamp_ms",))):
        _count_files(item, ("photos", "videos", "files", "audio_files", "gifs", "sticker", "share"), left_out)
        name, text = (_repaired(first_text(item, (key,))) for key in ("sender_name", "content"))
        if text:
            messages.append(ParsedMessage(name, text, readable_time(item["timestamp_ms"])))
    value = source.json
    topic = _repaired(first_text(value, ("title",))) if isinstance(value, dict) else ""
    return ParsedTranscript(messages, topic, left_out=left_out)


def _repaired(text: str) -> str:
    """Return a text whose UTF-8 bytes are written as single characters, as in Facebook's exports."""
    try:
        return text.encode("latin-1").decode()
    except UnicodeError:
        return text


MESSENGER = Reader("Messenger export", "json", _read_messenger)

_TELEGRAM_MEDIA = ("photo", "file", "media_type", "poll", "location_information", "contact_information")


def _read_telegram(source: Source) -> ParsedTranscript | None:
    value = source.json
    chats = value.get("chats") if isinstance(value, dict) else None
    candidates = chats.get("list") if isinstance(chats, dict) else [value]
    if not isinstance(candidates, list) or not candidates or not all(map(_is_telegram, candidates)):
        return None
    chat = choose_conversation(candidates, [first_text(each, ("name", "id")) for each in candidates], source)
    left_out, messages = LeftOut(), list[ParsedMessage]()
    for item in _objects(chat):
        if item.get("type") != "message":
            left_out["system message"] += 1
            continue
        left_out["attachment"] += any(item.get(key) for key in _TELEGRAM_MEDIA)
        name = first_text(item, ("from", "from_id", "author")) or "Deleted account"
        messages.append(ParsedMessage(name, _telegram_text(item.get("text")), first_text(item, ("date",))))
    return ParsedTranscript(messages, left_out=left_out)


def _is_telegram(chat: object) -> bool:
    items = _objects(chat)
    return bool(items) and all(
        item.get("type") in ("message", "service") and "date" in item and ("text" in item or "action" in item)
        for item in items
    )


def _telegram_text(text: object) -> str:
    """Return a text that may be a list of plain and formatted parts."""
    if not isinstance(text, list):
        return str(text or "")
    return "".join(first_text(part, ("text",)) if isinstance(part, dict) else str(part) for part in text)


TELEGRAM = Reader("Telegram export", "json", _read_telegram)


def _read_github(source: Source) -> ParsedTranscript | None:
    value = source.json
    comments = value.get("comments") if isinstance(value, dict) else value
    if isinstance(comments, dict):
        comments = comments.get("nodes")
    is_thread = isinstance(value, dict) and "body" in value and ("author" in value or "user" in value)
    if not isinstance(comments, list) or not (comments or is_thread):
        return None
    reviews = value.get("reviews") if isinstance(value, dict) else None
    written = (
        [each for each in reviews if isinstance(each, dict) and each.get("body")]
        if isinstance(reviews, list)
        else []
    )
    if written:  # reviews stand beside the comments
        comments = sorted([*comments, *written], key=_github_time)
    items = [value, *comments] if is_thread else comments
    if not all(isinstance(item, dict) and "body" in item and _login(item) for item in items):
        return None
    if any(map(replies_of, comments)):  # the reader of lists reads the threads of discussions
        return None
    messages = [
        ParsedMessage(_login(item), first_text(item, ("body",)), _github_time(item)) for item in items
    ]
    return ParsedTranscript(messages, first_text(value, ("title",)) if isinstance(value, dict) else "")


def _github_time(item: object) -> str:
    keys = ("createdAt", "created_at", "submittedAt", "submitted_at")
    return first_text(item, keys) if isinstance(item, dict) else ""


def _login(item: JsonDict) -> str:
    """Return the login of an author. GitHub calls a deleted user `ghost`."""
    people = (item.get("author"), item.get("user"))
    if people == (None, None) and item.keys() & {"author", "user"}:
        return "ghost"
    return next(
        (name for each in people if isinstance(each, dict) and (name := first_text(each, ("login",)))), ""
    )


GITHUB = Reader("GitHub thread", "json", _read_github)


def _read_reddit(source: Source) -> ParsedTranscript | None:
    value = source.json
    listings = value if isinstance(value, list) else [value]
    if not listings or not all(isinstance(each, dict) and each.get("kind") == "Listing" for each in listings):
        return None
    left_out, messages, topic = LeftOut(), list[ParsedMessage](), ""
    pending: list[object] = list(listings[::-1])
    while pending:  # depth first, in the order of the page
        thing = pending.pop()
        data = thing.get("data") if isinstance(thing, dict) else None
        if not isinstance(thing, dict) or not isinstance(data, dict):
            continue
        if thing.get("kind") == "Listing":
            children = data.get("children")
            pending += children[::-1] if isinstance(children, list) else []
        elif thing.get("kind") == "more":
            count = data.get("count")
            left_out["hidden comment"] += count if isinstance(count, int) else 1
        else:
            topic = topic or first_text(data, ("title",))
            text = first_text(data, ("body", "selftext")) or first_text(data, ("title",))
            if name := speaker_of(data):
                messages.append(
                    ParsedMessage(name, html.unescape(text), readable_time(data.get("created_utc")))
                )
            pending.append(data.get("replies"))
    return ParsedTranscript(messages, topic, left_out=left_out)


REDDIT = Reader("Reddit thread", "json", _read_reddit)
