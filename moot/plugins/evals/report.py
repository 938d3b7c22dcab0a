"""Report of an evaluation as data: its figures, differences and conclusions."""

from collections import defaultdict
from collections.abc import Sequence
from statistics import fmean, median

from moot.judging.orders import cohen_kappa, krippendorff_alpha, pairwise_kappa
from moot.plugins.evals import results, statistics
from moot.plugins.evals.items import Item, PairItem, QuestionItem, gold_answer, topic_of
from moot.state.entries import JsonObject
from moot.state.errors import InputError
from moot.text.plain_text import count_noun

MAX_UNREADABLE_ANSWERS = 200
"""Maximum number of unreadable answers in a report."""
SHOWN = 500
"""Maximum number of characters that a report shows of each text."""
LISTED_TEXTS = 10
"""Maximum number of texts that a report shows for each answer."""
ASKED = ("judge", "recorded")
"""Kinds of configurations that belong in a report's headline. Debates belong there too. Votes and single
answers follow, because they show what a debate has to beat."""
BASELINES = ("vote@tokens", "vote@cost")
"""Preferred baselines of a report, most preferred first. Each is a vote with the same budget as a debate."""


def evaluation_report(
    evaluation: results.EvaluationRecord,
    outcomes: dict[tuple[str, str, int], results.ItemOutcome],
    baseline: str = "",
) -> JsonObject:
    """Return an evaluation's report as JSON data.

    Args:
        evaluation: The record of the evaluation.
        outcomes: All stored outcomes, by item, arm and seed.
        baseline: Name of the arm that the others are compared with. `""`: a vote with an equal budget if
            there is one, else another vote, `single`, or the first arm.

    Raises:
        InputError: No arm has the name of the baseline.
    """
    scored = results.ScoredEvaluation(evaluation, outcomes)
    names = [arm.name for arm in evaluation.arms]
    if baseline and baseline not in names:
        raise InputError(
            f"--baseline {baseline!r} is not part of this evaluation: choose from {', '.join(names)}"
        )
    base = baseline or _baseline(scored)
    meetings = results.meeting_scores(scored.meetings)
    report: JsonObject = {
        "name": evaluation.name,
        "set": {
            "name": evaluation.items.name,
            "kind": evaluation.items.kind,
            "items": len(scored.items),
            "digest": evaluation.items.digest,
        },
        "seeds": evaluation.seeds,
        "created_at": evaluation.created_at,
        "baseline": base,
        "headline": [],
        "findings": [],
        "notes": [],
        "arms": [_arm_row(scored, name) for name in names],
        "groups": _groups(scored),
        "difficulty": _difficulty(scored),
        "vote_curve": [
            {"answers": answers, "accuracy": accuracy, "tokens": tokens, "cost_usd": cost}
            for answers, accuracy, tokens, cost in scored.vote_curve()
        ],
        "calibration": _calibration_rows(scored),
        "preferences": _preferences(meetings),
        "unreadable": [_unreadable_row(score) for score in scored.unreadable()[:MAX_UNREADABLE_ANSWERS]],
    }
    rows = {row["arm"]: row for row in report["arms"]}
    if meetings:
        _add_ratings(rows, meetings)
    for name in names:
        if name != base and scored.scores[name] and scored.scores[base]:
            rows[name]["difference"] = _difference_row(base, _paired(scored, name, base))
    sentences = _comparisons(rows, base)
    headline_arms = {arm.name for arm in evaluation.arms if arm.is_debate or arm.kind in ASKED}
    headlines = [text for name, text in sentences.items() if name in headline_arms] or [*sentences.values()]
    report["headline"] = [*headlines, *_preference_headlines(report["preferences"])]
    report["findings"] = [
        *(sentence for sentence in sentences.values() if sentence not in headlines),
        *_discussion_findings(scored, rows),
        *_difficulty_findings(report, base),
    ]
    report["notes"] = _notes(scored, report)
    return report


def item_rows(
    evaluation: results.EvaluationRecord, outcomes: dict[tuple[str, str, int], results.ItemOutcome]
) -> list[JsonObject]:
    """Return all evaluation items with their answers and scores."""
    scored = results.ScoredEvaluation(evaluation, outcomes)
    scores = {each.outcome.key: each for arm_scores in scored.scores.values() for each in arm_scores}
    answers: dict[str, list[JsonObject]] = defaultdict(list)
    for outcome in (
        *(each for arm_outcomes in scored.outcomes.values() for each in arm_outcomes),
        *scored.meetings,
    ):
        score = scores.get(outcome.key)
        answers[outcome.item].append(
            {
                "arm": outcome.arm,
                "seed": outcome.seed,
                "score": score.value if score else None,
                "answer": ", ".join(outcome.winners) or (score.answer if score else None),
                "texts": [text[:SHOWN] for text in outcome.texts[:LISTED_TEXTS]],
                "debate": outcome.debate,
                "tokens": outcome.tokens,
                "cost_usd": outcome.cost_usd,
            }
        )
    return [
        {"id": item.id, "group": item.group, **_content(item), "answers": answers[item.id]}
        for item in scored.items.values()
    ]


def _content(item: Item) -> JsonObject:
    if isinstance(item, QuestionItem):
        gold = gold_answer(item)
        return {"text": topic_of(item), "gold": item.reference if gold is None else gold}
    if isinstance(item, PairItem):
        return {"text": item.input, "gold": item.better}
    return {"text": item.topic, "gold": ""}


def _baseline(scored: results.ScoredEvaluation) -> str:
    """Return the name of the configuration that serves as the baseline for comparisons.

    A vote with the same budget as a debate is preferred.
    """
    arms = scored.evaluation.arms
    names = [arm.name for arm in arms if scored.scores[arm.name]] or [arm.name for arm in arms]
    votes = [arm.name for arm in arms if arm.kind == "vote"]
    return next((name for name in (*BASELINES, *votes, "single") if name in names), names[0])


def _arm_row(scored: results.ScoredEvaluation, name: str) -> JsonObject:
    scores, outcomes = scored.scores[name], scored.outcomes[name]
    values = [score.value for score in scores]
    interval = _interval(scored, name)
    row: JsonObject = {
        "arm": name,
        "kind": scored.evaluation.arm(name).kind,
        "items": len({score.outcome.item for score in scores}),
        "answers": len(scores),
        "correct": _whole(sum(values)),
        "accuracy": fmean(values) if values else None,
        "low": interval.low,
        "high": interval.high,
        "interval": interval.method,
        "missing": scored.missing(name),
        "unreadable": sum(score.answer is None and not score.scores_by_order for score in scores),
        "tokens": sum(each.tokens for each in outcomes),
        "calls": sum(each.calls for each in outcomes),
        "cost_usd": round(sum(each.cost_usd for each in outcomes), 6),
        "seconds": median(seconds) if (seconds := [s.seconds for s in outcomes if s.seconds]) else None,
        "samples": fmean(each.answers for each in outcomes) if outcomes else None,
        "difference": None,
    }
    row |= _calibration(scores)
    if any(score.scores_by_order for score in scores):
        row |= _order_figures(scored, scores)
    row |= _reliability(scores)
    if discussion := scored.discussion(name):
        row["vote_changed"] = discussion.vote_changed
        row["discussed"] = discussion.compared
        row["changes"] = [vars(change) for change in discussion.changes]
    return row


def _whole(value: float) -> float:
    return int(value) if value == int(value) else value


def _interval(scored: results.ScoredEvaluation, name: str) -> statistics.Interval:
    """Return the confidence interval of a configuration's accuracy."""
    values = [score.value for score in scored.scores[name]]
    if scored.evaluation.seeds == 1 and set(values) <= {0.0, 1.0}:
        return statistics.proportion_interval(int(sum(values)), len(values))
    return statistics.mean_interval(list(scored.by_item(name).values()))


def _calibration(scores: Sequence[results.AnswerScore]) -> JsonObject:
    pairs = [(score.outcome.confidence, score.value) for score in scores]
    stated_pairs = [(confidence / 100, value) for confidence, value in pairs if confidence is not None]
    confidences, values = [c for c, _ in stated_pairs], [v for _, v in stated_pairs]
    return {
        "brier": statistics.brier_score(confidences, values),
        "ece": statistics.calibration_error(confidences, values),
        "stated": len(stated_pairs),
    }


def _calibration_rows(scored: results.ScoredEvaluation) -> list[JsonObject]:
    """Return how accurate each model's answers are at each stated confidence.

    Each pair holds a stated confidence and the measured accuracy. The setting `calibration` uses these pairs.
    """
    rows = []
    for model, confidences in scored.stated_confidences().items():
        bins = statistics.calibration_bins(
            [confidence for confidence, _ in confidences], [right for _, right in confidences]
        )
        pairs = [[round(each.confidence, 3), round(each.measured, 1)] for each in bins]
        rows.append({"model": model, "pairs": pairs, "answers": [each.answers for each in bins]})
    return rows


def _order_figures(scored: results.ScoredEvaluation, scores: Sequence[results.AnswerScore]) -> JsonObject:
    """Return statistics on how the order of the answers affects a judge's choices.

    They include the judge's agreement with human preferences.
    """
    both_order_scores = [score for score in scores if len(score.scores_by_order) == 2]
    winners = [score.outcome.winners for score in both_order_scores]
    human_choices = [scored.items[score.outcome.item].better for score in both_order_scores]  # type: ignore[union-attr]  # pairs
    first, second = [each[0] for each in winners], [each[1] for each in winners]
    agreements = sum(one == other for one, other in winners)
    return {
        "accuracy_by_order": [
            fmean(score.scores_by_order[order] for score in scores if len(score.scores_by_order) > order)
            for order in range(max(len(score.scores_by_order) for score in scores))
        ],
        "both_orders": len(both_order_scores),
        "correct_in_both": sum(score.value == 1 for score in both_order_scores),
        "order_agreement": agreements / len(both_order_scores) if both_order_scores else None,
        "flips": len(both_order_scores) - agreements,
        "kappa_orders": cohen_kappa(first, second),
        "kappa_people": cohen_kappa([*first, *second], [*human_choices, *human_choices]),
    }


def _reliability(scores: Sequence[results.AnswerScore]) -> JsonObject:
    """Return how well a panel's judges agree, and how well repeated runs agree."""
    judges: dict[str, dict[tuple[str, int, int], str]] = defaultdict(dict)
    seeds: dict[tuple[str, int], dict[int, str]] = defaultdict(dict)
    for score in scores:
        outcome = score.outcome
        for judge, winners in outcome.judges.items():
            judges[judge] |= {
                (outcome.item, outcome.seed, order): winner for order, winner in enumerate(winners)
            }
        answers = (
            outcome.winners if score.scores_by_order else [score.answer] if score.answer is not None else []
        )
        for order, answer in enumerate(answers):
            seeds[outcome.item, order][outcome.seed] = answer
    figures: JsonObject = {}
    if len(judges) > 1:
        units = sorted({unit for choices in judges.values() for unit in choices})
        ratings = {judge: [choices.get(unit) for unit in units] for judge, choices in judges.items()}
        figures["alpha_judges"] = krippendorff_alpha(zip(*ratings.values(), strict=True))
        figures["kappa_judges"] = pairwise_kappa(ratings)
    if any(len(answers_by_seed) > 1 for answers_by_seed in seeds.values()):
        figures["alpha_seeds"] = krippendorff_alpha(
            [*answers_by_seed.values()] for answers_by_seed in seeds.values()
        )
    return figures


def _paired(scored: results.ScoredEvaluation, first: str, second: str) -> statistics.PairedDifference:
    first_scores, second_scores = scored.by_item(first), scored.by_item(second)
    shared_items = [item for item in first_scores if item in second_scores]
    return statistics.paired_difference(
        [first_scores[item] for item in shared_items], [second_scores[item] for item in shared_items]
    )


def _difference_row(base: str, difference: statistics.PairedDifference) -> JsonObject:
    return {
        "to": base,
        "items": difference.items,
        "points": 100 * difference.difference,
        "low": 100 * difference.interval.low,
        "high": 100 * difference.interval.high,
        "p_value": difference.p_value,
        "test": difference.test,
        "interval": difference.interval.method,
        "better": difference.wins,
        "worse": difference.losses,
        "shown": difference.shown,
    }


def _groups(scored: results.ScoredEvaluation) -> list[JsonObject]:
    groups = dict.fromkeys(item.group for item in scored.items.values())
    if set(groups) == {""}:
        return []
    rows = []
    for group in groups:
        for arm, scores in scored.scores.items():
            values = [score.value for score in scores if scored.items[score.outcome.item].group == group]
            if not values:
                continue
            binary = scored.evaluation.seeds == 1 and set(values) <= {0.0, 1.0}
            by_item: dict[str, list[float]] = defaultdict(list)
            for score in scores:
                if scored.items[score.outcome.item].group == group:
                    by_item[score.outcome.item].append(score.value)
            interval = (
                statistics.proportion_interval(int(sum(values)), len(values))
                if binary
                else statistics.mean_interval([fmean(each) for each in by_item.values()])
            )
            rows.append(
                {
                    "group": group,
                    "arm": arm,
                    "items": len(by_item),
                    "correct": _whole(sum(values)),
                    "accuracy": fmean(values),
                    "low": interval.low,
                    "high": interval.high,
                }
            )
    return rows


def _difficulty(scored: results.ScoredEvaluation) -> JsonObject | None:
    """Return each configuration's accuracy on easier and harder items.

    An item is easier if more of the debaters' first answers agree. Return `None` if no first answers can be
    compared.
    """
    source, levels = scored.agreement()
    if not levels:
        return None
    rows = []
    for level in ("all agree", "majority", "no majority"):
        keys = {key for key, each in levels.items() if each == level}
        accuracies = {}
        for arm, scores in scored.scores.items():
            values = [each.value for each in scores if (each.outcome.item, each.outcome.seed) in keys]
            accuracies[arm] = fmean(values) if values else None
        if keys:
            rows.append({"agreement": level, "answers": len(keys), "accuracy": accuracies})
    return {"arm": source, "levels": rows}


def _preferences(meetings: dict[str, list[tuple[str, str, float]]]) -> list[JsonObject]:
    """Return how often one configuration was preferred to another, for each pair."""
    by_pair: dict[tuple[str, str], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for item, comparisons in meetings.items():
        for first, second, score in comparisons:
            pair = (first, second) if (second, first) not in by_pair else (second, first)
            by_pair[pair][item].append(score if pair == (first, second) else 1 - score)
    rows = []
    for (first, second), by_item in by_pair.items():
        values = [fmean(each) for each in by_item.values()]
        difference = statistics.paired_difference(values, [1 - value for value in values])
        interval = difference.interval
        rows.append(
            {
                "first": first,
                "second": second,
                "items": len(values),
                "share": fmean(values),
                "low": (1 + interval.low) / 2,
                "high": (1 + interval.high) / 2,
                "p_value": difference.p_value,
                "test": difference.test,
                "shown": difference.shown,
            }
        )
    return rows


def _add_ratings(rows: dict[str, JsonObject], meetings: dict[str, list[tuple[str, str, float]]]) -> None:
    for name, rating in statistics.ratings(list(rows), meetings).items():
        scores = [
            (score if first == name else 1 - score)
            for comparisons in meetings.values()
            for first, second, score in comparisons
            if name in (first, second)
        ]
        rows[name] |= {
            "rating": rating.rating,
            "rating_low": rating.low,
            "rating_high": rating.high,
            "met": len(scores),
            "won": sum(scores),
        }


def _unreadable_row(score: results.AnswerScore) -> JsonObject:
    outcome = score.outcome
    return {
        "item": outcome.item,
        "arm": outcome.arm,
        "seed": outcome.seed,
        "debate": outcome.debate,
        "texts": [text[:200] for text in outcome.texts[:5]],
    }


# Words


def _comparisons(rows: dict[str, JsonObject], base: str) -> dict[str, str]:
    """Return a sentence that compares each configuration with the baseline, keyed by name."""
    sentences = {}
    for name, row in rows.items():
        if not (difference := row["difference"]):
            continue
        points, is_shown = difference["points"], difference["shown"]
        bounds = f"95 % {_signed(difference['low'])} to {_signed(difference['high'])}"
        times = _times(row, rows[base])
        if points > 0:
            sentence = f"{name} beat {base} by {points:.1f} points ({bounds})"
            conclusion = f"shown to be more accurate{times}" if is_shown else "not shown to be worth it"
        elif points < 0:
            sentence = f"{name} was {-points:.1f} points below {base} ({bounds})"
            conclusion = "shown to be less accurate" if is_shown else "no difference is shown"
        else:
            sentence, conclusion = (
                f"{name} and {base} were equally accurate ({bounds})",
                "no difference is shown",
            )
        sentences[name] = f"{sentence}: {conclusion}{_contradiction(difference)}."
    return sentences


def _contradiction(difference: JsonObject) -> str:
    """Return a note if the significance test and the confidence interval disagree.

    Otherwise, return `""`.
    """
    is_suggested = (
        difference["low"] > 0 or difference["high"] < 0 or difference["p_value"] < 1 - statistics.LEVEL
    )
    if difference["shown"] or not is_suggested:
        return ""
    return f", because the test (p {p_text(difference['p_value'])}) and the interval disagree"


def p_text(p_value: float) -> str:
    """Return a p-value with three decimals, or `< 0.001`."""
    return "< 0.001" if p_value < 0.001 else f"{p_value:.3f}"


def _discussion_findings(scored: results.ScoredEvaluation, rows: dict[str, JsonObject]) -> list[str]:
    """Return sentences on how discussion changed the debaters' answers.

    There is one sentence per debate configuration.
    """
    sentences = []
    for arm in scored.evaluation.arms:
        row = rows[arm.name]
        if arm.kind != "debate" or "changes" not in row:
            continue
        losses = sum(each["right_to_wrong"] for each in row["changes"])
        gains = sum(each["wrong_to_right"] for each in row["changes"])
        changed_share = row["vote_changed"]
        vote = (
            ""
            if changed_share is None
            else f" It changed the vote in {100 * changed_share:.1f} % of {row['discussed']} debates."
        )
        sentences.append(
            f"The discussion in {arm.name} turned {count_noun(gains, 'wrong answer')} right and "
            f"{count_noun(losses, 'right answer')} wrong.{vote}"
        )
    return sentences


def _difficulty_findings(report: JsonObject, base: str) -> list[str]:
    """Return sentences that compare accuracy on easier and harder items.

    They compare a debate configuration with the baseline. There is one sentence for each level of agreement
    between the debaters' first answers.
    """
    if not (difficulty := report["difficulty"]):
        return []
    names = list(dict.fromkeys([difficulty["arm"], base]))
    states = {"all agree": "all agree", "majority": "have a majority", "no majority": "have no majority"}
    sentences = []
    for level in difficulty["levels"]:
        accuracies = [
            (name, level["accuracy"][name]) for name in names if level["accuracy"][name] is not None
        ]
        shares = " and ".join(f"{name} is right in {100 * share:.1f} %" for name, share in accuracies)
        answers = count_noun(level["answers"], "answer")
        condition = f"Where the first answers of {difficulty['arm']} {states[level['agreement']]}"
        sentences.append(f"{condition} ({answers}), {shares}.")
    return sentences


def _times(row: JsonObject, base: JsonObject) -> str:
    """Return how many times as many tokens a configuration uses as the baseline.

    Return `""` if either usage is unknown.
    """
    if not (row["tokens"] and base["tokens"] and row["answers"] and base["answers"]):
        return ""
    ratio = (row["tokens"] / row["answers"]) / (base["tokens"] / base["answers"])
    return f", with {ratio:.1f} times the tokens"


def _signed(points: float) -> str:
    return f"{points:.1f}".replace("-", "−")


def _preference_headlines(preferences: Sequence[JsonObject]) -> list[str]:
    sentences = []
    for row in preferences:
        first, second, share, low, high = (row[key] for key in ("first", "second", "share", "low", "high"))
        if share < 0.5:
            first, second, share, low, high = second, first, 1 - share, 1 - high, 1 - low
        conclusion = "shown to be preferred" if row["shown"] else "no preference is shown"
        bounds = f" (95 % {100 * low:.1f} to {100 * high:.1f})" if low < high else ""
        sentence = f"{first} was preferred to {second} in {100 * share:.1f} %"
        if share == 0.5:
            sentence = f"{first} and {second} were preferred equally often"
        sentences.append(f"{sentence}{bounds}: {conclusion}.")
    return sentences


def _notes(scored: results.ScoredEvaluation, report: JsonObject) -> list[str]:
    notes = []
    missing = {row["arm"]: row["missing"] for row in report["arms"] if row["missing"]}
    if missing and any(scored.scores.values()):
        missing_counts = ", ".join(f"{arm} {number}" for arm, number in missing.items())
        notes.append(f"Missing answers, which are not counted: {missing_counts}. Run the evaluation again.")
    outcomes = [each for arm_outcomes in scored.outcomes.values() for each in arm_outcomes]
    if any(each.placeholder for each in (*outcomes, *scored.meetings)):
        notes.append("The built-in offline model gave answers or verdicts: the figures mean nothing.")
    unreadable_count = len(scored.unreadable())
    if unreadable_count:
        notes.append(f"{count_noun(unreadable_count, 'answer')} could not be read and counted as wrong.")
    if read := sum(each.read_by_call for each in outcomes):
        notes.append(f"{count_noun(read, 'answer')} in no known form: read by a model call.")
    comparisons = sum(row["difference"] is not None for row in report["arms"]) + len(report["preferences"])
    if comparisons > 1:
        notes.append(
            f"There are {comparisons} comparisons. Each has its own 95 % level, so one of 20 may seem shown "
            "by chance."
        )
    if scored.evaluation.seeds > 1:
        notes.append("Answers of several seeds are averaged per item, so that items are what is resampled.")
    if any(
        isinstance(item, QuestionItem) and item.graded_by == "reference" for item in scored.items.values()
    ):
        notes.append("A model graded the answers by the reference: 1 correct, 0.5 partly, 0 incorrect.")
    return notes
