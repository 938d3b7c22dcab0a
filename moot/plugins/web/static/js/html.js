// The only module that imports the libraries.
import { h, render } from "../vendor/preact.module.js";
import htm from "../vendor/htm.module.js";

export * from "../vendor/hooks.module.js";
export { render };
export const html = htm.bind(h);

// Inserts HTML that the server has rendered and sanitised. Never pass other HTML to it.
export const ServerHtml = ({ html: made, ...rest }) =>
  h("div", { ...rest, dangerouslySetInnerHTML: { __html: made } });

// Text of a debate in which marks of code are rendered, as the server does in single lines.
export const marked = (text) =>
  String(text ?? "").split(/`([^`\n]+)`/).map((part, index) => (index % 2 ? h("code", null, part) : part));
