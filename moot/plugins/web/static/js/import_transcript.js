// Dialog that imports a transcript. It shows who speaks and the first messages before anything is stored.
import { upload } from "./api.js";
import { go } from "./navigation.js";
import { html, marked, useRef, useState } from "./html.js";
import { plural } from "./words.js";

export function ImportTranscript({ opener }) {
  const dialog = useRef();
  const [file, setFile] = useState(null);
  const [preview, setPreview] = useState(null);
  const [conversation, setConversation] = useState("");
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);

  const send = async (chosen, query, then) => {
    setBusy(true);
    setProblem("");
    try {
      then(await upload(`/imports/${encodeURIComponent(chosen.name)}?${new URLSearchParams(query)}`, chosen));
    } catch (error) {
      setProblem(error.message);
    }
    setBusy(false);
  };
  const choose = (chosen, number = "") => {
    setFile(chosen);
    setConversation(number);
    if (!number) setPreview(null);
    if (chosen) send(chosen, { conversation: number }, (answer) => setPreview((before) => ({ conversations: before?.conversations, ...answer })));
  };
  const store = (event) => {
    event.preventDefault();
    const topic = new FormData(event.currentTarget).get("topic") ?? "";
    send(file, { conversation, topic, store: "1" }, (made) => go(`/moot/d/${made.id}`));
  };

  opener.current = () => dialog.current.showModal();
  return html`<dialog ref=${dialog} aria-labelledby="import-title" class="new import">
    <form onSubmit=${store}>
      <h2 id="import-title">Import a transcript</h2>
      <label>File<input type="file" name="file" required onChange=${(event) => choose(event.currentTarget.files[0] ?? null)} /></label>
      ${preview?.conversations && html`<label>Conversation<select name="conversation" value=${conversation} onChange=${(event) => choose(file, event.currentTarget.value)}>
        <option value="">Choose one</option>${preview.conversations.map((title, index) => html`<option value=${index + 1}>${title}</option>`)}</select></label>`}
      ${preview?.speakers && html`<section aria-label="As read">
        <p dir="auto">${preview.speakers.map((each) => `${each.name}: ${plural(each.messages, "message")}`).join(", ")}</p>
        <ul class="first">${preview.first_messages.map((each) => html`<li dir="auto"><b>${each.speaker}</b> ${each.content}</li>`)}</ul>
        ${preview.notes.map((note) => html`<p class="muted small">${note}</p>`)}
        ${preview.is_document || html`<label>Question<input name="topic" required dir="auto" value=${preview.topic} key=${preview.topic} /></label>`}
      </section>`}
      ${problem && html`<p class="callout" role="alert">${marked(problem)}</p>`}
      <p class="actions"><button type="submit" class="main" disabled=${busy || !preview?.speakers}>${busy ? "Working …" : "Import"}</button>
        <button type="button" onClick=${() => dialog.current.close()}>Cancel</button></p>
    </form>
  </dialog>`;
}
