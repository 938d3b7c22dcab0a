"""Blinding replaces names of debaters, and no ordinary word that is spelt like a name."""

from __future__ import annotations

import pytest

from moot.judging.blinding import make_blinding

PEOPLE = {
    "mara": "Mara Lind",
    "tomas": "Tomas Weil",
    "target": "Target",
    "will": "Will",
    "pick": "Pick",
    "performance": "Performance",
    "mark": "Mark Weber",
    "may": "May Chen",
    "ada": "Ada",
    "grace": "Grace Hopper",
    "elif": "Elif",
    "north": "North",
    "simplicity": "Simplicity",
    "finance-lead": "Finance Lead",
    "data-modeling": "Data Modeling",
    "hope": "Hope Summers",
    "paris": "Paris",
    "wolf": "Herr Wolf",
}
BACKGROUND = "Mara Lind runs the depot. The floor plan by Ada was fenced in spring."

ORDINARY = [
    "The Target is 90,000 requests a second.",
    "Target is 90,000 requests.",
    "Our Target for May stays.",
    "Target: 90,000 requests a minute.",
    "Targets and target dates differ.",
    "Will approval come in time?",
    "Will it hold? It will.",
    "Where there is a Will there is a way.",
    "Fence it off on 1 May.",
    "In May we decide.",
    "May I add a figure?",
    "By May 2027 the depot is full.",
    "Pick on 1 December, ship on 2 December.",
    "The Pick list is long.",
    "- Pick: two shifts",
    "Performance matters, and so does cost.",
    "Performance, cost and safety decide.",
    "Performance and cost are one question.",
    "performance target: 200 ms",
    "Mark the gate with paint.",
    "Mark prices down in spring.",
    "The Mark was worth a euro, roughly.",
    "Grace periods end in June.",
    "A Grace period of ten days is enough.",
    "By the grace of the landlord.",
    "ADA compliance costs money.",
    "Ada-compliant ramps are cheap.",
    "Ada Lovelace wrote the first program.",
    "Mail ada@example.org or read example.org/ada first.",
    "North of the river the ground is soft.",
    "The North gate is closed.",
    "Simplicity wins over speed.",
    "A finance lead has to sign.",
    "We need data modeling skills.",
    "Elif is no keyword of C.",
    "Mara County votes next year.",
    "Dennis Hopper rode a motorcycle.",
    "Tomasz and Marah are other people.",
    "elif is a keyword of Python.",
    "m000012 says so.",
    "Summers are dry here.",
    "In Paris fares are free for the young.",
    "Der Wolf ist zurück.",
    "Die Herde sieht den Wolf.",
    "“Mara Lind runs the depot.” That is what we were given.",
    "We read: “The floor plan by Ada was fenced in spring.”",
]

MENTIONS = [
    ("Mara Lind is right.", "{mara} is right."),
    ("I agree with Mara.", "I agree with {mara}."),
    ("MARA LIND is right.", "{mara} is right."),
    ("Lind counts twice.", "{mara} counts twice."),
    ("@mara, look again.", "@{mara}, look again."),
    ("Tomas Weil’s figure is old.", "{tomas}’s figure is old."),
    ("Weil concedes the point.", "{tomas} concedes the point."),
    ("Mr. Weil concedes the point.", "{tomas} concedes the point."),
    ("(Tomas, too)", "({tomas}, too)"),
    ("Tomas and Mara differ.", "{tomas} and {mara} differ."),
    ("Target [m000004] counts lorries.", "{target} [m000004] counts lorries."),
    ("**Target** [m000004]: two lorries.", "**{target}** [m000004]: two lorries."),
    ("@Target counts lorries.", "@{target} counts lorries."),
    ("Mara and Target agree.", "{mara} and {target} agree."),
    ("Target, Mara and Tomas agree.", "{target}, {mara} and {tomas} agree."),
    ("Target, you count lorries twice.", "{target}, you count lorries twice."),
    ("As you said, Target.", "As you said, {target}."),
    ("Will, how do you know?", "{will}, how do you know?"),
    ("Tomas, Will and Mara agree.", "{tomas}, {will} and {mara} agree."),
    ("Performance [m000009] gives no source.", "{performance} [m000009] gives no source."),
    ("Mara and Performance gave way.", "{mara} and {performance} gave way."),
    ("Pick, your list is long.", "{pick}, your list is long."),
    ("Mark Weber paints the gate.", "{mark} paints the gate."),
    ("I ask Mark for a source.", "I ask {mark} for a source."),
    ("Mark says it is paint.", "{mark} says it is paint."),
    ("May Chen counts days.", "{may} counts days."),
    ("Chen counts days.", "{may} counts days."),
    ("Ada shows no figures.", "{ada} shows no figures."),
    ("What Ada calls cheap is not.", "What {ada} calls cheap is not."),
    ("Grace Hopper and Elif agree.", "{grace} and {elif} agree."),
    ("I doubt what Grace counts.", "I doubt what {grace} counts."),
    ("The Finance Lead signs.", "{finance} signs."),
    ("Hopper has a point.", "{grace} has a point."),
    ("“The pump is old”, says Mara.", "“The pump is old”, says {mara}."),
    ("I doubt what Summers counts.", "I doubt what {hope} counts."),
    ("Paris [m000004] shows no figures.", "{paris} [m000004] shows no figures."),
    ("I ask Paris for a source.", "I ask {paris} for a source."),
    ("Ich frage Wolf nach der Quelle.", "Ich frage {wolf} nach der Quelle."),
]


@pytest.mark.parametrize("text", ORDINARY)
def test_an_ordinary_word_is_no_debater(text: str) -> None:
    assert make_blinding(PEOPLE, [text], [BACKGROUND]).blind_text(text) == text


@pytest.mark.parametrize(("text", "blinded"), MENTIONS)
def test_a_name_that_means_a_debater_is_replaced(text: str, blinded: str) -> None:
    blinding = make_blinding(PEOPLE, [text], [BACKGROUND])
    assert blinding.blind_text(text) == blinded.format(
        finance=blinding.labels["finance-lead"], **blinding.labels
    )
