// The only module that imports the libraries.
import { h, render } from "../vendor/preact.module.js";
import htm from "../vendor/htm.module.js";

export * from "../vendor/hooks.module.js";
export { render };
export const html = htm.bind(h);

// Inserts HTML that the server has rendered and sanitised. Never pass other HTML to it.
export const ServerHtml = ({ html: made, ...rest }) =>
  h("div", { ...rest, dangerouslySetInnerHTML: { __html: made } });

// Adds an update of a text that a model is still writing: its complete blocks, and the one that still changes.
export const grown = (before, { settled, open }) => ({ settled: settled ? [...(before?.settled ?? []), settled] : before?.settled ?? [], open });

export const GrowingProse = ({ text }) => h("div", { class: "prose words", dir: "auto", "aria-busy": true },
  text.settled.map((made, index) => h(ServerHtml, { key: index, html: made })), h(ServerHtml, { key: "open", html: text.open }));

// Text of a debate in which marks of code are rendered, as the server does in single lines.
export const marked = (text) =>
  String(text ?? "").split(/`([^`\n]+)`/).map((part, index) => (index % 2 ? h("code", null, part) : part));
