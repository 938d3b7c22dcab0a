"""Data of the evaluations that the live page shows: their list, reports and items."""

from __future__ import annotations

from starlette.requests import Request

from moot.evals.report import evaluation_report, item_rows
from moot.evals.report_text import chart, further_html
from moot.evals.store import Evaluations
from moot.state.entries import JsonObject
from moot.web.debate_host import DebateHost


def list_evaluations(request: Request, host: DebateHost) -> JsonObject:
    """Return one row for each evaluation in the database, newest first."""
    return {"evaluations": Evaluations(host.debates.records.sql).overview()[::-1]}


def show_evaluation(request: Request, host: DebateHost) -> JsonObject:
    """Return the report of an evaluation for the live page.

    Raises:
        DebateNotFound: There is no evaluation with this name.
        InputError: The baseline in the query is no arm.
    """
    store = Evaluations(host.debates.records.sql)
    evaluation = store.find(request.path_params["evaluation"])
    outcomes = store.outcomes(evaluation.name)
    report = evaluation_report(evaluation, outcomes, request.query_params.get("baseline", ""))
    return {
        "report": report,
        "chart": str(chart(report)),
        "tables": str(further_html(report)),
        "items": item_rows(evaluation, outcomes),
    }
