// One debate: how it stands, what is said, what came of it, and what can be done.
import { at, file, follow, get, post } from "./api.js";
import { go } from "./going.js";
import { Graph } from "./graph.js";
import { html, Made, useEffect, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { Ledger } from "./ledger.js";
import { PromptDialog, Prompts } from "./prompts.js";
import { Transcript } from "./transcript.js";
import { announce, cost, facts, number, plural, tone } from "./words.js";

const PARTS = { verdict: "Verdict", positions: "Positions", board: "Rounds and cruxes", record: "Record" };
const TABS = { transcript: "Transcript", verdict: "Verdict", ledger: "Ledger", prompts: "Prompts", positions: "Positions", board: "Rounds", record: "Record" };

export function Debate({ id, setup }) {
  const [debate, setDebate] = useState(null);
  const [speeches, setSpeeches] = useState({});
  const [doing, setDoing] = useState("");
  const [lost, setLost] = useState(false);
  const [problem, setProblem] = useState("");
  const [said, setSaid] = useState("");
  const [tab, setTab] = useState(matchMedia("(max-width: 64rem)").matches ? "transcript" : "verdict");
  const [prompt, setPrompt] = useState(null);
  const line = useRef();

  useEffect(() => {
    let over = false;
    get(at(id)).then((found) => {
      if (over) return;
      show(found);
      line.current = follow(id, heard, (dead) => {
        setLost(dead);
        if (!dead) setSpeeches({}); // told anew from their beginnings
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
    document.title = `${found.topic.slice(0, 80)} – Moot`;
    if (!found.running) { setSpeeches({}); setDoing(""); }
  };
  const heard = (told) => {
    if (told.debate) return show(told.debate);
    for (const event of told.events) {
      if (event.event === "step") { setSpeeches({}); setDoing(event.kind === "turn" ? event.phase : event.kind); }
      if (event.event === "retry") setDoing(`${event.model}: ${event.words}`);
    }
    setSpeeches((before) => {
      const after = { ...before };
      for (const [key, { speaker, text }] of Object.entries(told.said)) {
        after[key] = { speaker, text: (before[key]?.text ?? "") + text };
      }
      return after;
    });
  };

  // Does something to the debate and says whether it could be done.
  const act = async (action, body = {}) => {
    setProblem("");
    setSaid("");
    try {
      const done = await post(at(id, action), body);
      line.current?.look();
      if (action === "fork") go(`/moot/d/${done.id}`);
      if (action === "say") setSaid("It is heard at the next step.");
      if (action === "pause") setSaid(done.running ? "It stops at the next step." : "Nobody runs this debate now.");
      return true;
    } catch (error) {
      setProblem(error.message);
      return false;
    }
  };
  useEffect(() => {
    const over = said && setTimeout(() => setSaid(""), 5000);
    return () => clearTimeout(over);
  }, [said]);
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
  const panel = tab === "transcript" ? "verdict" : tab;
  return html`<div class="debate" data-tab=${tab}>
    <header class="top">
      <a class="brand" href="/moot">Moot</a>
      <div class="about"><h1 dir="auto" title=${debate.topic}>${debate.topic}</h1>
        <p class="muted small"><span class=${tone(debate.status)}>${debate.status}</span> ${facts(
          debate.protocol, debate.model,
          debate.planned_turns ? `turn ${number(debate.turns)} of ${number(debate.planned_turns)}` : plural(debate.turns, "turn"),
          `${number(debate.tokens)} tokens`, cost(debate.cost_usd), doing && doing.replaceAll("_", " "))}
          ${debate.parent && html` · <a href=${`/moot/d/${debate.parent}`}>forked from ${debate.parent.slice(0, 8)}</a>`}</p></div>
      <${Controls} debate=${debate} setup=${setup} act=${act} />
    </header>
    <main id="main" tabindex="-1">
      <div class="told" role="status">
        ${lost && html`<p class="callout">The server does not answer; what is shown may be old.</p>`}
        ${(problem || debate.error) && html`<p class="callout error" role="alert" dir="auto">${problem || debate.error}</p>`}
        ${said && html`<p class="callout">${said}</p>`}
      </div>
      <nav class="tabs" role="tablist" aria-label="Parts of the debate">
        ${Object.entries(TABS).map(([key, title]) => html`<button type="button" role="tab" id=${`tab-${key}`} class=${key} aria-controls=${key === "transcript" ? "said" : "panel"}
          aria-selected=${tab === key} tabindex=${tab === key ? 0 : -1} onClick=${() => setTab(key)} onKeyDown=${(event) => along(event, setTab)}>${title}</button>`)}
      </nav>
      <div class="left" id="said">
        <${Transcript} key=${id} debate=${debate} speeches=${speeches} act=${act} showPrompt=${setPrompt} />
        ${debate.questions.length > 0 ? html`<${Questions} debate=${debate} act=${act} />` : html`<${Floor} debate=${debate} act=${act} />`}
      </div>
      <div id="panel" role="tabpanel" aria-labelledby=${`tab-${panel}`} tabindex="0">
        <${Graph} setup=${setup} debate=${debate} />
        ${panel === "ledger" && html`<${Ledger} debate=${debate} act=${act} />`}
        ${panel === "prompts" && html`<${Prompts} debate=${debate} setup=${setup} showPrompt=${setPrompt} />`}
        ${panel in PARTS && html`<${Part} key=${panel} debate=${debate} part=${panel} />`}
      </div>
    </main>
    <${PromptDialog} debate=${debate} what=${prompt} close=${() => setPrompt(null)} />
  </div>`;
}

// Arrow keys go from tab to tab.
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
  return html`<div class="controls" role="group" aria-label="The debate">
    ${debate.running && html`<button type="button" onClick=${() => act("pause")}>Pause</button>`}
    ${!debate.running && !debate.over && !debate.questions.length && html`<button type="button" class="main" onClick=${() => act("run")}>Go on</button>`}
    ${!debate.running && debate.over && debate.goes_on && html`<form class="more" onSubmit=${(event) => { event.preventDefault(); act("run", { turns }); }}>
      <input type="number" min="1" max="1000" aria-label="Turns more" value=${turns} onInput=${(event) => setTurns(Number(event.currentTarget.value))} />
      <button type="submit">turns more</button></form>`}
    <button type="button" onClick=${() => act("fork")}>Fork</button>
    ${debate.parent && html`<a class="button" href=${`/moot/compare?debate=${debate.parent}&debate=${debate.id}`}>Compare</a>`}
    <details class="menu"><summary class="button">Download</summary>
      <ul>${setup.files.map((form) => html`<li><a download href=${file(debate.id, form)}>${form}</a></li>`)}</ul></details>
  </div>`;
}

// A part of the debate's report, as the report has it; made anew as the debate goes on.
function Part({ debate, part }) {
  const [made, setMade] = useState(null);
  useEffect(() => {
    let over = false;
    get(at(debate.id, `parts/${part}`)).then((answer) => over || setMade(answer.html), () => {});
    return () => { over = true; };
  }, [debate.checkpoint, debate.status]);
  if (made === null) return html`<p class="muted">Reading …</p>`;
  return made.trim() ? html`<${Made} class="part" html=${made} />` : html`<p class="muted">Nothing yet.</p>`;
}

function Floor({ debate, act }) {
  const field = useRef();
  const send = async (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    if (await act("say", { text: form.get("text"), speaker: form.get("speaker") })) field.current.value = "";
  };
  if (debate.over && !debate.goes_on) return null;
  return html`<form class="floor" onSubmit=${send}>
    <select name="speaker" aria-label="Who speaks"><option value="moderator">Moderator</option>
      ${debate.people.map((person) => html`<option value=${person.id}>as ${person.name}</option>`)}</select>
    <input ref=${field} name="text" required aria-label="Say something from the floor" placeholder=${debate.over ? "Said now, heard once it goes on" : "Say something from the floor"} dir="auto" autocomplete="off" />
    <button type="submit">Say</button>
  </form>`;
}

function Questions({ debate, act }) {
  const answer = (event) => {
    event.preventDefault();
    act("run", { answers: Object.fromEntries(new FormData(event.currentTarget)) });
  };
  return html`<form class="questions" onSubmit=${answer} aria-label="The debate asks you">
    ${debate.questions.map((each) => {
      const last = each.question.trimEnd().lastIndexOf("\n\n"); // what is wanted; before it what led to it
      return html`<div key=${each.id}>
        ${last > 0 && html`<details><summary class="small">What ${each.name} is shown</summary><p class="asked small" dir="auto">${each.question.slice(0, last)}</p></details>`}
        <label><b>${each.name}</b> <span class="asked" dir="auto">${each.question.slice(last < 0 ? 0 : last).trim()}</span><textarea name=${each.id} rows="3" dir="auto"></textarea></label>
      </div>`;
    })}
    <button type="submit" class="main">Answer</button>
  </form>`;
}
