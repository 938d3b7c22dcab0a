// One place where the libraries come in: everything else imports from here.
import { h, render } from "../vendor/preact.module.js";
import htm from "../vendor/htm.module.js";

export * from "../vendor/hooks.module.js";
export { render };
export const html = htm.bind(h);

// HTML that the server made and sanitised, as the reports have it; nothing else is ever given to this.
export const Made = ({ html: made, ...rest }) =>
  h("div", { ...rest, dangerouslySetInnerHTML: { __html: made } });
