// Transcript of any length. Only messages near the visible part are rendered, and the scroll position is stable.
import { at, get } from "./api.js";
import { GrowingProse, html, ServerHtml, useEffect, useLayoutEffect, useReducer, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { Menu } from "./menu.js";
import { announce, number, plural, spoken } from "./words.js";

const GUESS_PX = 170; // height of a message before it is measured
const BEYOND_PX = 900; // height rendered above and below the visible part
// Work between the turns, by the graph's node.
const WORK = {
  plan: "Choosing who speaks next", extract: "Noting the claims", trim: "Shortening the prompts", summarize: "Summarizing",
  reflect: "The debaters reflect", judge: "The judge decides", close: "Finishing",
};
const MARKS = /\*+|`+|^#+ /gm; // of Markdown, which nobody wants to hear
const CHUNK = 50; // messages per request
const AT_END_PX = 90; // distance from the end within which new messages are followed

export function Transcript({ debate, streams, thinking, act, fork, showPrompt }) {
  const [, redraw] = useReducer((count) => count + 1, 0);
  const scroller = useRef();
  const find = useRef();
  const state = useRef(null);
  state.current ??= { entries: [], heights: [], asked: new Set(), anchor: { seq: 0, by: 0 }, end: false, drawn: false, current: -1, heard: {}, told: debate.entries };
  const own = state.current;
  const count = debate.entries;

  const tops = new Float64Array(count + 1);
  for (let seq = 0; seq < count; seq++) tops[seq + 1] = tops[seq] + (own.heights[seq] ?? GUESS_PX);
  const [from, to] = near(tops, count, scroller.current, own);

  useEffect(() => {
    let first = from;
    while (first < to && (own.entries[first] || own.asked.has(first))) first++;
    if (first < to) load(debate.id, own, first, Math.min(count, first + CHUNK), redraw);
  });

  // Measures the heights after layout. The message being read keeps its position.
  const sizes = useRef(null);
  sizes.current ??= new ResizeObserver((changes) => {
    let changed = false;
    for (const { target } of changes) {
      const height = target.offsetHeight;
      if (height && own.heights[target.dataset.seq] !== height) {
        own.heights[target.dataset.seq] = height;
        changed = true;
      }
    }
    if (changed) redraw();
  });
  const measured = (node) => node && sizes.current.observe(node);
  useEffect(() => () => sizes.current.disconnect(), []);

  useLayoutEffect(() => {
    const box = scroller.current;
    read(own, box);
    if (own.end) box.scrollTop = box.scrollHeight;
    else {
      const wanted = tops[Math.min(own.anchor.seq, count)] + own.anchor.by;
      if (Math.abs(wanted - box.scrollTop) > 1) box.scrollTop = wanted;
    }
    own.tops = tops;
    own.top = box.scrollTop;
    if (!own.drawn) { own.drawn = true; redraw(); }
  });

  const scrolled = () => {
    read(own, scroller.current);
    redraw();
  };

  const jump = (seq, focus = true) => {
    if (seq < 0 || seq >= count) return;
    read(own, scroller.current);
    own.anchor = { seq, by: -8 };
    own.end = false;
    own.focus = focus ? seq : undefined;
    own.current = seq;
    redraw();
  };
  useEffect(() => {
    const item = own.focus !== undefined && scroller.current.querySelector(`[data-seq="${own.focus}"] .entry`);
    if (!item) return;
    own.focus = undefined;
    item.setAttribute("tabindex", "-1");
    item.focus({ preventScroll: true });
  });

  // Citations link to the id of a message.
  useEffect(() => {
    const cited = () => jump(spoken(location.hash.slice(1)));
    addEventListener("hashchange", cited);
    if (location.hash) cited();
    else if (debate.running) own.end = true;
    return () => removeEventListener("hashchange", cited);
  }, [count > 0]);

  useKeys({
    j: () => jump(Math.min(count - 1, (own.current < 0 ? own.anchor.seq - 1 : own.current) + 1)),
    k: () => jump(Math.max(0, (own.current < 0 ? own.anchor.seq : own.current) - 1)),
    "/": () => find.current.focus(),
    End: () => { own.end = true; redraw(); },
    Home: () => jump(0),
  });

  // New messages are counted while the reader is above the end.
  if (own.end || own.seen === undefined) own.seen = count;
  const unread = count - own.seen;

  // A screen reader gets what it has not heard of a new message while it was streamed.
  useEffect(() => {
    for (; own.told < count && own.entries[own.told]; own.told++) {
      const { id, html: made, speaker } = own.entries[own.told];
      const text = plain(made);
      const before = (own.heard[id] ?? "").replace(MARKS, "").replace(/\s+/g, " ").trim();
      const name = debate.people.find((each) => each.id === speaker)?.name ?? speaker;
      if (!before) announce(`${name}: ${text}`);
      else if (text.startsWith(before)) announce(text.slice(before.length));
      delete own.heard[id];
    }
  });

  const shown = [];
  for (let seq = from; seq < to; seq++) {
    shown.push(html`<${Item} key=${seq} seq=${seq} entry=${own.entries[seq]} count=${count} measured=${measured} here=${seq === own.current}
      pinned=${debate.pinned.includes(own.entries[seq]?.id)} act=${act} fork=${fork} showPrompt=${showPrompt} />`);
  }
  return html`<section class="transcript" aria-label="Transcript">
    <${Find} debate=${debate} jump=${jump} field=${find} />
    <div class="scroller" ref=${scroller} onScroll=${scrolled} role="feed" aria-busy=${debate.running} aria-label="Messages" tabindex="0">
      <div aria-hidden="true" style=${{ height: `${tops[from]}px` }}></div>
      ${shown}
      <div aria-hidden="true" style=${{ height: `${tops[count] - tops[to]}px` }}></div>
      <${Streams} heard=${own.heard} streams=${streams} thinking=${thinking} debate=${debate} />
    </div>
    ${unread > 0 && html`<button type="button" class="unread" onClick=${() => { own.end = true; redraw(); }}>${number(unread)} new ↓</button>`}
  </section>`;
}

function Item({ seq, entry, count, measured, here, pinned, act, fork, showPrompt }) {
  if (!entry) return html`<div class="item" data-seq=${seq}><div class="waiting" style=${{ height: `${GUESS_PX}px` }}></div></div>`;
  return html`<div class=${`item${here ? " current" : ""}${pinned ? " pinned" : ""}`} data-seq=${seq} ref=${measured} role="article" aria-posinset=${seq + 1} aria-setsize=${count}>
    ${entry.new_phase && html`<p class="phase">${entry.phase.replaceAll("_", " ")}</p>`}
    <div class="body"><${ServerHtml} html=${entry.html} /><${Menu} kind="tools" title="⋯" label=${`Actions on ${entry.id}`}>
      <li><button type="button" onClick=${() => act("pin", { message: entry.id, pinned: !pinned })} aria-pressed=${pinned}>${pinned ? "Unpin" : "Pin"}</button></li>
      ${entry.prompt && html`<li><button type="button" onClick=${() => fork(entry.id)}>Fork here</button></li>
        <li><button type="button" onClick=${() => showPrompt(entry.seq)}>Prompt</button></li>`}
    <//></div>
  </div>`;
}

// Messages that are being streamed, each with its speaker. A council has several at the same time.
function Streams({ streams, thinking, heard, debate: { people, entries, running: runs, nodes } }) {
  const running = Object.entries(streams).filter(([id]) => spoken(id) < 0 || spoken(id) >= entries);
  const name = (speaker) => people.find((each) => each.id === speaker)?.name ?? speaker;
  useEffect(() => {
    for (const [id, { speaker, text }] of running) {
      const before = heard[id]?.length ?? 0;
      const end = Math.max(text.lastIndexOf(". "), text.lastIndexOf("? "), text.lastIndexOf("! "), text.lastIndexOf("\n"));
      if (end < before) continue;
      announce(`${before ? "" : `${name(speaker)}: `}${text.slice(before, end + 1).replace(MARKS, "")}`);
      heard[id] = text.slice(0, end + 1);
    }
  });
  const [, tick] = useReducer((count) => count + 1, 0);
  const begun = new Set(Object.values(streams).map(({ speaker }) => speaker));
  const silent = thinking.speakers.filter((speaker) => !begun.has(speaker));
  const work = !running.length && !silent.length && runs ? WORK[nodes[0]] : "";
  useEffect(() => {
    if (!silent.length) return;
    const again = setInterval(tick, 1000);
    return () => clearInterval(again);
  }, [silent.length, thinking.since]);
  return html`<div class="speeches" aria-hidden="true">
    ${silent.length > 0 && html`<p class="muted thinking">${silent.map(name).join(", ")} ${silent.length > 1 ? "are" : "is"} thinking … ${Math.floor((Date.now() - thinking.since) / 1000)} s</p>`}
    ${work && html`<p class="muted thinking">${work} …</p>`}
    ${running.map(([id, { speaker, made }]) => {
      const person = people.find((each) => each.id === speaker);
      return html`<article key=${id} class=${`entry speech now ${person?.tone ?? "house"}`}>
        <p class="by"><span class=${`who ${person?.tone ?? "house"}`}>${person && html`<span class=${`mono ${person.tone}`}>${person.monogram}</span> `}<bdi>${name(speaker)}</bdi></span> <span class="kind">speaking</span></p>
        <${GrowingProse} text=${made} />
      </article>`;
    })}
  </div>`;
}

function Find({ debate, jump, field }) {
  const [words, setWords] = useState("");
  const [found, setFound] = useState(null);
  const search = async (event) => {
    event.preventDefault();
    if (!words.trim()) return;
    if (found?.words === words && found.seqs.length) {
      const next = (found.index + 1) % found.seqs.length;
      setFound({ ...found, index: next });
      return jump(found.seqs[next], false);
    }
    const seqs = await get(at(debate.id, "find"), { q: words });
    setFound({ words, seqs, index: 0 });
    if (seqs.length) jump(seqs[0], false);
  };
  return html`<form class="find" role="search" onSubmit=${search}>
    <input ref=${field} type="search" aria-label="Find in this debate" aria-keyshortcuts="/" placeholder="Find in this debate" value=${words}
      onInput=${(event) => setWords(event.currentTarget.value)} />
    <span class="muted small" role="status">${found?.words === words && words ? (found.seqs.length ? `${found.index + 1} of ${found.seqs.length}` : "No match") : plural(debate.messages, "message")}</span>
  </form>`;
}

async function load(debate, own, first, last, redraw) {
  for (let seq = first; seq < last; seq++) own.asked.add(seq);
  try {
    for (const entry of await get(at(debate, "entries"), { from: first, to: last })) own.entries[entry.seq] = entry;
  } catch {
    // The next render requests them again. The view of the debate reports a lost connection.
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  for (let seq = first; seq < last; seq++) own.asked.delete(seq);
  redraw();
}

// Text of a message without its frame, from the HTML that the server has rendered.
function plain(made) {
  const box = new DOMParser().parseFromString(made, "text/html").querySelector(".prose");
  return (box?.textContent ?? "").replace(/\s+/g, " ").trim();
}

// Stores the scroll position: a message, and the distance below its start.
function read(own, box) {
  if (!own.tops || Math.abs(box.scrollTop - own.top) <= 1) return;
  own.top = box.scrollTop;
  own.end = box.scrollHeight - box.scrollTop - box.clientHeight < AT_END_PX;
  const seq = place(own.tops, own.tops.length - 1, box.scrollTop);
  own.anchor = { seq, by: box.scrollTop - own.tops[seq] };
}

// Returns the first message to render, and the one after the last.
function near(tops, count, box, own) {
  const height = box?.clientHeight || 800;
  const top = own.end ? Math.max(0, tops[count] - height) : tops[Math.min(own.anchor.seq, count)] + own.anchor.by;
  return [place(tops, count, top - BEYOND_PX), Math.min(count, place(tops, count, top + height + BEYOND_PX) + 1)];
}

// Returns the message at a height, by binary search.
function place(tops, count, top) {
  let low = 0;
  let high = Math.max(0, count - 1);
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (tops[middle] <= top) low = middle;
    else high = middle - 1;
  }
  return low;
}
