// The application: chooses the view for an address and loads the settings of the page.
import { get } from "./api.js";
import { Compare } from "./compare.js";
import { Debate } from "./debate.js";
import { Evaluation, Evaluations } from "./evals.js";
import { go } from "./navigation.js";
import { html, marked, render, useEffect, useState } from "./html.js";
import { List } from "./list.js";

function App() {
  const [place, setPlace] = useState(location.pathname + location.search);
  const [setup, setSetup] = useState(null);
  const [problem, setProblem] = useState("");

  useEffect(() => {
    const moved = () => setPlace(location.pathname + location.search);
    const clicked = (event) => {
      const link = event.target.closest?.("a");
      const plain = !event.defaultPrevented && !event.ctrlKey && !event.metaKey && !event.shiftKey && event.button === 0;
      if (!link || !plain || link.origin !== location.origin || link.hasAttribute("download")) return;
      if (link.pathname === location.pathname && link.hash) return;
      if (!/^\/moot(\/(d\/|compare|evals)|$)/.test(link.pathname)) return;
      event.preventDefault();
      go(link.pathname + link.search + link.hash);
    };
    addEventListener("popstate", moved);
    addEventListener("moved", moved);
    document.addEventListener("click", clicked);
    get("/setup").then(setSetup, (error) => setProblem(error.message));
    return () => {
      removeEventListener("popstate", moved);
      removeEventListener("moved", moved);
      document.removeEventListener("click", clicked);
    };
  }, []);

  const path = place.split("?")[0];
  const debate = /^\/moot\/d\/([^/]+)/.exec(path)?.[1];
  if (problem) return html`<${Top} /><main id="main" class="list"><p class="callout" role="alert">${marked(problem)}</p></main>`;
  if (debate) return html`<${Debate} key=${debate} id=${decodeURIComponent(debate)} setup=${setup} />`;
  if (path === "/moot/compare") return html`<${Top} /><${Compare} key=${place} />`;
  const evaluation = /^\/moot\/evals\/([^/]+)/.exec(path)?.[1];
  if (evaluation) return html`<${Top} /><${Evaluation} key=${evaluation} name=${decodeURIComponent(evaluation)} />`;
  if (path === "/moot/evals") return html`<${Top} /><${Evaluations} />`;
  return html`<${Top} /><${List} setup=${setup} />`;
}

const Top = () => html`<header class="top"><a class="brand" href="/moot">Moot</a><a href="/moot/evals">Evaluations</a></header>`;

const app = document.getElementById("app");
app.replaceChildren();
render(html`<${App} />`, app);
