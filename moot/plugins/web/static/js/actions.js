// Actions on a debate: the buttons of the header, the menu, and the dialogs of "Ask", "Fork" and "Judge again".
import { at, file, get, post, postStream } from "./api.js";
import { go } from "./navigation.js";
import { grown, GrowingProse, html, marked, ServerHtml, useEffect, useRef, useState } from "./html.js";
import { Menu } from "./menu.js";
import { cost, facts, number, plural } from "./words.js";

export function Controls({ debate, setup, act, ask }) {
  const [turns, setTurns] = useState(4);
  const idle = !debate.running && !debate.over;
  const ended = !debate.running && debate.over;
  return html`<div class="controls" role="group" aria-label="Actions on the debate">
    ${debate.running && html`<button type="button" onClick=${() => act("pause")}>Pause</button>`}
    ${idle && !debate.questions.length && html`<button type="button" class="main" onClick=${() => act("run")}>Continue</button>`}
    <${Ask} debate=${debate} />
    <${Menu} title="More">
      ${idle && debate.turns > 0 && html`<li><button type="button" title="Ends the debate with a verdict on the messages so far" onClick=${() => act("judge")}>Answer now</button></li>`}
      ${debate.parent && html`<li><a href=${`/moot/compare?debate=${debate.parent}&debate=${debate.id}`}>Compare with the original</a></li>`}
      ${ended && html`<li><button type="button" onClick=${ask.judge}>Judge again</button></li>`}
      ${ended && debate.can_continue && html`<li><form class="more" onSubmit=${(event) => { event.preventDefault(); act("run", { turns }); }}>
        <input type="number" min="1" max="1000" aria-label="Additional turns" value=${turns} onInput=${(event) => setTurns(Number(event.currentTarget.value))} />
        <button type="submit">more turns</button></form></li>`}
      <li><button type="button" onClick=${() => ask.fork()}>Fork</button></li>
      <li><a download href=${file(debate.id, "html")} title="One HTML file that needs no network">Share</a></li>
      ${setup.files.map((form) => html`<li><a download href=${file(debate.id, form)}>Download ${form}</a></li>`)}
      <li><${Rename} debate=${debate} act=${act} /></li>
      <li><${Delete} act=${act} running=${debate.running} /></li>
    <//>
  </div>`;
}

// A dialog that is open as long as it is rendered. The element with `data-first` gets the focus.
export function Dialog({ title, kind, close, children }) {
  const dialog = useRef();
  useEffect(() => {
    dialog.current.showModal();
    dialog.current.querySelector("[data-first]")?.focus();
  }, []);
  return html`<dialog ref=${dialog} class=${kind} aria-label=${title} onClose=${close}><h2>${title}</h2>${children}</dialog>`;
}

// Dialog that asks the debate a question. The answer cites messages.
function Ask({ debate }) {
  const [open, setOpen] = useState(false);
  const [text, setText] = useState(null);
  const [made, setMade] = useState("");
  const [state, setState] = useState("");
  const ask = async (event) => {
    event.preventDefault();
    setState("Looking for the answer …");
    setMade("");
    setText(null);
    try {
      const question = new FormData(event.currentTarget).get("question");
      setMade((await postStream(at(debate.id, "ask"), { question }, (update) => setText((before) => grown(before, update)))).html);
      setState("");
    } catch (error) {
      setState(error.message);
    }
  };
  const close = () => { setOpen(false); setText(null); setMade(""); setState(""); };
  return html`<button type="button" onClick=${() => setOpen(true)}>Ask</button>
  ${open && html`<${Dialog} title="Ask about this debate" kind="ask" close=${close}>
    <form onSubmit=${ask}><label>Question<input name="question" data-first required dir="auto" autocomplete="off" /></label>
      <p class="actions"><button type="submit" class="main">Ask</button><button type="button" onClick=${(event) => event.currentTarget.closest("dialog").close()}>Close</button>
        <span class="muted small" role="status">${state}</span></p></form>
    ${made ? html`<div onClick=${(event) => event.target.closest("a.cite") && event.currentTarget.closest("dialog").close()}><${ServerHtml} class="prose" html=${made} /></div>`
      : text && html`<${GrowingProse} text=${text} />`}<//>`}`;
}

// Dialog that asks up to which message the debate is copied, and for the name of the copy.
export function ForkDialog({ debate, after, close }) {
  const [ends, setEnds] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    get(at(debate.id, "receipts")).then(({ prompts }) => setEnds(prompts.filter((each, index) => each.step !== prompts[index + 1]?.step).reverse()), (error) => setProblem(error.message));
  }, []);
  const name = (id) => debate.people.find((each) => each.id === id)?.name ?? id;
  const fork = async (event) => {
    event.preventDefault();
    setProblem("");
    try {
      go(`/moot/d/${(await post(at(debate.id, "fork"), Object.fromEntries(new FormData(event.currentTarget)))).id}`);
    } catch (error) {
      setProblem(error.message);
    }
  };
  return html`<${Dialog} title="Fork this debate" kind="fork" close=${close}><form onSubmit=${fork}>
    <p class="muted">The copy starts with the same messages and then goes its own way. This debate stays as it is. A fork costs nothing until it continues.</p>
    ${ends ? html`<label>Copy up to<select name="after" data-first defaultValue=${after}>
        <option value="">the last message</option>
        ${after && !ends.some((each) => each.entry_id === after) && html`<option value=${after} selected>${after}</option>`}
        ${ends.map((each) => html`<option value=${each.entry_id} selected=${each.entry_id === after}>${facts(each.entry_id, name(each.speaker), each.round > 0 && `round ${each.round}`)}</option>`)}</select></label>`
      : !problem && html`<p class="muted">Loading the messages …</p>`}
    <label>Name of the fork<input name="name" maxlength="200" dir="auto" autocomplete="off" placeholder="optional" /></label>
    ${problem && html`<p class="callout" role="alert">${marked(problem)}</p>`}
    <p class="actions"><button type="submit" class="main" disabled=${!ends}>Fork</button><button type="button" onClick=${close}>Cancel</button></p>
  </form><//>`;
}

// Dialog that says what another verdict costs before it is made.
export function JudgeDialog({ debate, act, close }) {
  const [busy, setBusy] = useState(false);
  const { calls, tokens, cost_usd: usd } = debate.judging;
  const judge = async () => {
    setBusy(true);
    await act("judge");
    close();
  };
  return html`<${Dialog} title="Judge again" kind="judge" close=${close}>
    <p>${calls ? `One judging of this debate took ${facts(plural(calls, "call"), `${number(tokens)} tokens`, cost(usd) || "price unknown")}. Another one costs about as much.`
      : "No judge has been called for this debate, so the price is unknown."} The earlier verdict is kept and stays in sight.</p>
    <p class="actions"><button type="button" class="main" data-first disabled=${busy} onClick=${judge}>${busy ? "Judging …" : "Judge again"}</button><button type="button" onClick=${close}>Cancel</button></p>
  <//>`;
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
