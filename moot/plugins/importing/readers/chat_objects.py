"""JSON exports of Slack, Discord and Telegram."""

import html
from collections.abc import Iterable, Sequence

from moot import importers
from moot.plugins.importing.message_objects import JsonDict, first_text, readable_time, speaker_of


def _objects(value: object) -> list[JsonDict]:
    """Return the messages in a list or under the key `messages`, or `[]` if there are none."""
    items = value.get("messages") if isinstance(value, dict) else value
    is_list = isinstance(items, list) and all(isinstance(item, dict) for item in items)
    return items if is_list and isinstance(items, list) else []


def _count_files(item: JsonDict, keys: Iterable[str], left_out: importers.LeftOut) -> None:
    left_out["attachment"] += sum(
        len(value) if isinstance(value, list) else 1 for key in keys if (value := item.get(key))
    )


def _in_order(items: Sequence[JsonDict], key: str) -> list[JsonDict]:
    """Sort messages by time. The services' APIs return the newest message first."""
    return sorted(items, key=lambda item: str(item.get(key) or ""))


def _read_slack(source: importers.Source) -> importers.ParsedTranscript | None:
    items = _objects(source.json)
    if not items or not all("ts" in item and item.get("type", "message") == "message" for item in items):
        return None
    names = {str(item["user"]): name for item in items if "user" in item and (name := _slack_name(item))}
    left_out, messages = importers.LeftOut(), list[importers.ParsedMessage]()
    for item in _in_order(items, "ts"):
        if item.get("subtype") not in (None, "bot_message", "thread_broadcast", "me_message", "file_share"):
            left_out["system message"] += 1
            continue
        _count_files(item, ("files", "attachments"), left_out)
        user = first_text(item, ("user", "username", "bot_id"))
        name = names.get(user) or _slack_name(item) or user
        text = html.unescape(first_text(item, ("text",)))
        if name and text:
            messages.append(importers.ParsedMessage(name, text, readable_time(item["ts"])))
    return importers.ParsedTranscript(messages, left_out=left_out)


def _slack_name(item: JsonDict) -> str:
    for key in ("user_profile", "bot_profile"):
        if isinstance(profile := item.get(key), dict):
            return first_text(profile, ("real_name", "display_name", "name"))
    return first_text(item, ("username",))


SLACK = importers.Reader("Slack export", "json", _read_slack)

_DISCORD_SPEECH = (None, "Default", "Reply", "ChatInputCommand", "ThreadStarterMessage", 0, 19, 20, 21)
"""Message types of Discord's exports and of its API that are written by a user."""


def _read_discord(source: importers.Source) -> importers.ParsedTranscript | None:
    value = source.json
    items = _objects(value)
    if not items or not all(
        isinstance(item.get("author"), dict) and "content" in item and "timestamp" in item for item in items
    ):
        return None
    left_out, messages = importers.LeftOut(), list[importers.ParsedMessage]()
    for item in _in_order(items, "timestamp"):
        if item.get("type") not in _DISCORD_SPEECH:
            left_out["system message"] += 1
            continue
        _count_files(item, ("attachments", "embeds", "stickers", "sticker_items"), left_out)
        author = item["author"]
        assert isinstance(author, dict)  # noqa: S101  # checked above
        name = first_text(author, ("nickname", "global_name", "name", "username", "id"))
        messages.append(
            importers.ParsedMessage(name, first_text(item, ("content",)), first_text(item, ("timestamp",)))
        )
    channel = value.get("channel") if isinstance(value, dict) else None
    topic = first_text(channel, ("topic",)) if isinstance(channel, dict) else ""
    return importers.ParsedTranscript(messages, topic, left_out=left_out)


DISCORD = importers.Reader("Discord export", "json", _read_discord)

_TELEGRAM_MEDIA = ("photo", "file", "media_type", "poll", "location_information", "contact_information")


def _read_telegram(source: importers.Source) -> importers.ParsedTranscript | None:
    value = source.json
    chats = value.get("chats") if isinstance(value, dict) else None
    candidates = chats.get("list") if isinstance(chats, dict) else [value]
    if not isinstance(candidates, list) or not candidates or not all(map(_is_telegram, candidates)):
        return None
    chat = importers.choose_conversation(
        candidates, [first_text(each, ("name", "id")) for each in candidates], source
    )
    left_out, messages = importers.LeftOut(), list[importers.ParsedMessage]()
    for item in _objects(chat):
        if item.get("type") != "message":
            left_out["system message"] += 1
            continue
        left_out["attachment"] += any(item.get(key) for key in _TELEGRAM_MEDIA)
        name = first_text(item, ("from", "from_id", "author")) or "Deleted account"
        messages.append(
            importers.ParsedMessage(name, _telegram_text(item.get("text")), first_text(item, ("date",)))
        )
    return importers.ParsedTranscript(messages, left_out=left_out)


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


TELEGRAM = importers.Reader("Telegram export", "json", _read_telegram)


def _read_github(source: importers.Source) -> importers.ParsedTranscript | None:
    value = source.json
    comments = value.get("comments") if isinstance(value, dict) else value
    if isinstance(comments, dict):
        comments = comments.get("nodes")
    is_thread = isinstance(value, dict) and "body" in value and ("author" in value or "user" in value)
    if not isinstance(comments, list) or not (comments or is_thread):
        return None
    items = [value, *comments] if is_thread else comments
    if not all(isinstance(item, dict) and "body" in item and _login(item) for item in items):
        return None
    messages = [
        importers.ParsedMessage(
            _login(item), first_text(item, ("body",)), first_text(item, ("createdAt", "created_at"))
        )
        for item in items
    ]
    return importers.ParsedTranscript(
        messages, first_text(value, ("title",)) if isinstance(value, dict) else ""
    )


def _login(item: JsonDict) -> str:
    people = (item.get("author"), item.get("user"))
    return next(
        (name for each in people if isinstance(each, dict) and (name := first_text(each, ("login",)))), ""
    )


GITHUB = importers.Reader("GitHub thread", "json", _read_github)


def _read_reddit(source: importers.Source) -> importers.ParsedTranscript | None:
    value = source.json
    listings = value if isinstance(value, list) else [value]
    if not listings or not all(isinstance(each, dict) and each.get("kind") == "Listing" for each in listings):
        return None
    left_out, messages, topic = importers.LeftOut(), list[importers.ParsedMessage](), ""
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
                    importers.ParsedMessage(name, html.unescape(text), readable_time(data.get("created_utc")))
                )
            pending.append(data.get("replies"))
    return importers.ParsedTranscript(messages, topic, left_out=left_out)


REDDIT = importers.Reader("Reddit thread", "json", _read_reddit)
