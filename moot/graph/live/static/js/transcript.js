// A transcript of any length: only what is near the view is in the page, and nothing jumps when heights settle.
import { at, get } from "./api.js";
import { html, Made, useEffect, useLayoutEffect, useReducer, useRef, useState } from "./html.js";
import { useKeys } from "./keys.js";
import { announce, plural, spoken } from "./words.js";

const GUESS_PX = 170; // a message nobody has measured yet
const BEYOND_PX = 900; // rendered above and below the view
const CHUNK = 50; // messages asked for at once
const AT_END_PX = 90; // so near to the end, the end is followed

export function Transcript({ debate, speeches, act, showPrompt }) {
  const [, redraw] = useReducer((count) => count + 1, 0);
  const [current, setCurrent] = useState(-1);
  const scroller = useRef();
  const find = useRef();
  const state = useRef(null);
  state.current ??= { entries: [], heights: [], asked: new Set(), anchor: { seq: 0, by: 0 }, end: false, drawn: false };
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

  // Heights are measured as they are laid out; what is read stays where it is.
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
    setCurrent(seq);
    redraw();
  };
  useEffect(() => {
    const item = own.focus !== undefined && scroller.current.querySelector(`[data-seq="${own.focus}"] .entry`);
    if (!item) return;
    own.focus = undefined;
    item.setAttribute("tabindex", "-1");
    item.focus({ preventScroll: true });
  });

  // Citations are links to a message's id.
  useEffect(() => {
    const cited = () => jump(spoken(location.hash.slice(1)));
    addEventListener("hashchange", cited);
    if (location.hash) cited();
    else if (debate.running) own.end = true;
    return () => removeEventListener("hashchange", cited);
  }, [count > 0]);

  useKeys({
    j: () => jump(Math.min(count - 1, (current < 0 ? own.anchor.seq - 1 : current) + 1)),
    k: () => jump(Math.max(0, (current < 0 ? own.anchor.seq : current) - 1)),
    "/": () => find.current.focus(),
    End: () => { own.end = true; redraw(); },
    Home: () => jump(0),
  });

  const shown = [];
  for (let seq = from; seq < to; seq++) {
    shown.push(html`<${Item} key=${seq} seq=${seq} entry=${own.entries[seq]} count=${count} measured=${measured} here=${seq === current}
      pinned=${debate.pinned.includes(own.entries[seq]?.id)} act=${act} showPrompt=${showPrompt} />`);
  }
  return html`<section class="transcript" aria-label="Transcript">
    <${Find} debate=${debate} jump=${jump} field=${find} />
    <div class="scroller" ref=${scroller} onScroll=${scrolled} role="feed" aria-busy=${debate.running} aria-label="What was said" tabindex="0">
      <div aria-hidden="true" style=${{ height: `${tops[from]}px` }}></div>
      ${shown}
      <div aria-hidden="true" style=${{ height: `${tops[count] - tops[to]}px` }}></div>
      <${Speeches} speeches=${speeches} people=${debate.people} entries=${count} />
    </div>
  </section>`;
}

function Item({ seq, entry, count, measured, here, pinned, act, showPrompt }) {
  if (!entry) return html`<div class="item" data-seq=${seq}><div class="waiting" style=${{ height: `${GUESS_PX}px` }}></div></div>`;
  return html`<div class=${`item${here ? " current" : ""}${pinned ? " pinned" : ""}`} data-seq=${seq} ref=${measured} role="article" aria-posinset=${seq + 1} aria-setsize=${count}>
    ${entry.new_phase && html`<p class="phase">${entry.phase.replaceAll("_", " ")}</p>`}
    <div class="body"><${Made} html=${entry.html} /><p class="tools">
      <button type="button" onClick=${() => act("pin", { message: entry.id, pinned: !pinned })} aria-pressed=${pinned}>${pinned ? "Unpin" : "Pin"}<span class="visually-hidden"> ${entry.id}</span></button>
      ${entry.prompt && html`<button type="button" onClick=${() => act("fork", { after: entry.id })}>Fork here<span class="visually-hidden">, after ${entry.id}</span></button>
        <button type="button" onClick=${() => showPrompt(entry.seq)}>Prompt<span class="visually-hidden"> of ${entry.id}</span></button>`}
    </p></div>
  </div>`;
}

// Who speaks at this moment, each under the name: one after the other in a debate, all at once in a council.
function Speeches({ speeches, people, entries }) {
  const told = useRef({});
  const under_way = Object.entries(speeches).filter(([id]) => spoken(id) < 0 || spoken(id) >= entries);
  const name = (speaker) => people.find((each) => each.id === speaker)?.name ?? speaker;
  useEffect(() => {
    for (const [id, { speaker, text }] of under_way) {
      const before = told.current[id] ?? 0;
      const end = Math.max(text.lastIndexOf(". "), text.lastIndexOf("? "), text.lastIndexOf("! "), text.lastIndexOf("\n"));
      if (end < before) continue;
      announce(`${before ? "" : `${name(speaker)}: `}${text.slice(before, end + 1)}`);
      told.current[id] = end + 1;
    }
  });
  return html`<div class="speeches" aria-hidden="true">
    ${under_way.map(([id, { speaker, text }]) => {
      const person = people.find((each) => each.id === speaker);
      return html`<article key=${id} class=${`entry speech now ${person?.tone ?? "house"}`}>
        <p class="by"><span class=${`who ${person?.tone ?? "house"}`}>${person && html`<span class=${`mono ${person.tone}`}>${person.monogram}</span> `}<bdi>${name(speaker)}</bdi></span> <span class="kind">speaking</span></p>
        <div class="prose words" dir="auto">${text}</div>
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
    <span class="muted small" role="status">${found?.words === words && words ? (found.seqs.length ? `${found.index + 1} of ${found.seqs.length}` : "Nobody said it") : plural(debate.entries, "message")}</span>
  </form>`;
}

async function load(debate, own, first, last, redraw) {
  for (let seq = first; seq < last; seq++) own.asked.add(seq);
  try {
    for (const entry of await get(at(debate, "entries"), { from: first, to: last })) own.entries[entry.seq] = entry;
  } catch {
    // The next look asks again; the debate's own view says that the line is dead.
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
  for (let seq = first; seq < last; seq++) own.asked.delete(seq);
  redraw();
}

// Takes up where the reader has scrolled to since the last look: a message, and how far below its beginning.
function read(own, box) {
  if (!own.tops || Math.abs(box.scrollTop - own.top) <= 1) return;
  own.top = box.scrollTop;
  own.end = box.scrollHeight - box.scrollTop - box.clientHeight < AT_END_PX;
  const seq = place(own.tops, own.tops.length - 1, box.scrollTop);
  own.anchor = { seq, by: box.scrollTop - own.tops[seq] };
}

// The messages from `from` to before `to` that are to be in the page.
function near(tops, count, box, own) {
  const height = box?.clientHeight || 800;
  const top = own.end ? Math.max(0, tops[count] - height) : tops[Math.min(own.anchor.seq, count)] + own.anchor.by;
  return [place(tops, count, top - BEYOND_PX), Math.min(count, place(tops, count, top + height + BEYOND_PX) + 1)];
}

// The message at a height, by halving.
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
