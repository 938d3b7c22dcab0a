// A menu of actions. Escape and a click elsewhere close it.
import { html, useEffect, useRef, useState } from "./html.js";

export function Menu({ title, label, kind = "", children }) {
  const menu = useRef();
  const [open, setOpen] = useState(false);
  useEffect(() => {
    if (!open) return;
    const outside = (event) => { if (!menu.current?.contains(event.target)) menu.current.open = false; };
    document.addEventListener("click", outside);
    return () => document.removeEventListener("click", outside);
  }, [open]);
  const escape = (event) => {
    if (event.key !== "Escape" || !menu.current.open) return;
    event.stopPropagation();
    menu.current.open = false;
    menu.current.firstElementChild.focus();
  };
  return html`<details class=${`menu ${kind}`} ref=${menu} onToggle=${(event) => setOpen(event.currentTarget.open)} onKeyDown=${escape}>
    <summary class="button" aria-label=${label}>${title}</summary><ul>${children}</ul></details>`;
}
