// Beginning a debate: what is argued, by which rules, by whom, how long and by which model.
import { post } from "./api.js";
import { go } from "./going.js";
import { html, useRef, useState } from "./html.js";

const NOBODY = { name: "", role: "", stance: "" };

export function NewDebate({ setup }) {
  const dialog = useRef();
  const [line, setLine] = useState([]);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);

  const change = (index, key, value) =>
    setLine(line.map((each, place) => (place === index ? { ...each, [key]: value } : each)));
  const begin = async (event) => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    setBusy(true);
    setProblem("");
    try {
      const made = await post("/debates", {
        question: form.get("question"),
        protocol: form.get("protocol"),
        turns: Number(form.get("turns")) || 0,
        model: form.get("model").trim(),
        debaters: line.filter((each) => each.name.trim()),
      });
      go(`/moot/d/${made.id}`);
    } catch (error) {
      setProblem(error.message);
      setBusy(false);
    }
  };

  return html`<button type="button" class="main" onClick=${() => dialog.current.showModal()}>New debate</button>
  <dialog ref=${dialog} aria-labelledby="new-title" class="new">
    <form onSubmit=${begin}>
      <h2 id="new-title">New debate</h2>
      <label>What is argued<textarea name="question" rows="4" required dir="auto" placeholder="A question or a motion, with the facts that bear on it"></textarea></label>
      <div class="fields">
        <label>Protocol<select name="protocol">
          ${Object.keys(setup.protocols).map((name) => html`<option selected=${name === setup.protocol}>${name}</option>`)}
        </select></label>
        <label>Turns<input name="turns" type="number" min="1" max="1000" placeholder="usual" /></label>
        <label>Model<input name="model" list="models" placeholder=${setup.model} /></label>
        <datalist id="models">${setup.models.map((name) => html`<option value=${name} />`)}</datalist>
      </div>
      <fieldset><legend>Debaters</legend>
        ${!line.length && html`<p class="muted small">The protocol’s usual ones.</p>`}
        ${line.map((each, index) => html`<div class="fields" key=${index}>
          ${["name", "role", "stance"].map((key) => html`<label>${key[0].toUpperCase() + key.slice(1)}
            <input value=${each[key]} required=${key === "name"} dir="auto" onInput=${(event) => change(index, key, event.currentTarget.value)} /></label>`)}
          <button type="button" aria-label=${`Leave out debater ${index + 1}`} onClick=${() => setLine(line.filter((_, place) => place !== index))}>×</button>
        </div>`)}
        <button type="button" onClick=${() => setLine([...line, NOBODY])}>Add a debater</button>
      </fieldset>
      ${problem && html`<p class="callout" role="alert">${problem}</p>`}
      <p class="actions"><button type="submit" class="main" disabled=${busy}>${busy ? "Beginning …" : "Begin"}</button>
        <button type="button" onClick=${() => dialog.current.close()}>Cancel</button></p>
    </form>
  </dialog>`;
}
