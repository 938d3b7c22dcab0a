// Keyboard shortcuts. They are inactive while the user types in a field.
import { useEffect } from "./html.js";

const WRITING = "input, textarea, select, [contenteditable]";

// Calls the function for a key. Escape also works in a field and leaves it.
export function useKeys(keys) {
  useEffect(() => {
    const pressed = (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
      const writing = event.target.closest?.(WRITING);
      if (writing && event.key === "Escape") return writing.blur();
      if (writing || !keys[event.key]) return;
      if (event.key === "Enter" && event.target.closest?.("a, button, summary")) return;
      event.preventDefault();
      keys[event.key]();
    };
    addEventListener("keydown", pressed);
    return () => removeEventListener("keydown", pressed);
  });
}
