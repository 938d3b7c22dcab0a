// Claims with the debaters who assert or deny them, their quotations, and the crux rooms.
import { at, get } from "./api.js";
import { html, marked, ServerHtml, useEffect, useState } from "./html.js";
import { plural, price } from "./words.js";

const MAIN_QUESTION = "p000";
const LONG = 160;
const KINDS = ["asserts", "denies", "conditional", "concedes", "withdraws", "unsure"];

export function Ledger({ debate, act }) {
  const [made, setMade] = useState(null);
  const [disputed, setDisputed] = useState(false);
  const [cost, setCost] = useState(null); // of finding the claims, if there are none
  useEffect(() => { get(at(debate.id, "ledger")).then(setMade, () => {}); }, [debate.checkpoint]);
  const empty = Boolean(made?.missing) && debate.over;
  useEffect(() => {
    setCost(null);
    if (empty) get(at(debate.id, "claims")).then((answer) => setCost(answer.cost), () => {});
  }, [empty, debate.checkpoint]);
  if (!made) return html`<p class="muted">Loading the claims …</p>`;
  const claims = made.claims.filter((each) => Object.keys(each.stances).length && (!disputed || each.was_disputed));
  const text = (id) => words(made.claims.find((each) => each.id === id) ?? { id, text: id });
  return html`
    <section aria-labelledby="h-ledger"><h2 id="h-ledger">All claims</h2>
      <p class="actions"><button type="button" aria-pressed=${!disputed} onClick=${() => setDisputed(false)}>All</button>
        <button type="button" aria-pressed=${disputed} onClick=${() => setDisputed(true)}>Disputed</button></p>
      ${!claims.length && (cost ? html`<${FindClaims} cost=${cost} act=${act} />`
        : html`<p class="muted">${marked(made.missing || `There are no ${disputed ? "disputed " : ""}claims yet.`)}</p>`)}
      ${claims.map((each) => html`<article key=${each.id} class="card claim">
        <p class="tags"><span class=${`pill status-${["disputed", "unresolved", "conditional"].includes(each.status) ? "open" : "good"}`}>${each.label}</span>
          <span class="muted small">${each.id}</span></p>
        <h3 class="quote" dir="auto">${marked(words(each))}</h3>
        ${Object.entries(each.stances).map(([who, stance]) => html`<${Stance} key=${who} who=${who} stance=${stance} debate=${debate} act=${act} />`)}
      </article>`)}
    </section>
    ${made.rooms.length > 0 && html`<section aria-labelledby="h-rooms"><h2 id="h-rooms">Crux rooms</h2>
      ${made.rooms.map((room) => html`<${Room} key=${room.id} room=${room} about=${text(room.claim)} debate=${debate} />`)}
    </section>`}`;
}

// Button that lets the debate's model find the claims, with what this costs.
function FindClaims({ cost, act }) {
  const [busy, setBusy] = useState(false);
  const find = async () => {
    setBusy(true);
    await act("claims");
    setBusy(false);
  };
  return html`<p>No claims were extracted from this debate.</p>
    <p><button type="button" class="main" disabled=${busy} onClick=${find}>${busy ? "Finding the claims …" : `Find the claims: about ${plural(cost.calls, "call")}, ${price(cost.usd)}`}</button></p>`;
}

// A long main question is not repeated, because it is the title of the page.
const words = ({ id, text }) => (id === MAIN_QUESTION && text.length > LONG ? "The main question" : text);

const person = (debate, id) => debate.people.find((each) => each.id === id) ?? { name: id, tone: "house", monogram: "" };

function Who({ debate, id }) {
  const { name, tone, monogram } = person(debate, id);
  return html`<span class=${`who ${tone}`}>${monogram && html`<span class=${`mono ${tone}`} aria-hidden="true">${monogram}</span> `}<bdi>${name}</bdi></span>`;
}

function Stance({ who, stance, debate, act }) {
  const [open, setOpen] = useState(false);
  const note = stance.history.at(-1);
  const correct = async (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    if (await act("correct", { note, kind: form.get("kind"), why: form.get("why") })) setOpen(false);
  };
  return html`<div class=${`reason ${person(debate, who).tone}`}>
    <p><${Who} debate=${debate} id=${who} /> <b>${stance.kind.replaceAll("_", " ")}</b> <span dir="auto">“${marked(stance.quote)}”</span>${stance.condition && html` <span class="muted" dir="auto">if ${marked(stance.condition)}</span>`}
      ${" "}<a class="cite" href=${`#${stance.message_id}`}>${stance.message_id}</a>
      ${" "}<button type="button" class="quiet" aria-expanded=${open} onClick=${() => setOpen(!open)}>Correct<span class="visually-hidden"> claim event ${note}</span></button></p>
    ${open && html`<form class="fields" onSubmit=${correct}>
      <label>Correct kind<select name="kind">${KINDS.map((kind) => html`<option selected=${kind === stance.kind}>${kind}</option>`)}<option value="">none: remove it</option></select></label>
      <label>Reason<input name="why" /></label><button type="submit">Correct ${note}</button></form>`}
  </div>`;
}

function Room({ room, about, debate }) {
  const [said, setSaid] = useState(null);
  const unfold = (event) => {
    if (event.currentTarget.open) get(at(debate.id, "entries"), { id: room.message_ids }).then(setSaid, () => {});
  };
  return html`<details class="block room" onToggle=${unfold}>
    <summary><span class="title" dir="auto">${marked(about)}</span>
      <span class=${`pill status-${room.closed ? "good" : "open"}`}>${room.closed ? "closed" : room.stage || "open"}</span>
      <span class="muted small">${room.between.map((id) => person(debate, id).name).join(" and ")} · ${plural(room.message_ids.length, "message")}</span></summary>
    ${said?.map((entry) => html`<${ServerHtml} key=${entry.id} html=${entry.html.replace(/ id="[^"]*"/, "")} />`)}
    ${!room.message_ids.length && html`<p class="muted pad">This room has no messages yet.</p>`}
  </details>`;
}
