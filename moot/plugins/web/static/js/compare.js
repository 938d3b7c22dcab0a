// Comparison of debates.
import { get } from "./api.js";
import { html, marked, ServerHtml, useEffect, useState } from "./html.js";

export function Compare() {
  const [made, setMade] = useState(null);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    document.title = "Comparison – Moot";
    const debate = new URLSearchParams(location.search).getAll("debate");
    get("/compare", { debate }).then((answer) => setMade(answer.html), (error) => setProblem(error.message));
  }, []);
  return html`<main id="main" class="list" tabindex="-1">
    ${problem && html`<p class="callout" role="alert">${marked(problem)}</p>`}
    ${!made && !problem && html`<p class="muted">Comparing the debates …</p>`}
    ${made && html`<${ServerHtml} class="prose compared" html=${made} />`}
  </main>`;
}
