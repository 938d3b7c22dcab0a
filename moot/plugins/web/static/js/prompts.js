// Tokens of each prompt by section, and the exact text of any prompt.
import { at, get } from "./api.js";
import { html, marked, useEffect, useRef, useState } from "./html.js";
import { number } from "./words.js";

const MOST = 40;

export function Prompts({ debate, setup, showPrompt }) {
  const [made, setMade] = useState(null);
  const [others, setOthers] = useState(false);
  const [shown, setShown] = useState(MOST);
  useEffect(() => { get(at(debate.id, "receipts")).then(setMade, () => {}); }, [debate.checkpoint]);
  if (!made) return html`<p class="muted">Loading the prompts …</p>`;
  const rows = (others ? made.calls : made.prompts).slice().reverse();
  const name = (id) => debate.people.find((person) => person.id === id)?.name ?? id;
  return html`<section aria-labelledby="h-prompts">
    <h2 id="h-prompts">Prompts</h2>
    <p class="muted small">Tokens of each prompt by section, and its budget. Open a prompt to read its text.</p>
    <p class="actions"><button type="button" aria-pressed=${!others} onClick=${() => setOthers(false)}>Turns ${number(made.prompts.length)}</button>
      <button type="button" aria-pressed=${others} onClick=${() => setOthers(true)}>Other calls ${number(made.calls.length)}</button></p>
    <ul class="legend" aria-label="Sections">${sections(rows, setup).map((section) => html`<li><span class=${`swatch ${hue(section, setup)}`}></span> ${section.replaceAll("_", " ")}</li>`)}</ul>
    ${!rows.length && html`<p class="muted">No prompt has been sent yet.</p>`}
    <ol class="plain budgets">${rows.slice(0, shown).map((row) => html`<li key=${row.id ?? row.seq}>
      <button type="button" class="budget" onClick=${() => showPrompt(row.id ?? row.seq)}>
        <span class="what"><bdi>${row.id ? row.purpose : name(row.speaker)}</bdi> <span class="muted">${row.id ? row.memory_kind : row.entry_id}</span></span>
        <span class="number small">${number(row.total_tokens)} of ${number(row.budget)}</span>
        <span class="stack-bar" aria-hidden="true">${Object.entries(row.sections).map(([section, tokens]) => tokens > 0 && html`<i
          class=${hue(section, setup)} title=${`${section.replaceAll("_", " ")}: ${number(tokens)}`} style=${{ width: `${(100 * tokens) / Math.max(row.budget, row.total_tokens, 1)}%` }}></i>`)}</span>
      </button></li>`)}</ol>
    ${rows.length > shown && html`<button type="button" onClick=${() => setShown(shown + 200)}>${number(rows.length - shown)} earlier</button>`}
  </section>`;
}

const sections = (rows, setup) => {
  const used = new Set(rows.flatMap((row) => Object.keys(row.sections)));
  return [...setup.sections.filter((section) => used.has(section)), ...[...used].filter((section) => !setup.sections.includes(section))];
};
const hue = (section, setup) => {
  const index = setup.sections.indexOf(section);
  return index < 0 ? "s5" : `s${index % 6}`;
};

// Dialog with the exact prompt of an entry (by number) or of another call (by id).
export function PromptDialog({ debate, what, close }) {
  const dialog = useRef();
  const [seen, setSeen] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    if (what === null) return;
    setSeen(null);
    setProblem("");
    dialog.current.showModal();
    get(at(debate.id, `prompts/${what}`)).then(setSeen, (error) => setProblem(error.message));
  }, [what]);
  const receipt = seen?.receipt;
  return html`<dialog ref=${dialog} class="prompt" onClose=${close} aria-label="Exact prompt">
    <form method="dialog" class="closing"><button>Close</button></form>
    ${problem && html`<p class="callout" role="alert">${marked(problem)}</p>`}
    ${!seen && !problem && html`<p class="muted">Loading the prompt …</p>`}
    ${seen && html`
      <h2>Prompt of ${receipt.entry_id ?? `${receipt.id}, ${receipt.purpose}`}</h2>
      <p><b>${number(receipt.total_tokens)}</b> of ${number(receipt.budget)} tokens${". "}
        <span class=${`pill status-${seen.exact ? "good" : "bad"}`}>${seen.exact ? "exact" : "differs from the sent prompt"}</span>
        <span class="muted small"> ${seen.exact ? "Its digest is the recorded one." : "Its digest differs, perhaps because a prompt file has changed."}</span></p>
      ${seen.prompt.map((part) => html`<details open><summary><b>${part.section}</b> <span class="muted small">${part.role}${part.name ? ` · ${part.name}` : ""} · ${number(part.tokens)} tokens</span></summary>
        <pre dir="auto">${part.content}</pre></details>`)}
      <h3>Left out</h3>
      ${receipt.omitted.length ? html`<ul class="small">${receipt.omitted.map((note) => html`<li>${note.count ?? 1} × ${note.what}: ${note.why}, ${number(note.tokens)} tokens</li>`)}</ul>`
        : html`<p class="muted">Nothing was left out.</p>`}`}
  </dialog>`;
}
