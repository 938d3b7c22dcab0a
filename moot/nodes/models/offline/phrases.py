"""The offline model's stock of phrases, by what they do in a speech.

Slots: `{a}`, `{b}` words of the topic; `{topic}` the topic in short; `{who}` whom it answers; `{quote}` a few
of their words; `{x}` one of their words; `{n}`, `{m}` small numbers; `{p}` a percentage; `{goal}` what the
speaker's side wants; `{risk}` what it fears. Numbers are put as suppositions: the model knows no facts.
"""

from __future__ import annotations

GOALS = {
    1: ("a clear commitment", "early action", "an open yes", "a full start", "the bolder course"),
    -1: ("restraint", "the slower course", "a plain no", "the proven arrangement", "a halt for now"),
    0: (
        "a staged trial",
        "a reversible first step",
        "a conditional yes",
        "a decision by criteria",
        "a pilot",
    ),
}

RISKS = {
    1: ("drift", "paying for delay", "a decision made by default", "losing the early movers"),
    -1: (
        "a promise nobody can keep",
        "costs that arrive late",
        "harm that cannot be undone",
        "a rushed start",
    ),
    0: (
        "arguing past each other",
        "a choice without a measure",
        "treating unlike cases alike",
        "false certainty",
    ),
}

REBUT = (
    "{who} says “{quote}”; I disagree, because that holds only while {a} stays as it is today.",
    "I doubt what {who} makes of “{quote}”: it treats {a} as settled when that is the very question.",
    "“{quote}”, {who} tells us. That overlooks who pays when {a} goes wrong.",
    "The problem with “{quote}” is that {who} argues from the average, and {a} is decided at the edges.",
    "{who}'s line, “{quote}”, rests on {x} behaving as planned; I see no reason to count on it.",
    "I am not convinced by {who}: “{quote}” is true of {b}, but it does not follow for {a}.",
    "When {who} says “{quote}”, a step is missing between the premise and {a}.",
    "{who} underestimates {b}. “{quote}” would be right if there were only one kind of case.",
    "Take “{quote}” at its word, {who}: the same reasoning would rule out every change to {a}.",
    "I dispute the weight {who} gives to {x}; “{quote}” names a cost and never compares it.",
    "{who} answers a question nobody put. “{quote}” is about intentions, and I asked about {a}.",
    "Contrary to {who}, “{quote}” cuts the other way once {b} is counted.",
)

BUILD = (
    "I agree with {who} that “{quote}”, and it carries further than {who} takes it.",
    "{who} rightly says “{quote}”; let me build on that with a case about {a}.",
    "“{quote}”: on this {who} and I share a premise, so the dispute is narrower than it looked.",
    "Building on {who}'s “{quote}”, the missing piece is how {a} and {b} are tied together.",
    "{who}'s remark, “{quote}”, is common ground; what divides us is the order of the steps.",
    "We agree on “{quote}”. The open part, {who}, is what it obliges us to do about {b}.",
)

CONCEDE = (
    "I concede one thing to {who}: “{quote}” is right where {a} is small and local.",
    "Fair point, {who}: “{quote}”. I had not given {x} the weight that it deserves.",
    "I grant {who} that “{quote}”; it limits my claim, though it does not overturn it.",
    "{who} has a point with “{quote}”, and I admit that my earlier wording was too broad.",
    "I must concede that “{quote}” answers part of my worry about {b}.",
)

QUESTION = (
    "So I ask {who}: what would you have to see before you gave up “{quote}”?",
    "{who}, if “{quote}” holds, why has {a} not changed already?",
    "One question to {who}: who decides when {x} has failed, and by which date?",
    "Would {who} still say “{quote}” if {p} per cent of those affected objected?",
    "Which is it, {who}: is {a} the aim, or only the means to {b}?",
    "How does {who} tell a slow success in {a} from a quiet failure?",
)

OPEN = (
    "My position on “{topic}” is {goal}, and {a} is where the case is decided.",
    "I argue for {goal}. The topic, “{topic}”, sounds like taste; {a} makes it one of consequences.",
    "Let me say where I stand on “{topic}”: {goal}, for reasons that begin with {a}.",
    "I hold that {goal} is the sound answer to “{topic}”, and I will be concrete about {a} and {b}.",
    "In my view “{topic}” turns on {a}, and that speaks for {goal}.",
    "Three words of the topic matter most to me, {a} above all; hence {goal}.",
)

ARGUE: dict[str, tuple[str, ...]] = {
    "cost": (
        "Count the cost first. Suppose {a} takes {n} years and a budget {m} times the first estimate: the "
        "money must come out of {b}, and nobody has said which part of it.",
        "The price is not the invoice but what {b} forgoes. Even a tenth of that, spent on {a}, has to be "
        "justified against the next best use.",
        "Running costs decide this, not the launch. If {a} needs {n} people to keep it alive, the case must "
        "still hold in the dull years.",
    ),
    "risk": (
        "Look at the tail, not the middle. If one attempt in {n} fails badly, {a} needs a way to fail small "
        "before it may fail large.",
        "The risk is uneven: those who choose {a} are seldom those who carry the loss, and {b} gets no vote.",
        "Two risks compete here, doing too much about {a} and doing too little about {b}; only one of them "
        "gives a warning.",
    ),
    "precedent": (
        "There is precedent for this pattern: reforms of this kind win support while they are small, and are "
        "judged when {a} meets {b} at scale.",
        "Whatever is decided on {a} will be quoted in the next case. I would accept that precedent only if "
        "it also held for {b}.",
        "History should make us modest: plans for things like {a} tend to be late by {n} years, and they are "
        "kept for their side effects.",
    ),
    "second-order": (
        "Follow the second step. Once {a} changes, people adapt around it, and after {n} rounds of that "
        "{b} no longer looks as it does in the plan.",
        "The first effect of {a} is visible and the second is large: behaviour shifts towards whatever the "
        "rule forgot, and here it forgot {b}.",
        "What happens after it works? If {a} succeeds, demand moves to {b}, and there the strain appears.",
    ),
    "incentives": (
        "Ask who gains by doing nothing. As long as {b} is rewarded by volume, {a} stays a slogan; change "
        "the reward and the rest follows.",
        "Incentives beat intentions. Those who run {a} are measured on what is easy to count, so {b} is what "
        "they will neglect.",
        "Put yourself in the place of the person who must carry out {a} on a Monday morning: which of the "
        "rules would you bend first?",
    ),
    "reversibility": (
        "What matters is whether we can turn back. A step on {a} that can be undone within {n} months "
        "deserves a trial; one that binds {b} for a decade does not.",
        "Reversible choices should be made fast and the others slowly. {a} is being discussed as if both "
        "were one kind.",
        "Write the exit down first: at which figure would we stop {a}, and who is allowed to say so?",
    ),
    "evidence": (
        "I ask for evidence. A fair test would compare {m} places with {a} and {m} without, and name in "
        "advance what counts as failure.",
        "The evidence offered on {a} is about volume, not about outcomes. Show a change in {b}, and I move.",
        "Nobody here has given a baseline. Without one, a rise of {p} per cent in {a} proves nothing.",
    ),
    "example": (
        "For example, picture a town of {n}0,000 that tries {a} for a year: the first complaint will not be "
        "about the idea but about {b}.",
        "Consider one concrete case. A family that depends on {b} meets {a} on an ordinary Tuesday; what "
        "changes for them before noon?",
        "Take the smallest instance: {n} people, one rule about {a}, no budget. If it does not work there, "
        "size will not rescue it.",
    ),
    "fairness": (
        "Fairness is the test I care about. If the benefits of {a} reach {p} per cent and the burdens fall "
        "on the rest, calling it progress is premature.",
        "The people nearest to {b} are absent from this table. A rule on {a} that they would refuse needs a "
        "better reason than convenience.",
    ),
    "feasibility": (
        "It has to be feasible with the people we have. {a} asks for skills that take {n} years to build, so "
        "the order of the steps matters more than the aim.",
        "Who does what on the first day? Until somebody owns {a} by name, {b} will absorb the effort.",
    ),
    "trade-off": (
        "Every version of this gives something up. More {a} means less attention for {b}; I would rather "
        "choose that openly than discover it.",
        "The honest question is one of exchange: how much {b} would you give for a tenth more {a}?",
    ),
    "definition": (
        "We use one word for two things. {a} as a goal and {a} as a rule have different costs, and {b} is "
        "touched only by the second.",
        "Say what would count. Unless {a} is defined so that it can fail, every result is a success.",
    ),
    "measure": (
        "Let us fix a measure: {m} indicators for {a}, read every {n} months, with {b} as the one that may "
        "not get worse.",
        "What gets measured here is effort. Measure whether {b} still works {n} months after {a} begins.",
    ),
    "time": (
        "Time changes the sums. Over one year {a} looks dear and over {n} it looks cheap, so we must say "
        "which horizon we are deciding for.",
        "Waiting is a decision too. Each year without an answer on {a} makes {b} harder to move.",
    ),
}

SUPPORT = (
    "That is why {goal} deserves the benefit of the doubt.",
    "It follows that the burden of proof lies with whoever accepts {risk}.",
    "Because {b} cannot be bought back later, I put it before speed.",
    "Hence my emphasis on {b}: it is where the argument can be checked.",
    "This is not about preferring {a}; it is about {risk}, which nobody has priced.",
    "Those who doubt it should name the {n} conditions under which they would change course.",
    "A rule of thumb follows: no step on {a} without a date on which {b} is looked at again.",
    "The alternative is {risk}, and that too has to be defended.",
    "None of this needs new theory, only the will to look at {b} before and after.",
    "If that sounds cautious, compare it with {risk}.",
    "The same holds, with other numbers, for {b}.",
    "I would rather be roughly right about {b} than precisely wrong about {a}.",
    "Seen this way, {a} and {b} are one question asked at two moments.",
    "That leaves {risk} as the objection which I take most seriously.",
)

CLOSE = (
    "My position stays {goal}, with {b} as the test.",
    "So I hold to {goal}, and I have said what would change my mind.",
    "I therefore support {goal}, provided that {b} is reviewed after {n} months.",
    "On balance I remain for {goal}.",
    "What would move me is one case in which {a} worked and {b} did not suffer.",
    "I maintain that {goal} is the better bet, and I invite a counterexample.",
    "Until {b} is answered, I stand by {goal}.",
    "Show me {a} without {risk}, and we agree.",
    "That is a reason for {goal}; it is not yet a proof.",
    "Let the next speaker start from {b}, since everything else hangs on it.",
    "If we settle only one thing today, let it be how {b} is measured.",
    "I would sign {goal} tomorrow, and I would put {risk} into the minutes.",
)

SHIFT = (
    "I have changed my mind: after what {who} said about {x}, I no longer think that {a} can wait.",
    "My view has moved: {who}'s “{quote}” makes me accept limits on {a} that I refused before.",
    "I now think that {who} is closer to the truth on {b}, and I revise my position to that extent.",
)

STAND = (
    "My stance, “{stance}”, leads me to the same place.",
    "With “{stance}” as my stance, {b} weighs more with me than {a}.",
    "Given where I start, “{stance}”, that is no detail.",
)

CRUX = (
    "On the claim itself I answer {answer}: {a} is possible, but not at the expense of {b}.",
    "My answer to the crux is {answer}, since everything depends on whether {b} moves when {a} does.",
    "I say {answer}. The falsifier is plain: {m} cases in which {a} improved while {b} held steady.",
)

STEELMAN = (
    "The strongest form of {who}'s case is this: “{quote}”, and whoever denies it must explain {b}.",
    "At its best {who}'s argument says that {a} protects the very thing I care about, because “{quote}”.",
    "Put as well as I can, {who} holds that “{quote}”, and that waiting costs more than erring on {a}.",
)

WEAKNESS = (
    "“{quote}” is asserted, and nothing shows it. Which observation about {a} would refute it?",
    "The plan has no owner for {b}; it fails to say who acts when {a} stalls.",
    "“{quote}” rests on everyone cooperating. One party that gains from {b} can undo it.",
    "There is no stopping rule. If {a} slips by {n} months, the proposal simply continues.",
    "The costs are named once and never compared with leaving {b} as it is.",
    "It treats {a} and {b} as independent, and they draw on the same people.",
)

MERIT = (
    "“{quote}” is clear and can be tested.",
    "It starts small, which makes {a} reversible.",
    "It names {b} as a limit, and few proposals do.",
    "It says in which order the steps come.",
)

ADVICE = (
    "Add a review after {n} months, with {b} as the measure that may not get worse.",
    "Name one person who answers for {a}, and one who may stop it.",
    "Start with {m} sites, and publish the baseline first.",
    "Split {a} into a part that can be undone and a part that cannot, and decide only the first.",
    "Set aside {p} per cent of the budget for those who lose by {b}.",
)

STEPS = (
    "Fix the baseline for {b} before anything is announced.",
    "Run {a} in {m} places that differ in size, for {n} months.",
    "Give one person the right to stop it, with the figure written down at which it stops.",
    "Publish what {b} looked like before and after, including the failures.",
    "Pay those who lose by {a} from a fund of {p} per cent of the budget.",
    "Decide on the wider roll-out by a rule that was set beforehand, not by mood.",
    "Ask the people nearest to {b} twice: at the start, and after {n} months.",
)

CLARIFY = (
    "Over which period should {a} be judged: months, or {n} years?",
    "Who carries the cost of {a}, and is there a ceiling?",
    "Is {b} a hard limit, or something that may be traded?",
    "What has been tried about {a} already, and why did it stop?",
    "Which result would make you call this a failure?",
    "Whose consent is needed before {a} begins?",
)
