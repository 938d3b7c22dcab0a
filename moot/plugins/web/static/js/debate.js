// View of one debate: status, transcript, result and actions.
import { at, file, follow, get, post } from "./api.js";
import { go } from "./navigation.js";
import { Graph } from "./graph.js";
import { html, ServerHtml, useEffect, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { Ledger } from "./ledger.js";
import { PromptDialog, Prompts } from "./prompts.js";
import { Transcript } from "./transcript.js";
import { ago, announce, cost, facts, number, plural, tone } from "./words.js";

const PARTS = ["verdict", "positions", "board", "record"];
const NOBODY = { number: 0, speakers: [], since: 0 };
const STEPS = { judge: "judging", close: "closing", clarify: "asking you" };
const TABS = { transcript: "Transcript", verdict: "Verdict", positions: "Positions", ledger: "Claims", board: "Rounds", prompts: "Prompts", record: "Details" };

export function Debate({ id, setup }) {
  const [debate, setDebate] = useState(null);
  const [streams, setStreams] = useState({});
  const [doing, setDoing] = useState("");
  const [lost, setLost] = useState(false);
  const [problem, setProblem] = useState("");
  const [notice, setNotice] = useState("");
  const [tab, setTab] = useState(matchMedia("(max-width: 64rem)").matches ? "transcript" : "");
  const [thinking, setThinking] = useState(NOBODY);
  const [prompt, setPrompt] = useState(null);
  const line = useRef();

  useEffect(() => {
    let over = false;
    get(at(id)).then((found) => {
      if (over) return;
      show(found);
      line.current = follow(id, receive, (dead) => {
        setLost(dead);
        if (!dead) setStreams({}); // the new connection sends them from their start
      });
    }, (error) => setProblem(error.message));
    return () => {
      over = true;
      line.current?.hangUp();
    };
  }, [id]);

  const show = (found) => {
    setDebate((before) => {
      if (before && before.status !== found.status) announce(`The debate is ${found.status}.`);
      return found;
    });
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
      for (const [key, { speaker, text, replaces }] of Object.entries(message.tokens)) {
        after[key] = { speaker, text: (replaces ? "" : before[key]?.text ?? "") + text };
      }
      return after;
    });
  };

  // Performs an action on the debate and returns true if it succeeded.
  const act = async (action, body = {}) => {
    setProblem("");
    setNotice("");
    try {
      const done = await post(at(id, action), body);
      if (action !== "delete") line.current?.look();
      if (action === "fork") go(`/moot/d/${done.id}`);
      if (action === "judge" && done.failed) setProblem("The verdict failed. The debate is still paused.");
      if (action === "feedback") setNotice("Your feedback is saved.");
      if (action === "say") setNotice("Sent. The debate reads it at the start of its next step.");
      if (action === "pause") setNotice(done.running ? "The debate pauses at the end of this step." : "This debate is not running.");
      return true;
    } catch (error) {
      setProblem(error.message);
      return false;
    }
  };
  useEffect(() => {
    const over = notice && setTimeout(() => setNotice(""), 5000);
    return () => clearTimeout(over);
  }, [notice]);
  useKeys({ Escape: () => go("/moot") });
  useEffect(() => {
    const cited = () => location.hash && matchMedia("(max-width: 64rem)").matches && setTab("transcript");
    addEventListener("hashchange", cited);
    return () => removeEventListener("hashchange", cited);
  }, []);

  if (!debate || !setup) {
    return html`<header class="top"><a class="brand" href="/moot">Moot</a></header>
      <main id="main" class="list">${problem ? html`<p class="callout" role="alert">${problem}</p>` : html`<p class="muted">Opening the debate …</p>`}</main>`;
  }
  const chosen = tab || (debate.over ? "verdict" : "positions"); // positions move while the debate runs
  const panel = chosen === "transcript" ? (debate.over ? "verdict" : "positions") : chosen;
  return html`<div class="debate" data-tab=${chosen}>
    <header class="top">
      <a class="brand" href="/moot">Moot</a>
      <div class="about"><h1 dir="auto" title=${debate.topic}>${debate.question || debate.name}</h1>
        <p class="muted small"><span class=${tone(debate.status)}>${debate.status}</span> ${facts(
          debate.protocol, debate.model,
          debate.planned_turns ? `turn ${number(debate.turns)} of ${number(debate.planned_turns)}` : plural(debate.turns, "turn"),
          `${number(debate.tokens)} tokens`, cost(debate.cost_usd), doing && doing.replaceAll("_", " "))}
          ${debate.parent && html` · <a href=${`/moot/d/${debate.parent}`}>forked from ${debate.parent.slice(0, 8)}</a>`}</p></div>
      <${Controls} debate=${debate} setup=${setup} act=${act} />
    </header>
    <main id="main" tabindex="-1">
      <div class="told" role="status">
        ${lost && html`<p class="callout">The connection is lost. This page may be out of date.</p>`}
        ${(problem || debate.error) && html`<p class="callout error" role="alert" dir="auto">${problem || debate.error}</p>`}
        ${notice && html`<p class="callout">${notice}</p>`}
      </div>
      <nav class="tabs" role="tablist" aria-label="Parts of the debate">
        ${Object.entries(TABS).map(([key, title]) => html`<button type="button" role="tab" id=${`tab-${key}`} class=${key} aria-controls=${key === "transcript" ? "messages" : "panel"}
          aria-selected=${chosen === key} tabindex=${chosen === key ? 0 : -1} onClick=${() => setTab(key)} onKeyDown=${(event) => along(event, setTab)}>${title}</button>`)}
      </nav>
      <div class="left" id="messages">
        <${Transcript} key=${id} debate=${debate} streams=${streams} thinking=${thinking} act=${act} showPrompt=${setPrompt} />
        ${debate.questions.length > 0 ? html`<${Questions} debate=${debate} act=${act} />` : html`<${MessageForm} debate=${debate} act=${act} />`}
      </div>
      <div id="panel" role="tabpanel" aria-labelledby=${`tab-${panel}`} tabindex="0">
        ${panel === "ledger" && html`<${Ledger} debate=${debate} act=${act} />`}
        ${panel === "prompts" && html`<${Prompts} debate=${debate} setup=${setup} showPrompt=${setPrompt} />`}
        ${panel === "record" && html`<${Graph} setup=${setup} debate=${debate} />`}
        ${PARTS.includes(panel) && html`<${Part} key=${panel} debate=${debate} part=${panel} />`}
        ${panel === "verdict" && debate.can_rate && html`<${Feedback} debate=${debate} act=${act} />`}
      </div>
    </main>
    <${PromptDialog} debate=${debate} what=${prompt} close=${() => setPrompt(null)} />
  </div>`;
}

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

function Controls({ debate, setup, act }) {
  const [turns, setTurns] = useState(4);
  return html`<div class="controls" role="group" aria-label="Actions on the debate">
    ${debate.running && html`<button type="button" onClick=${() => act("pause")}>Pause</button>`}
    ${!debate.running && !debate.over && !debate.questions.length && html`<button type="button" class="main" onClick=${() => act("run")}>Continue</button>`}
    ${!debate.running && !debate.over && debate.turns > 0 && html`<button type="button" title="Ends the debate with a verdict on the messages so far" onClick=${() => act("judge")}>Answer now</button>`}
    ${!debate.running && debate.over && html`<button type="button" title="Adds a new verdict on the same messages" onClick=${() => act("judge")}>Judge again</button>`}
    <${Ask} debate=${debate} />
    ${!debate.running && debate.over && debate.can_continue && html`<form class="more" onSubmit=${(event) => { event.preventDefault(); act("run", { turns }); }}>
      <input type="number" min="1" max="1000" aria-label="Additional turns" value=${turns} onInput=${(event) => setTurns(Number(event.currentTarget.value))} />
      <button type="submit">more turns</button></form>`}
    <button type="button" onClick=${() => act("fork")}>Fork</button>
    ${debate.parent && html`<a class="button" href=${`/moot/compare?debate=${debate.parent}&debate=${debate.id}`}>Compare</a>`}
    <a class="button" download href=${file(debate.id, "html")} title="One HTML file that needs no network">Share</a>
    <details class="menu"><summary class="button">More</summary>
      <ul>${setup.files.map((form) => html`<li><a download href=${file(debate.id, form)}>Download ${form}</a></li>`)}
        <li><${Rename} debate=${debate} act=${act} /></li>
        <li><${Delete} act=${act} running=${debate.running} /></li></ul></details>
  </div>`;
}

// Dialog that asks the debate a question. The answer cites messages.
function Ask({ debate }) {
  const dialog = useRef();
  const [made, setMade] = useState("");
  const [state, setState] = useState("");
  const ask = async (event) => {
    event.preventDefault();
    setState("Looking for the answer …");
    setMade("");
    try {
      setMade((await post(at(debate.id, "ask"), { question: new FormData(event.currentTarget).get("question") })).html);
      setState("");
    } catch (error) {
      setState(error.message);
    }
  };
  return html`<button type="button" onClick=${() => dialog.current.showModal()}>Ask</button>
  <dialog ref=${dialog} class="ask" aria-labelledby="ask-title">
    <form method="dialog" class="closing"><button>Close</button></form>
    <h2 id="ask-title">Ask about this debate</h2>
    <form onSubmit=${ask}><label>Question<input name="question" required dir="auto" autocomplete="off" /></label>
      <p class="actions"><button type="submit" class="main">Ask</button><span class="muted small" role="status">${state}</span></p></form>
    ${made && html`<div onClick=${(event) => event.target.closest("a") && dialog.current.close()}><${ServerHtml} class="prose" html=${made} /></div>`}
  </dialog>`;
}

function Rename({ debate, act }) {
  const rename = (event) => {
    event.preventDefault();
    act("rename", { name: new FormData(event.currentTarget).get("name").trim() });
  };
  return html`<form class="rename" onSubmit=${rename}><input name="name" required maxlength="200" aria-label="Name of the debate" defaultValue=${debate.name} />
    <button type="submit">Rename</button></form>`;
}

const UNDO_S = 6;

// The debate is deleted after a few seconds, in which the user can undo it.
function Delete({ act, running }) {
  const [left, setLeft] = useState(0);
  useEffect(() => {
    if (!left) return;
    const next = setTimeout(async () => {
      if (left > 1) return setLeft(left - 1);
      setLeft(0);
      if (await act("delete")) go("/moot");
    }, 1000);
    return () => clearTimeout(next);
  }, [left]);
  return left ? html`<span role="status">Deleted in ${left} s</span> <button type="button" onClick=${() => setLeft(0)}>Undo</button>`
    : html`<button type="button" disabled=${running} onClick=${() => setLeft(UNDO_S)}>Delete</button>`;
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

function Questions({ debate, act }) {
  const answer = (event) => {
    event.preventDefault();
    act("run", { answers: Object.fromEntries(new FormData(event.currentTarget)) });
  };
  return html`<form class="questions" onSubmit=${answer} aria-label="Questions to you">
    ${debate.questions.map((each) => {
      const last = each.question.trimEnd().lastIndexOf("\n\n"); // the request itself; the text before it is context
      return html`<div key=${each.id}>
        ${last > 0 && html`<details><summary class="small">Context of ${each.name}</summary><p class="asked small" dir="auto">${each.question.slice(0, last)}</p></details>`}
        <label><b>${each.name}</b> <span class="asked" dir="auto">${each.question.slice(last < 0 ? 0 : last).trim()}</span><textarea name=${each.id} rows="3" dir="auto"></textarea></label>
      </div>`;
    })}
    <button type="submit" class="main">Answer</button>
  </form>`;
}
