// Dialog for a new debate: question, protocol, debaters with roles and models, documents, and the price.
import { get, post, upload } from "./api.js";
import { go } from "./navigation.js";
import { html, marked, useEffect, useRef, useState } from "./html.js";
import { cost, plural } from "./words.js";

const NOBODY = { name: "", role: "", stance: "", model: "" };
const FIELDS = [["name", ""], ["role", "roles"], ["model", "models"], ["stance", ""]];
const PRICE_AFTER_MS = 700; // after the last change
const megabytes = (bytes) => (bytes / 1e6).toFixed(1);

// `opener` gets the function that opens the dialog.
export function NewDebate({ setup, opener }) {
  const dialog = useRef();
  const written = useRef();
  const [line, setLine] = useState([]);
  const [models, setModels] = useState(setup.models);
  const [documents, setDocuments] = useState([]);
  const [protocol, setProtocol] = useState(setup.protocol);
  const [changes, setChanges] = useState(0);
  const [price, setPrice] = useState("");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  const [model, setModel] = useState(setup.model);
  const [proposal, setProposal] = useState("");

  opener.current = () => {
    dialog.current.showModal();
    if (setup.operator) get("/models").then((answer) => setModels([...new Set([...setup.models, ...answer.models])]), (error) => setProblem(error.message));
  };
  const change = (index, key, value) =>
    setLine(line.map((each, place) => (place === index ? { ...each, [key]: value } : each)));
  const read = async (event) => {
    const field = event.currentTarget;
    let read = [];
    await attempt(async () => {
      const large = [...field.files].find((each) => each.size > setup.max_upload_bytes);
      if (large) throw new Error(`${large.name} is too large: a document may have ${megabytes(setup.max_upload_bytes)} MB.`);
      const texts = [];
      for (const each of field.files) texts.push(await upload(`/documents/${encodeURIComponent(each.name)}`, each));
      const size = texts.reduce((sum, each) => sum + new Blob([each.content]).size, 0);
      if (size > setup.max_document_bytes) throw new Error(`The documents have ${megabytes(size)} MB of text in all: choose fewer, at most ${megabytes(setup.max_document_bytes)} MB.`);
      read = texts;
    });
    setDocuments(read);
    if (!read.length) field.value = "";
  };
  const body = () => {
    const form = new FormData(written.current);
    const model = form.get("model").trim();
    const endpoint = Object.fromEntries(["base_url", "api_key_env"].map((key) => [key, (form.get(key) ?? "").trim()]).filter(([, value]) => value));
    return {
      question: form.get("question"),
      protocol: form.get("protocol"),
      turns: Number(form.get("turns")) || 0,
      model,
      debaters: line.filter((each) => each.name.trim()),
      ...(documents.length ? { documents } : {}),
      ...(model && Object.keys(endpoint).length ? { models: { [model]: endpoint } } : {}),
    };
  };
  const attempt = async (work) => {
    setBusy(true);
    setProblem("");
    try {
      await work();
    } catch (error) {
      setProblem(error.message);
    }
    setBusy(false);
  };
  // Shows the price of what the form describes, once the user pauses.
  useEffect(() => {
    let over = false;
    const show = (text) => over || setPrice(text);
    const pause = setTimeout(async () => {
      if (!changes || !written.current.checkValidity()) return;
      try {
        const plan = await post("/plan", body());
        const usd = plan.unpriced ? `price unknown for ${plan.unpriced.join(", ")}`
          : plan.usd_at_most ? `about ${cost(plan.usd)}, at most ${cost(plan.usd_at_most)}` : "free";
        show(`About ${plural(plan.calls, "call")}: ${usd}.`);
      } catch (error) {
        show(error.message);
      }
    }, PRICE_AFTER_MS);
    show("");
    return () => { over = true; clearTimeout(pause); };
  }, [changes, line, documents]);
  // The question's model proposes the debaters, which costs one call.
  const propose = () => written.current.elements.question.reportValidity() && attempt(async () => {
    const { debaters, cost_usd: usd } = await post("/propose", body());
    setLine(debaters.map((each) => ({ ...NOBODY, ...each })));
    setProposal(`${model} proposed these two debaters${usd ? ` for ${cost(usd)}` : ""}. Change them if you like, then start the debate.`);
  });
  const proposes = setup.operator && model !== "offline" && setup.proposing.includes(protocol) && !line.length;
  const begin = (event) => {
    event.preventDefault();
    if (proposes) propose();
    else attempt(async () => go(`/moot/d/${(await post("/debates", body())).id}`));
  };

  return html`<dialog ref=${dialog} aria-labelledby="new-title" class="new">
    <form ref=${written} onSubmit=${begin} onInput=${() => setChanges((before) => before + 1)}>
      <h2 id="new-title">New debate</h2>
      <div class="settings">
      <label>Question<textarea name="question" rows="4" required dir="auto" placeholder="A question or a claim, with the facts that matter"></textarea></label>
      <div class="fields">
        <label>Protocol<select name="protocol" value=${protocol} onChange=${(event) => setProtocol(event.currentTarget.value)}>
          ${Object.keys(setup.protocols).map((name) => html`<option>${name}</option>`)}
        </select></label>
        <label>Turns<input name="turns" type="number" min="1" max="1000" placeholder="default" /></label>
        <label>Model<input name="model" list="models" placeholder=${setup.model} onInput=${(event) => setModel(event.currentTarget.value.trim() || setup.model)} /></label>
        <datalist id="models"><option value="human">a person at this page</option>${models.map((name) => html`<option value=${name} />`)}</datalist>
        <datalist id="roles">${setup.roles.map((name) => html`<option value=${name} />`)}</datalist>
      </div>
      <p class="muted small">${setup.protocols[protocol]}</p>
      ${setup.operator && html`<details><summary>Another endpoint for this model</summary><div class="fields">
        <label>Address<input name="base_url" type="url" placeholder="https://…/v1" /></label>
        <label>Variable of its key<input name="api_key_env" pattern="[A-Za-z_][A-Za-z0-9_]*" placeholder="MISTRAL_API_KEY" /></label></div></details>`}
      <fieldset><legend>Debaters</legend>
        ${!line.length && html`<p class="muted small">${proposes ? "Start first proposes two debaters, for one call." : "The default debaters of the protocol."}</p>`}
        ${line.map((each, index) => html`<div class="fields debater" key=${index}>
          ${FIELDS.map(([key, list]) => html`<label>${key[0].toUpperCase() + key.slice(1)}
            <${key === "stance" ? "textarea" : "input"} value=${each[key]} rows="2" list=${list} required=${key === "name"} dir="auto" placeholder=${key === "model" ? "as above" : ""}
              onInput=${(event) => change(index, key, event.currentTarget.value)} /></label>`)}
          <button type="button" aria-label=${`Remove debater ${index + 1}`} onClick=${() => setLine(line.filter((_, place) => place !== index))}>×</button>
        </div>`)}
        <p class="actions"><button type="button" onClick=${() => setLine([...line, NOBODY])}>Add a debater</button>
          ${setup.operator && html`<button type="button" disabled=${busy} onClick=${propose}>${line.length ? "Propose two others" : "Propose two debaters"}</button>`}</p>
        ${line.length > 0 && proposal && html`<p class="muted small" role="status">${proposal}</p>`}
      </fieldset>
      <label>Documents for all debaters<input type="file" multiple accept=${[...setup.converted, ".txt", ".md", ".csv", ".json", ".yaml", "text/*"].join(",")} onChange=${read} /></label>
      ${documents.length > 0 && html`<p class="muted small documents">${documents.map((each) => `${each.name}: ${plural(each.content.split(/\s+/).filter(Boolean).length, "word")}`).join(", ")}</p>`}
      ${!model && html`<p class="callout" role="note">No model is set. Run <code>moot setup</code> on the server's machine and start the server again, or choose a model above.</p>`}
      </div>
      <div class="ready">${problem && html`<p class="callout" role="alert">${marked(problem)}</p>`}
      <p class="actions">${model && html`<button type="submit" class="main" disabled=${busy}>${busy ? "Working …" : "Start"}</button>`}
        <button type="button" onClick=${() => dialog.current.close()}>Cancel</button>
        <span class="muted small" role="status">${price}</span></p></div>
    </form>
  </dialog>`;
}
