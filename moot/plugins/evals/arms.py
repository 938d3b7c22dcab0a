"""Arms of an evaluation, which are the configurations, votes, judges and recorded results to compare."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import lcm
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from moot.config import DebateConfig, config_files, debate_config, section, slug
from moot.config.file_references import Warn, log
from moot.config.stages import read, read_config
from moot.debates.config_checks import check_model
from moot.plugins.evals.items import ItemSet, Kind
from moot.protocols.registry import protocol_names
from moot.state.entries import JsonObject
from moot.state.errors import ConfigError, file_error_reason

ArmKind = Literal["debate", "vote", "first-answers", "judge", "recorded", "lineup"]
VERSUS = " vs "
"""Separator between the names of two compared configurations."""
MAX_ANSWERS = 256
"""Maximum number of answers in a vote (`vote.answers`)."""
STANCES = ("argues for it", "argues against it")
"""Default stances of the two groups in a debate about a topic. The first stance is for the group that speaks
first."""
KINDS: Mapping[Kind, tuple[ArmKind, ...]] = {
    "question": ("debate", "vote", "first-answers", "recorded"),
    "pair": ("judge", "recorded"),
    "topic": ("lineup",),
}
"""Kinds of configurations that can be evaluated on each kind of item."""


class RecordedResult(BaseModel):
    """Result for one evaluation item, read from a file.

    No model is called for this item.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    id: str = Field(min_length=1)
    """Id of the evaluation item."""
    answer: str | None = None
    """Recorded answer to the question, or `None` if the item is a pair of answers."""
    winners: tuple[Literal["a", "b", "tie"], ...] = Field(default=(), max_length=2)
    """Answers that the judge preferred, one for each order of the two answers. Answer `a` comes first in the
    first order, and answer `b` in the second."""
    confidence: float | None = Field(default=None, ge=0, le=100)
    """Confidence in the recorded result, in percent, or `None` if it is unknown."""
    tokens: int = Field(default=0, ge=0)
    calls: int = Field(default=0, ge=0)
    cost_usd: float = Field(default=0.0, ge=0)
    seconds: float = Field(default=0.0, ge=0)


@dataclass(frozen=True)
class Arm:
    """One of the configurations that an evaluation compares."""

    name: str
    """Configuration's name on the command line, such as `vote@5` or `council.yaml`."""
    kind: ArmKind
    config: DebateConfig | None = None
    """Configuration of the evaluated debates, or `None` for recorded results and `first-answers`."""
    match: Literal["", "tokens", "cost"] = ""
    """Amount that is kept equal between a vote and a debate, either `tokens` or `cost`. It is empty if a vote
    matches no debate."""
    source: str = ""
    """Name of the debate configuration that supplies the debaters' first answers. A `first-answers`
    configuration reuses these answers."""
    recorded: Mapping[str, RecordedResult] = field(default_factory=dict)

    @property
    def fingerprint(self) -> str:
        """Hash of all settings that affect an evaluated configuration's results."""
        rows = [each.model_dump(mode="json") for each in self.recorded.values()]
        config = self.config.fingerprint() if self.config else ""
        content = json.dumps([self.kind, config, self.match, self.source, rows])
        return hashlib.sha256(content.encode()).hexdigest()[:16]

    @property
    def is_debate(self) -> bool:
        """True if this configuration answers each item with a debate.

        The protocol `single` does not count as a debate.
        """
        return self.kind == "debate" and self.config is not None and self.config.protocol != "single"

    def to_json(self) -> JsonObject:
        """Return the evaluated configuration as JSON data for the evaluation's record."""
        return {
            "name": self.name,
            "kind": self.kind,
            "config": self.config.to_json() if self.config else None,
            "match": self.match,
            "source": self.source,
            "recorded": [each.model_dump(mode="json") for each in self.recorded.values()],
            "fingerprint": self.fingerprint,
        }

    @classmethod
    def from_json(cls, data: JsonObject) -> "Arm":
        """Restore an evaluated configuration from the JSON data that `to_json` produced."""
        config = DebateConfig.model_validate(data["config"]) if data["config"] else None
        recorded = {row["id"]: RecordedResult.model_validate(row) for row in data["recorded"]}
        return cls(data["name"], data["kind"], config, data["match"], data["source"], recorded)


def read_arms(
    names: Sequence[str],
    items: ItemSet,
    flags: Mapping[str, object],
    base: Path | None = None,
    warn: Warn = log,
    earlier: Sequence[Arm] = (),
) -> list[Arm]:
    """Return the configurations selected with `--arm`, and all others that their evaluation needs.

    `vote@tokens` and `vote@cost` need the price of one answer, so `single` is added. If no debate is named,
    the debates of `earlier` are added for an arm that needs one.

    Args:
        names: Built-in names (`single` or another protocol, `vote@K`, `vote@tokens`, `vote@cost`,
            `first-answers`), configuration files, `judge:FILE` and `recorded:FILE`.
        items: The evaluation set.
        flags: Settings from the command line that override the files, such as `model`.
        base: Configuration file of the built-in arms. `None`: `MOOT_CONFIG`.
        warn: Function called with a warning for every configuration value that is ignored.
        earlier: Arms of earlier calls of the same evaluation.

    Raises:
        ConfigError: An arm is unknown or invalid, or does not fit the items.
    """
    if duplicates := {name for name in names if names.count(name) > 1}:
        raise ConfigError(f"--arm {min(duplicates)} is given twice: remove one of them")
    if not names:
        raise ConfigError(
            "there is no configuration to evaluate: add --arm with a protocol, vote@5 or a configuration file"
        )
    arms = [_read_arm(name, items, flags, base, warn) for name in names]
    for arm in arms:
        if arm.kind not in KINDS[items.kind]:
            raise ConfigError(
                f"--arm {arm.name!r} does not work with evaluation items of the kind {items.kind}: use "
                f"--arm with {_ADVICE[items.kind]}"
            )
    matched_arms = [arm for arm in arms if arm.match]
    _add_debates(arms, earlier)
    debates = [arm.name for arm in arms if arm.is_debate]
    if matched_arms and not debates:
        raise ConfigError(
            f"--arm {matched_arms[0].name!r} takes its budget from a debate, but there is none: add "
            "another --arm with a configuration file, or with a protocol other than single"
        )
    if matched_arms and not any(arm.name == "single" for arm in arms):
        arms.append(_read_arm("single", items, flags, base, warn))
    if items.kind == "topic" and len(arms) < 2:
        raise ConfigError(
            "an evaluation of topics needs two or more groups of debaters: add another --arm FILE.yaml"
        )
    if items.needs_comparison and len({arm.name for arm in (*arms, *earlier)}) < 2:
        raise ConfigError(
            f"{items.name}: the items have neither `answer` nor `reference`, so a judge must compare the "
            "answers of two configurations: add one of these keys to each item, or add another --arm"
        )
    return [_resolve_source(arm, debates) for arm in arms]


def _add_debates(arms: list[Arm], earlier: Sequence[Arm]) -> None:
    """Add the debate configurations from `earlier` that the configurations in `arms` need.

    `earlier` holds the configurations of earlier calls of the same evaluation.
    """
    sources = {arm.name: arm.source for arm in earlier}
    for index, arm in enumerate(arms):
        if arm.kind == "first-answers" and not arm.source:
            arms[index] = replace(arm, source=sources.get(arm.name, ""))
    names = {arm.name for arm in arms}
    dependencies = {arm.source for arm in arms}
    needs_any = any(arm.match or (arm.kind == "first-answers" and not arm.source) for arm in arms)
    if needs_any and not any(arm.is_debate for arm in arms):
        dependencies |= {arm.name for arm in earlier}
    arms += [arm for arm in earlier if arm.is_debate and arm.name in dependencies - names]


def _resolve_source(arm: Arm, debates: Sequence[str]) -> Arm:
    """Set which debate supplies the answers of a `first-answers` configuration.

    The result is a copy. Any other configuration is returned unchanged.

    Raises:
        ConfigError: the debate is missing.
    """
    if arm.kind != "first-answers":
        return arm
    source = arm.source or (debates[0] if debates else "")
    if source not in debates:
        hint = f", or use first-answers:ARM, where ARM is one of {', '.join(debates)}" if debates else ""
        raise ConfigError(
            f"--arm {arm.name!r} uses the answers of a debate that is missing: add the debate with "
            f"--arm{hint}"
        )
    return replace(arm, source=source)


_ADVICE: Mapping[Kind, str] = {
    "question": "single, vote@K, vote@tokens, vote@cost, first-answers, recorded:FILE or a configuration "
    "file",
    "pair": "judge:FILE or recorded:FILE",
    "topic": "configuration files with debaters",
}


def _read_arm(name: str, items: ItemSet, flags: Mapping[str, object], base: Path | None, warn: Warn) -> Arm:
    kind, _, argument = name.partition(":")
    if kind == "recorded" and argument:
        return Arm(name, "recorded", recorded=_read_recorded(Path(argument), items))
    if kind == "judge" and argument:
        layers = read(Path(argument), flags, warn)
        data = {
            key: value for key, value in config_files.merge_settings(*layers).items() if key in _JUDGE_KEYS
        }
        return Arm(name, "judge", _check(name, config_files.make_config({**data, "protocol": "pairwise"})))
    if kind == "first-answers":
        return Arm(name, "first-answers", source=argument)
    if vote := re.fullmatch(r"vote@(\w+)", name):
        return _vote(name, vote[1], flags, base, warn)
    if Path(name).suffix.lower() in config_files.ENDINGS:
        config = _check(name, read_config(Path(name), flags, warn))
        return Arm(name, "lineup" if items.kind == "topic" else "debate", config)
    if name in protocol_names():
        return Arm(name, "debate", _check(name, read_config(base, {**flags, "protocol": name}, warn)))
    raise ConfigError(
        f"--arm {name!r} is neither a built-in configuration nor a configuration file: use "
        f"{_ADVICE[items.kind]}"
    )


def judge_settings(flags: Mapping[str, object], base: Path | None, warn: Warn = log) -> JsonObject:
    """Return the judge's settings for grading or comparing free-form answers."""
    data = config_files.merge_settings(*read(base, flags, warn))
    settings = {key: value for key, value in data.items() if key in _JUDGE_KEYS}
    return config_files.make_config({**settings, "protocol": "pairwise"}).to_json()


_JUDGE_KEYS = ("model", "fallbacks", "judge", "memory", "models", "limits", "seed")
"""Configuration keys that matter when a judge grades or compares answers. All other keys are ignored."""


def _vote(name: str, amount: str, flags: Mapping[str, object], base: Path | None, warn: Warn) -> Arm:
    settings: dict[str, object] = {**flags, "protocol": "vote"}
    if amount in ("tokens", "cost"):
        config = _check(name, read_config(base, settings, warn))
        return Arm(name, "vote", config, match="tokens" if amount == "tokens" else "cost")
    answers = int(amount) if amount.isdecimal() and len(amount) < 9 else 0
    if not 2 <= answers <= MAX_ANSWERS:
        raise ConfigError(
            f"--arm {name!r} is not a valid vote: give a number of answers, from vote@2 to "
            f"vote@{MAX_ANSWERS}, or match a debate's budget with vote@tokens or vote@cost"
        )
    return Arm(name, "vote", _check(name, read_config(base, {**settings, "vote.answers": answers}, warn)))


def _check(name: str, config: DebateConfig) -> DebateConfig:
    if people := [debater.name for debater in config.debaters if debater.is_human]:
        raise ConfigError(
            f"--arm {name!r}: debater {people[0]!r} is a person, but an evaluation runs without "
            "people: set a model for this debater"
        )
    check_model(config)
    return config


def _read_recorded(path: Path, items: ItemSet) -> dict[str, RecordedResult]:
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"cannot read recorded results {str(path)!r}: {file_error_reason(error)}"
        ) from error
    results = dict[str, RecordedResult]()
    item_ids = {item.id for item in items.items}
    for number, line in enumerate(text.split("\n"), start=1):
        if not line.strip():
            continue
        try:
            result = RecordedResult.model_validate_json(line)
        except ValidationError as error:
            raise ConfigError(f"{path}:{number}: {'; '.join(section.errors_in(error))}") from error
        if result.id not in item_ids or result.id in results:
            problem = "is there twice" if result.id in results else "is not in the evaluation set"
            raise ConfigError(f"{path}:{number}: the id {result.id!r} {problem}")
        if items.kind == "pair" and not result.winners:
            raise ConfigError(
                f"{path}:{number}: give this result the key `winners`, because the item is a pair of answers"
            )
        if items.kind == "question" and result.answer is None:  # an empty answer is a wrong one
            raise ConfigError(
                f"{path}:{number}: give this result the key `answer`, because the item is a question"
            )
        results[result.id] = result
    return results


@dataclass(frozen=True)
class Meeting:
    """A debate in which two groups of debaters, called line-ups, argue about one topic."""

    first: Arm
    """Configuration of the group that speaks first."""
    second: Arm
    config: DebateConfig
    sides: Mapping[str, str]
    """Name of each debater's group, keyed by debater id."""

    @property
    def name(self) -> str:
        """Name of the meeting, such as `one.yaml vs two.yaml`.

        The group that speaks first is named first.
        """
        return f"{self.first.name}{VERSUS}{self.second.name}"


def meetings(lineups: Sequence[Arm]) -> list[Meeting]:
    """Return the debates between all pairs of debater groups.

    Each pair debates twice, and each group speaks first once. The debaters come from the two configurations.
    All other settings must be equal in both.

    Raises:
        ConfigError: Two line-ups differ in other settings, or have different sizes.
    """
    for one, other in combinations(lineups, 2):
        _check_comparable(one, other)
    pairs = combinations(lineups, 2)
    return [_meeting(first, second) for pair in pairs for first, second in (pair, pair[::-1])]


def _check_comparable(one: Arm, other: Arm) -> None:
    lineup_keys = ("debaters", "model", "order", "topic")
    if one.config is None or other.config is None:
        return
    settings = [
        {key: value for key, value in config.to_json().items() if key not in lineup_keys}
        for config in (one.config, other.config)
    ]
    if differences := debate_config.differing_keys(settings[0], settings[1]):
        raise ConfigError(
            f"line-ups {one.name!r} and {other.name!r} differ in {', '.join(differences)}: for a fair "
            "comparison, give both files the same settings except `debaters` and `model`"
        )
    sizes = len(one.config.debaters), len(other.config.debaters)
    if one.config.protocol != "round-robin" and sizes[0] != sizes[1]:
        raise ConfigError(
            f"line-ups {one.name!r} ({sizes[0]} debaters) and {other.name!r} ({sizes[1]} debaters) differ "
            f"in size: protocol {one.config.protocol!r} needs the same number of debaters in both line-ups"
        )


def _meeting(first: Arm, second: Arm) -> Meeting:
    sides: dict[str, str] = {}
    debaters: dict[str, dict[str, object]] = {}
    for stance, arm, prefix in zip(STANCES, (first, second), ("one", "two"), strict=True):
        assert arm.config  # noqa: S101  # a line-up
        for debater in arm.config.debaters:
            key = f"{prefix}-{slug(debater.id)}"[:40]
            overrides = {"id": key, "stance": debater.stance or stance, "model": arm.config.model_of(debater)}
            debaters[key] = {**debater.model_dump(mode="json"), **overrides}
            sides[key] = arm.name
    first_team, second_team = (
        [key for key, side in sides.items() if side == arm.name] for arm in (first, second)
    )
    order = [
        team[turn % len(team)]
        for turn in range(lcm(len(first_team), len(second_team)))
        for team in (first_team, second_team)
    ]
    speakers = list(dict.fromkeys(order))
    assert first.config  # noqa: S101  # a line-up
    base = {**first.config.to_json(), "debaters": [debaters[key] for key in speakers]}
    base["order"] = order if speakers != order and first.config.protocol == "round-robin" else []
    return Meeting(first, second, config_files.make_config(base), sides)
