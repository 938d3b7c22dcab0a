// Graph of a debate with the current node highlighted. Forward edges are above the nodes, backward edges below.
import { html } from "./html.js";

const STEP = 80;
const MIDDLE = 78;
const HALF = { width: 35, height: 13 };

export function Graph({ setup, debate }) {
  const nodes = setup.nodes;
  const lit = debate.over ? [] : debate.nodes;
  const x = (name) => nodes.indexOf(name) * STEP + 38;
  const edges = setup.edges.filter((edge) => edge.every((name) => nodes.includes(name)));
  const now = lit.length ? `${debate.running ? "Running" : "Next"}: ${lit.join(", ")}` : "Finished";
  return html`<figure class="graph">
    <figcaption class="small muted">${now}</figcaption>
    <svg viewBox=${`0 0 ${nodes.length * STEP + 6} 156`} role="img" aria-label=${`The debate’s graph. ${now}.`}>
      ${edges.map(([from, to]) => html`<path class=${lit.includes(to) ? "edge to-lit" : "edge"} d=${arc(x(from), x(to))} />`)}
      ${nodes.map((name) => html`<g class=${lit.includes(name) ? (debate.running ? "node lit" : "node next") : "node"}>
        <rect x=${x(name) - HALF.width} y=${MIDDLE - HALF.height} width=${HALF.width * 2} height=${HALF.height * 2} rx="8" />
        <text x=${x(name)} y=${MIDDLE + 3.5}>${name}</text>
      </g>`)}
    </svg>
  </figure>`;
}

function arc(from, to) {
  const far = Math.abs(to - from);
  if (to - from === STEP) return `M${from + HALF.width} ${MIDDLE}H${to - HALF.width}`;
  const side = to > from ? -1 : 1;
  const edge = MIDDLE + side * HALF.height;
  const reach = edge + side * Math.min(62, 14 + far / 9);
  return `M${from} ${edge}C${from} ${reach} ${to} ${reach} ${to} ${edge}`;
}
