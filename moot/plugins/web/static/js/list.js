// List of all debates with search, status, cost and result. Debates can be compared or started here.
import { get, post } from "./api.js";
import { go } from "./navigation.js";
import { html, marked, useEffect, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { ImportTranscript } from "./import_transcript.js";
import { NewDebate } from "./new_debate.js";
import { ago, announce, cost, facts, number, plural, tone } from "./words.js";

const STATES = ["running", "waiting", "paused", "done", "limit", "failed"];
const LOOK_AGAIN_MS = 3000;

export function List({ setup }) {
  const [words, setWords] = useState("");
  const [status, setStatus] = useState("");
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  const [current, setCurrent] = useState(-1);
  const [chosen, setChosen] = useState([]);
  const [openNew, openImport] = [useRef(), useRef()];
  const search = useRef();
  const rows = useRef();

  useEffect(() => {
    document.title = "Debates – Moot";
    let over = false;
    const look = async () => {
      if (document.hidden) return;
      try {
        const answer = await get("/debates", { q: words, status });
        if (!over) { setFound(answer); setProblem(""); }
      } catch (error) {
        if (!over) setProblem(error.message);
      }
    };
    look();
    const again = setInterval(look, LOOK_AGAIN_MS);
    return () => { over = true; clearInterval(again); };
  }, [words, status]);

  const debates = found?.debates ?? [];
  const move = (by) => {
    const next = Math.max(0, Math.min(debates.length - 1, current + by));
    setCurrent(next);
    rows.current?.children[next]?.querySelector("a")?.focus();
  };
  useKeys({
    j: () => move(1),
    k: () => move(-1),
    "/": () => search.current.focus(),
    Enter: () => debates[current] && go(address(debates[current])),
    Escape: () => { setWords(""); setStatus(""); },
  });

  const choose = (id) =>
    setChosen(chosen.includes(id) ? chosen.filter((each) => each !== id) : [...chosen, id]);
  const play = (name) => post(`/samples/${name}`).then((made) => go(`/moot/d/${made.id}`), (error) => setProblem(error.message));
  const searched = (event) => {
    setWords(event.currentTarget.value);
    setCurrent(-1);
  };
  useEffect(() => { if (words && found) announce(plural(found.found, "debate") + " found"); }, [found?.found]);

  return html`<main id="main" class="list" tabindex="-1">
    <div class="heading"><h1>Debates</h1>${setup && html`<span class="actions"><button type="button" class="main" onClick=${() => openNew.current()}>New debate</button>
      <button type="button" onClick=${() => openImport.current()}>Import</button></span>`}</div>
    ${setup && !setup.operator && html`<${Visitor} setup=${setup} />`}
    ${setup && html`<${NewDebate} setup=${setup} opener=${openNew} /><${ImportTranscript} opener=${openImport} />`}
    ${found?.all !== 0 && html`<form class="search" role="search" onSubmit=${(event) => { event.preventDefault(); if (debates[0]) go(address(debates[0])); }}>
      <input ref=${search} type="search" aria-label="Search debates" aria-keyshortcuts="/" placeholder="Search names, topics, models, results"
        value=${words} onInput=${searched} />
      <select aria-label="Status" value=${status} onChange=${(event) => setStatus(event.currentTarget.value)}>
        <option value="">Any status</option>${STATES.map((each) => html`<option>${each}</option>`)}
      </select>
      <button type="button" disabled=${chosen.length < 2}
        onClick=${() => go(`/moot/compare?${new URLSearchParams(chosen.map((id) => ["debate", id]))}`)}>
        Compare${chosen.length > 1 ? ` ${chosen.length}` : ""}</button>
    </form>`}
    ${problem && html`<p class="callout" role="alert">${marked(problem)}</p>`}
    ${found && !debates.length && (found.all ? html`<p class="muted">No debate matches.</p>` : html`<section class="samples" aria-labelledby="h-samples">
      <h2 id="h-samples">No debates yet</h2>
      <p class="muted">Start one with “New debate”, or play a recorded sample. A sample needs no model and costs nothing.</p>
      <ul class="cards">${setup?.samples.map((sample) => html`<li class="card"><p class="kicker">${facts(sample.protocol, sample.debaters.join(", "))}</p>
        <h3>${sample.question}</h3>
        <button type="button" aria-label=${`Play the sample ${sample.name}`} onClick=${() => play(sample.name)}>Play</button></li>`)}</ul>
    </section>`)}
    <ol class="rows" ref=${rows} aria-label="Debates, most recently active first">
      ${debates.map((row, index) => html`<li key=${row.id} class=${index === current ? "here" : ""}>
        <input type="checkbox" aria-label=${`Compare ${row.topic}`} checked=${chosen.includes(row.id)} onChange=${() => choose(row.id)} />
        <div class="about"><a href=${address(row)} dir="auto" onFocus=${() => setCurrent(index)}>${marked(row.question || row.topic || row.name)}</a>
          ${(row.decision || row.winner) && html`<p class=${`winner${row.winner.startsWith("placeholder") ? " placeholder" : ""}`} dir="auto">${marked(row.decision || row.winner)}</p>`}
          <p class="muted small">${row.name !== row.id && html`<bdi>${row.name}</bdi> · `}${facts(row.protocol, row.model, plural(row.turns, "turn"), cost(row.cost_usd), ago(row.updated_at))}</p></div>
        <div class="result"><span class=${tone(row.status)}>${row.status}</span>
          ${row.confidence != null && html`<span class="muted small">confidence ${Math.round(row.confidence)} of 100</span>`}</div>
      </li>`)}
    </ol>
    ${found && found.found > debates.length && html`<p class="muted small">${number(found.found - debates.length)} more debates. Use the search to find them.</p>`}
    ${debates.length > 0 && html`<p class="muted small keys"><kbd>j</kbd> <kbd>k</kbd> move, <kbd>Enter</kbd> open, <kbd>/</kbd> search, <kbd>Esc</kbd> clear</p>`}
  </main>`;
}

const address = (row) => `/moot/d/${row.id}`;

// Says what a visitor may do, and whose key pays.
const Visitor = ({ setup }) => html`<details class="visitor"><summary>You are a visitor of this server</summary>
  <p>You can read, start, continue, question, judge, fork and delete debates. Calls to models use the operator’s API keys, so the operator pays for them.
    You can choose these models: ${setup.models.join(", ") || "none"}.
    To choose others, list or propose debaters, open the address “for you” that <code>moot serve</code> printed at its start.</p></details>`;
