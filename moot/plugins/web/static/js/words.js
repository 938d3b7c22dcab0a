// Formatting of numbers, times and statuses.
export const NARROW = matchMedia("(max-width: 64rem)"); // one column
const NUMBERS = new Intl.NumberFormat("en");

export const number = (value) => NUMBERS.format(value ?? 0);
export const cost = (usd) => (usd ? `US$ ${usd.toFixed(4)}` : "");
export const price = (usd) => (usd == null ? "price unknown" : cost(usd) || "free");
export const plural = (count, one, more = `${one}s`) => `${number(count)} ${count === 1 ? one : more}`;
export const facts = (...parts) => parts.filter(Boolean).join(" · ");

export function ago(at) {
  const seconds = (Date.now() - Date.parse(at)) / 1000;
  if (!(seconds >= 0)) return "";
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return new Date(at).toLocaleDateString("en", { year: "numeric", month: "short", day: "numeric" });
}

// Returns the CSS class of a status label.
export const tone = (status) =>
  `pill status-${{ done: "good", failed: "bad" }[status] ?? "open"}`;

export const spoken = (id) => Number(/^m(\d{6,})$/.exec(id)?.[1] ?? -1);

const announced = document.getElementById("announced");

// Makes a screen reader announce a text after its current one.
export function announce(text) {
  const line = document.createElement("p");
  line.textContent = text;
  announced.append(line);
  while (announced.childElementCount > 20) announced.firstChild.remove();
}
