// Evaluations: the list, and one evaluation with its chart, its arms and its items.
import { get } from "./api.js";
import { html, marked, ServerHtml, useEffect, useMemo, useState } from "./html.js";
import { ago, announce, number, plural } from "./words.js";

const PAGE_ROWS = 100;

export function Evaluations() {
  const [found, setFound] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    document.title = "Evaluations – Moot";
    get("/evals").then((answer) => setFound(answer.evaluations), (error) => setProblem(error.message));
  }, []);
  return html`<main id="main" class="list" tabindex="-1">
    <div class="heading"><h1>Evaluations</h1></div>
    ${problem && html`<p class="callout" role="alert">${marked(problem)}</p>`}
    ${found && !found.length && html`<p class="muted">There are no evaluations yet. An evaluation compares debates, votes and single answers on a set of questions.</p>`}
    <ol class="rows" aria-label="Evaluations, newest first">${found?.map((row) => html`<li key=${row.name}>
      <span></span>
      <div class="about"><a href=${`/moot/evals/${encodeURIComponent(row.name)}`}>${row.name}</a>
        <p class="muted small">${row.arms.join(", ")}</p></div>
      <div class="result muted small"><span>${plural(row.items, "item")}, ${plural(row.answers, "answer")}</span><span>${ago(row.created_at)}</span></div>
    </li>`)}</ol>
  </main>`;
}

export function Evaluation({ name }) {
  const [made, setMade] = useState(null);
  const [baseline, setBaseline] = useState("");
  const [problem, setProblem] = useState("");
  useEffect(() => {
    document.title = `${name} – Moot`;
    get(`/evals/${encodeURIComponent(name)}`, { baseline }).then(setMade, (error) => setProblem(error.message));
  }, [baseline]);
  if (problem) return html`<main id="main" class="list"><p class="callout" role="alert">${marked(problem)}</p></main>`;
  if (!made) return html`<main id="main" class="list"><p class="muted">Reading the evaluation …</p></main>`;
  const { report } = made;
  return html`<main id="main" class="list evaluation" tabindex="-1">
    <div class="heading"><h1>${name}</h1>
      <label>Compare with <select value=${report.baseline} onChange=${(event) => setBaseline(event.currentTarget.value)}>
        ${report.arms.map((row) => html`<option>${row.arm}</option>`)}</select></label></div>
    ${report.headline.map((sentence) => html`<p class="conclusion">${sentence}</p>`)}
    ${report.findings.length > 0 && html`<ul>${report.findings.map((sentence) => html`<li>${sentence}</li>`)}</ul>`}
    ${made.chart && html`<${ServerHtml} html=${made.chart} />`}
    <${Arms} rows=${report.arms} />
    <${Items} items=${made.items} report=${report} />
    <${ServerHtml} class="prose" html=${made.tables} />
  </main>`;
}

// Columns of the arms: title, function for the value to sort by, function for the cell.
const ARM_COLUMNS = [
  ["arm", (row) => row.arm, (row) => row.arm],
  ["right", (row) => row.correct, (row) => number(row.correct)],
  ["accuracy (95 %)", (row) => row.accuracy, (row) => row.accuracy == null ? "–" : `${percent(row.accuracy)} (${percent(row.low)} to ${percent(row.high)})`],
  ["difference (95 %)", (row) => row.difference?.points, (row) => row.difference ? `${points(row.difference.points)} (${points(row.difference.low)} to ${points(row.difference.high)})` : "–"],
  ["rating", (row) => row.rating, (row) => row.rating ? `${Math.round(row.rating)} (${Math.round(row.rating_low)} to ${Math.round(row.rating_high)})` : "–"],
  ["tokens", (row) => row.tokens, (row) => number(row.tokens)],
  ["calls", (row) => row.calls, (row) => number(row.calls)],
  ["US$", (row) => row.cost_usd, (row) => row.cost_usd ? row.cost_usd.toFixed(4) : "–"],
  ["median s", (row) => row.seconds, (row) => row.seconds == null ? "–" : row.seconds.toFixed(1)],
];

function Arms({ rows }) {
  const [order, setOrder] = useState({ by: "", down: true });
  const columns = ARM_COLUMNS.filter(([title]) => title !== "rating" || rows.some((row) => row.rating));
  const value = columns.find(([title]) => title === order.by)?.[1];
  const sorted = value ? [...rows].sort(compare(value, order.down)) : rows;
  return html`<section><h2>Arms</h2><div class="sortable"><table>
    <thead><tr>${columns.map(([title]) => html`<${Heading} title=${title} order=${order} setOrder=${setOrder} />`)}</tr></thead>
    <tbody>${sorted.map((row) => html`<tr key=${row.arm}>${columns.map(([title, , cell], at) => at
      ? html`<td>${cell(row)}</td>` : html`<th scope="row">${cell(row)}</th>`)}</tr>`)}</tbody>
  </table></div></section>`;
}

const SHOWN = {
  all: "All items",
  wrong: "Wrong in this arm",
  right: "Right in this arm",
  unread: "Unreadable in this arm",
  differ: "Arms differ",
};

function Items({ items, report }) {
  const arms = useMemo(() => [...new Set(items.flatMap((item) => item.answers.map((each) => each.arm)))], [items]);
  const groups = useMemo(() => [...new Set(items.map((item) => item.group))].filter(Boolean), [items]);
  const [words, setWords] = useState("");
  const [shown, setShown] = useState("all");
  const [chosenArm, setArm] = useState("");
  const [group, setGroup] = useState("");
  const [order, setOrder] = useState({ by: "", down: true });
  const [open, setOpen] = useState("");
  const [limit, setLimit] = useState(PAGE_ROWS);
  const arm = chosenArm || arms[0];

  const matches = items.filter((item) => {
    const score = scoreOf(item, arm);
    const kept = {
      all: true,
      wrong: score != null && score < 1,
      right: score === 1,
      unread: item.answers.some((each) => each.arm === arm && each.score != null && each.answer == null),
      differ: new Set(arms.map((each) => scoreOf(item, each)).filter((each) => each != null)).size > 1,
    }[shown];
    return kept && (!group || item.group === group)
      && `${item.id}\n${item.text}`.toLowerCase().includes(words.toLowerCase());
  });
  const value = order.by === "item" ? (item) => item.id : order.by && ((item) => scoreOf(item, order.by));
  const rows = value ? [...matches].sort(compare(value, order.down)) : matches;
  useEffect(() => { if (words || shown !== "all" || group) announce(`${plural(rows.length, "item")} found`); }, [rows.length]);

  return html`<section><h2>Items</h2>
    <form class="search" role="search" onSubmit=${(event) => event.preventDefault()}>
      <input type="search" aria-label="Search items" placeholder="Search ids and questions" value=${words} onInput=${(event) => setWords(event.currentTarget.value)} />
      <select aria-label="Items to show" value=${shown} onChange=${(event) => setShown(event.currentTarget.value)}>
        ${Object.entries(SHOWN).map(([key, title]) => html`<option value=${key}>${title}</option>`)}</select>
      <select aria-label="Arm" value=${arm} onChange=${(event) => setArm(event.currentTarget.value)}>
        ${arms.map((each) => html`<option>${each}</option>`)}</select>
      ${groups.length > 0 && html`<select aria-label="Group" value=${group} onChange=${(event) => setGroup(event.currentTarget.value)}>
        <option value="">Any group</option>${groups.map((each) => html`<option>${each}</option>`)}</select>`}
    </form>
    <p class="muted small">${number(rows.length)} of ${plural(items.length, "item")}. Choose an item to read its answers.</p>
    <div class="sortable"><table class="items">
      <thead><tr>${["item", ...arms].map((title) => html`<${Heading} title=${title} order=${order} setOrder=${setOrder} />`)}</tr></thead>
      <tbody>${rows.slice(0, limit).map((item) => html`
        <tr key=${item.id}><th scope="row"><button type="button" class="quiet" aria-expanded=${open === item.id} onClick=${() => setOpen(open === item.id ? "" : item.id)}>${item.id}</button></th>
          ${arms.map((each) => html`<td><${Mark} item=${item} arm=${each} /></td>`)}</tr>
        ${open === item.id && html`<tr key=${`${item.id} answers`}><td colspan=${arms.length + 1}><${Answers} item=${item} /></td></tr>`}`)}</tbody>
    </table></div>
    ${rows.length > limit && html`<p><button type="button" onClick=${() => setLimit(limit + PAGE_ROWS)}>Show ${Math.min(PAGE_ROWS, rows.length - limit)} more items</button></p>`}
    ${report.seeds > 1 && html`<p class="muted small">The score of an item is the mean of its ${report.seeds} seeds.</p>`}
  </section>`;
}

function Mark({ item, arm }) {
  const given = item.answers.filter((each) => each.arm === arm);
  const score = scoreOf(item, arm);
  if (!given.length) return html`<span class="muted">–</span>`;
  const answers = [...new Set(given.map((each) => each.answer ?? (each.score == null ? "" : "unreadable")))].join(", ");
  if (score == null) return html`<span>${answers}</span>`;
  const sign = score === 1 ? "✓" : score === 0 ? "✗" : score.toFixed(2);
  const meaning = score === 1 ? "right" : score === 0 ? "wrong" : "partly right";
  return html`<span class=${score === 1 ? "right" : score === 0 ? "wrong" : ""}><span aria-hidden="true">${sign}</span><span class="visually-hidden">${meaning}</span> <bdi>${answers.slice(0, 40)}</bdi></span>`;
}

function Answers({ item }) {
  return html`<div class="answers"><p class="words" dir="auto">${item.text}</p>
    ${item.gold && html`<p><strong>Expected:</strong> <bdi>${item.gold}</bdi></p>`}
    <dl>${item.answers.map((each) => html`<dt>${each.arm}${each.seed > 1 ? `, seed ${each.seed}` : ""}
        ${each.debate && html` <a href=${`/moot/d/${each.debate}`}>Open</a>`}</dt>
      <dd>${each.texts.length ? each.texts.map((text) => html`<p class="words" dir="auto">${text}</p>`) : html`<p>${each.answer}</p>`}
        <p class="muted small">${number(each.tokens)} tokens</p></dd>`)}</dl></div>`;
}

function Heading({ title, order, setOrder }) {
  const sorted = order.by === title ? (order.down ? "descending" : "ascending") : "none";
  const sort = () => setOrder({ by: title, down: order.by === title ? !order.down : title !== "item" && title !== "arm" });
  return html`<th scope="col" aria-sort=${sorted}><button type="button" class="quiet" onClick=${sort}>${title}${
    sorted === "none" ? "" : sorted === "descending" ? " ▾" : " ▴"}</button></th>`;
}

function scoreOf(item, arm) {
  const scores = item.answers.filter((each) => each.arm === arm && each.score != null).map((each) => each.score);
  return scores.length ? scores.reduce((sum, each) => sum + each, 0) / scores.length : null;
}

// Compares by a value. Rows without a value come last.
const compare = (value, down) => (one, other) => {
  const [a, b] = [value(one), value(other)];
  if (a == null || b == null) return (a == null) - (b == null);
  const ascending = typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
  return down ? -ascending : ascending;
};

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const points = (value) => `${value > 0 ? "+" : value < 0 ? "−" : ""}${Math.abs(value).toFixed(1)}`;
