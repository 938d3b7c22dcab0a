// Debates side by side.
import { get } from "./api.js";
import { html, Made, useEffect, useState } from "./html.js";

export function Compare() {
  const [made, setMade] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    document.title = "Side by side – Moot";
    const debate = new URLSearchParams(location.search).getAll("debate");
    get("/compare", { debate }).then((answer) => setMade(answer.html), (error) => setProblem(error.message));
  }, []);
  return html`<main id="main" class="list" tabindex="-1">
    ${problem && html`<p class="callout" role="alert">${problem}</p>`}
    ${!made && !problem && html`<p class="muted">Setting them side by side …</p>`}
    ${made && html`<${Made} class="prose compared" html=${made} />`}
  </main>`;
}
