// View of one debate: status, transcript, result and actions.
import { Controls, ForkDialog, JudgeDialog } from "./actions.js";
import { at, follow, get, post } from "./api.js";
import { go } from "./navigation.js";
import { Graph } from "./graph.js";
import { grown, html, marked, ServerHtml, useEffect, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { Ledger } from "./ledger.js";
import { PromptDialog, Prompts } from "./prompts.js";
import { Transcript } from "./transcript.js";
import { ago, announce, cost, facts, NARROW, number, plural, tone } from "./words.js";

const PARTS = { verdict: "verdict", positions: "positions", ledger: "board", record: "record" }; // part of the report in each tab
const NOBODY = { number: 0, speakers: [], since: 0 };
const STEPS = { judge: "judging", close: "closing", clarify: "asking you" };
const TABS = { verdict: "Verdict", positions: "Positions", ledger: "Claims", transcript: "Transcript", prompts: "Prompts", record: "Details" };
const SHOW_ENDED_MS = 15000;

export function Debate({ id, setup }) {
  const [debate, setDebate] = useState(null);
  const [streams, setStreams] = useState({});
  const [doing, setDoing] = useState("");
  const [lost, setLost] = useState(false);
  const [problem, setProblem] = useState("");
  const [notice, setNotice] = useState(null);
  const [tab, setTab] = useState(location.hash && NARROW.matches ? "transcript" : "");
  const [thinking, setThinking] = useState(NOBODY);
  const [prompt, setPrompt] = useState(null);
  const [dialog, setDialog] = useState(null);
  const line = useRef();
  const latest = useRef(null);

  useEffect(() => {
    let over = false;
    get(at(id)).then((found) => {
      if (over) return;
      show(found);
      line.current = follow(id, receive, (dead) => {
        setLost(dead);
        if (!dead) setStreams({}); // the new connection sends them from their start
      });
    }, (error) => setProblem(error.status === 404 ? "No debate has this address. Perhaps it was deleted." : error.message));
    return () => {
      over = true;
      line.current?.hangUp();
    };
  }, [id]);

  const show = (found) => {
    const before = latest.current;
    latest.current = found;
    setDebate(found);
    if (before && !before.over && found.over) {
      setTab("verdict");
      setNotice({ text: found.status === "done" ? "The debate has ended. This is its result." : `The debate has ended: ${found.ended_because || found.status}.`, ms: SHOW_ENDED_MS });
    } else if (before && before.status !== found.status) announce(`The debate is ${found.status}.`);
    document.title = `${found.question.slice(0, 80)} – Moot`;
    if (!found.running) { setStreams({}); setDoing(""); }
    // The events of a run in another process are not heard here, so the stored step says who speaks.
    const speaks = found.running && found.nodes.includes("turn");
    const { number = 0, turns = [] } = found.step;
    setThinking((before) => {
      if (found.running && number < before.number) return before;
      if (!speaks) return { ...NOBODY, number: found.running ? number : 0 };
      return number === before.number && before.speakers.length ? before
        : { number, speakers: turns.map((turn) => turn.speaker), since: Date.now() - 1000 * found.step_age_s };
    });
  };
  const receive = (message) => {
    if (message.debate) return show(message.debate);
    for (const event of message.events) {
      if (event.event === "step") {
        setStreams({});
        setDoing(event.kind === "turn" ? event.phase : STEPS[event.kind] ?? event.kind);
        setThinking({ number: event.number, speakers: event.kind === "turn" ? event.speakers : [], since: Date.now() });
      }
      if (event.event === "retry") setDoing(`${event.model}: ${event.words}`);
    }
    setStreams((before) => {
      const after = { ...before };
      for (const [key, { speaker, text, replaces, ...made }] of Object.entries(message.tokens)) {
        const earlier = replaces ? undefined : before[key];
        after[key] = { speaker, text: (earlier?.text ?? "") + text, made: grown(earlier?.made, made) };
      }
      return after;
    });
  };

  // Performs an action on the debate and returns true if it succeeded.
  const act = async (action, body = {}) => {
    setProblem("");
    setNotice(null);
    try {
      const done = await post(at(id, action), body);
      if (action !== "delete") line.current?.look();
      if (action === "fork") go(`/moot/d/${done.id}`);
      if (action === "judge" && done.failed) setProblem("The verdict failed. The debate is still paused.");
      if (action === "feedback") setNotice({ text: "Your feedback is saved." });
      if (action === "say") setNotice({ text: "Sent. The debate reads it at the start of its next step." });
      if (action === "pause") setNotice({ text: done.running ? "The debate pauses at the end of this step." : "This debate is not running." });
      return true;
    } catch (error) {
      setProblem(error.message);
      return false;
    }
  };
  const ask = { fork: (after = "") => setDialog({ kind: "fork", after }), judge: () => setDialog({ kind: "judge" }) };
  useEffect(() => {
    const over = notice && setTimeout(() => setNotice(null), notice.ms ?? 5000);
    return () => clearTimeout(over);
  }, [notice]);
  useKeys({ Escape: () => go("/moot") });
  useEffect(() => {
    const cited = () => location.hash && NARROW.matches && setTab("transcript");
    addEventListener("hashchange", cited);
    return () => removeEventListener("hashchange", cited);
  }, []);

  if (!debate || !setup) {
    return html`<header class="top"><a class="brand" href="/moot">Moot</a></header>
      <main id="main" class="list">${problem ? html`<h1>This debate cannot be shown</h1><p class="callout" role="alert">${marked(problem)}</p>
        <p><a class="button" href="/moot">All debates</a></p>` : html`<p class="muted">Opening the debate …</p>`}</main>`;
  }
  const shown = Object.entries(TABS).filter(([key]) => debate.shown[key] !== false);
  const before = !debate.over && NARROW.matches ? "transcript" : debate.shown.positions ? "positions" : "verdict"; // positions move while the debate runs
  const chosen = shown.some(([key]) => key === tab) ? tab : debate.over ? "verdict" : before;
  const panel = chosen === "transcript" ? (debate.over ? "verdict" : "positions") : chosen;
  return html`<div class="debate" data-tab=${chosen}>
    <header class="top">
      <a class="brand" href="/moot" title="All debates">Moot</a>
      <div class="about"><h1 dir="auto" title=${debate.topic}>${marked(debate.question || debate.name)}</h1>
        <p class="muted small"><span class=${tone(debate.status)}>${debate.status}</span>
          ${" "}<button type="button" class="quiet progress" onClick=${() => setTab("verdict")}>${progress(debate, doing)}</button>
          ${debate.parent && html` · <a href=${`/moot/d/${debate.parent}`}>forked from ${debate.parent.slice(0, 8)}</a>`}</p></div>
      <${Controls} debate=${debate} setup=${setup} act=${act} ask=${ask} />
    </header>
    <main id="main" tabindex="-1">
      <div class="told" role="status">
        ${lost && html`<p class="callout">The connection is lost. This page may be out of date.</p>`}
        ${(problem || debate.error) && html`<p class="callout error" role="alert" dir="auto">${marked(problem || debate.error)}</p>`}
        ${notice && html`<p class="callout">${notice.text}</p>`}
      </div>
      <nav class="tabs" role="tablist" aria-label="Parts of the debate">
        ${shown.map(([key, title]) => html`<button type="button" role="tab" id=${`tab-${key}`} class=${key} aria-controls=${key === "transcript" ? "messages" : "panel"}
          aria-selected=${chosen === key} tabindex=${chosen === key ? 0 : -1} onClick=${() => setTab(key)} onKeyDown=${(event) => along(event, setTab)}>${title}</button>`)}
      </nav>
      <div id="panel" role="tabpanel" aria-labelledby=${`tab-${panel}`} tabindex="0">
        ${panel === "prompts" && html`<${Prompts} debate=${debate} setup=${setup} showPrompt=${setPrompt} />`}
        ${panel === "record" && html`<${Facts} debate=${debate} /><${Graph} setup=${setup} debate=${debate} />`}
        ${PARTS[panel] && html`<${Part} key=${panel} debate=${debate} part=${PARTS[panel]} />`}
        ${panel === "ledger" && html`<${Ledger} debate=${debate} act=${act} />`}
        ${panel === "verdict" && debate.can_rate && html`<${Feedback} debate=${debate} act=${act} />`}
      </div>
      <div class="messages" id="messages">
        <${Transcript} key=${id} debate=${debate} streams=${streams} thinking=${thinking} act=${act} fork=${ask.fork} showPrompt=${setPrompt} />
        ${debate.questions.length > 0 ? html`<${Questions} debate=${debate} act=${act} />` : html`<${MessageForm} debate=${debate} act=${act} />`}
      </div>
    </main>
    <${PromptDialog} debate=${debate} what=${prompt} close=${() => setPrompt(null)} />
    ${dialog?.kind === "fork" && html`<${ForkDialog} debate=${debate} after=${dialog.after} close=${() => setDialog(null)} />`}
    ${dialog?.kind === "judge" && html`<${JudgeDialog} debate=${debate} act=${act} close=${() => setDialog(null)} />`}
  </div>`;
}

// Where the debate stands and what comes next, such as "round 2 of 3 · judge next".
function progress(debate, doing) {
  if (debate.over) return "Show the result";
  const { round = 0, kind, turns = [] } = debate.step;
  const speaking = debate.nodes.includes("turn");
  const left = debate.planned_turns && debate.planned_turns - debate.turns - (speaking ? turns.length : 0);
  const next = !debate.planned_turns ? "" : left > 0 ? `${plural(left, "more turn")}, then ${debate.has_judge ? "the judge" : "the end"}`
    : `${debate.has_judge ? "judge" : "end"} next`;
  const waits = debate.questions.length > 0 && `waiting for ${[...new Set(debate.questions.map((each) => each.name))].join(", ")}`;
  const now = waits || (debate.running && ((doing && doing.replaceAll("_", " ")) || STEPS[debate.nodes[0]]));
  return facts(round > 0 && `round ${number(round)}${debate.planned_rounds >= round ? ` of ${number(debate.planned_rounds)}` : ""}`, now, kind === "judge" || now === STEPS.judge ? "" : next)
    || "Not started";
}

// Facts about the run that nobody needs for the decision: ids, tokens and times.
function Facts({ debate }) {
  const rows = { Protocol: debate.protocol, Model: debate.model, Turns: facts(number(debate.turns), debate.planned_turns && `${number(debate.planned_turns)} planned`),
    Tokens: number(debate.tokens), Cost: cost(debate.cost_usd) || "–", Began: when(debate.created_at), "Last change": when(debate.updated_at), Name: debate.name, Id: debate.id };
  return html`<dl class="facts">${Object.entries(rows).map(([name, value]) => value && html`<div><dt>${name}</dt><dd><bdi>${value}</bdi></dd></div>`)}</dl>`;
}

const when = (at) => at && `${at.slice(0, 16).replace("T", " ")} UTC`;

// Arrow keys move between the tabs.
function along(event, setTab) {
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  const tabs = [...event.currentTarget.parentElement.children].filter((each) => each.offsetParent);
  const next = tabs[(tabs.indexOf(event.currentTarget) + by + tabs.length) % tabs.length];
  event.preventDefault();
  setTab(next.id.slice(4));
  next.focus();
}

// A part of the debate's report. It is loaded again when the debate changes.
function Part({ debate, part }) {
  const [made, setMade] = useState(null);
  useEffect(() => {
    let over = false;
    get(at(debate.id, `parts/${part}`)).then((answer) => over || setMade(answer.html), () => {});
    return () => { over = true; };
  }, [debate.checkpoint, debate.status]);
  if (made === null) return html`<p class="muted">Loading …</p>`;
  return made.trim() ? html`<${ServerHtml} class="part" html=${made} />` : html`<p class="muted">Nothing yet.</p>`;
}

const RATINGS = { right: "It was right", mixed: "Partly", wrong: "It was wrong" };

// Form in which a person records how the decision turned out.
function Feedback({ debate, act }) {
  const [given] = debate.feedback;
  const send = (event) => {
    event.preventDefault();
    act("feedback", Object.fromEntries(new FormData(event.currentTarget)));
  };
  return html`<section aria-labelledby="h-feedback"><h2 id="h-feedback">How did the decision turn out?</h2>
    <form class="feedback" key=${given?.at} onSubmit=${send}>
      <p class="choices">${Object.entries(RATINGS).map(([rating, label]) => html`<label><input type="radio" name="rating" value=${rating} required defaultChecked=${given?.rating === rating} /> ${label}</label>`)}</p>
      <label>What happened<textarea name="note" rows="2" dir="auto" defaultValue=${given?.note ?? ""}></textarea></label>
      <p class="actions"><button type="submit">${given ? "Change feedback" : "Save feedback"}</button>
        ${given && html`<span class="muted small">Saved ${ago(given.at)}</span>`}</p>
    </form></section>`;
}

function MessageForm({ debate, act }) {
  const field = useRef();
  const send = async (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    if (await act("say", { text: form.get("text"), speaker: form.get("speaker") })) field.current.value = "";
  };
  if (debate.over && !debate.can_continue) return null;
  return html`<form class="message-form" onSubmit=${send}>
    <select name="speaker" aria-label="Speaker"><option value="moderator">Moderator</option>
      ${debate.people.map((person) => html`<option value=${person.id}>as ${person.name}</option>`)}</select>
    <input ref=${field} name="text" required aria-label="Message to the debate" placeholder=${debate.over ? "Message, read when the debate continues" : "Message to the debate"} dir="auto" autocomplete="off" />
    <button type="submit">Send</button>
  </form>`;
}

// Form for a person's turn, or for replies to debaters' questions. The instruction is at the end of a question.
function Questions({ debate, act }) {
  const answer = (event) => {
    event.preventDefault();
    act("run", { answers: Object.fromEntries(new FormData(event.currentTarget)) });
  };
  const own = debate.nodes.includes("turn");
  return html`<form class="questions" onSubmit=${answer} aria-label=${own ? "Your turn" : "Questions to you"}>
    ${debate.questions.map((each) => html`<div key=${each.id}>
      <p class="turn"><b>${own ? html`Your turn: you speak as <bdi>${each.name}</bdi>` : html`<bdi>${each.name}</bdi> asks you`}</b></p>
      <div class="asked" dir="auto" id=${`asked-${each.id}`} tabindex="0" role="region" aria-label=${own ? `Instruction for ${each.name}` : `Question of ${each.name}`}
        ref=${(node) => { if (node) node.scrollTop = node.scrollHeight; }}>${marked(each.question)}</div>
      <textarea name=${each.id} rows="3" dir="auto" aria-label=${own ? `Message of ${each.name}` : `Reply to ${each.name}`} aria-describedby=${`asked-${each.id}`}></textarea>
    </div>`)}
    <button type="submit" class="main">${own ? "Send" : "Answer"}</button>
  </form>`;
}
