// Asking the server; what it refuses is thrown in its own words.
const API = "/moot/api";
const LOOK_AGAIN_MS = 2000;

export const at = (debate, rest = "") =>
  `/debates/${encodeURIComponent(debate)}${rest && `/${rest}`}`;

export async function get(path, query = {}) {
  const asked = new URLSearchParams(
    Object.entries(query).flatMap(([key, value]) =>
      [].concat(value).filter((each) => each !== "" && each != null).map((each) => [key, each])),
  );
  return answer(await fetch(`${API}${path}${asked.size ? `?${asked}` : ""}`));
}

export async function post(path, body = {}) {
  const headers = { "Content-Type": "application/json" };
  return answer(await fetch(`${API}${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

async function answer(response) {
  const text = await response.text();
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Error(text.slice(0, 300) || `the server answered ${response.status}`);
  }
  if (!response.ok) throw new Error(body.error ?? `the server answered ${response.status}`);
  return body;
}

export const file = (debate, form) => `${API}${at(debate, `files/${form}`)}`;

// Calls `tell` with everything that happens in a debate, and `lost` with whether the line is dead. A browser has
// six lines to one server for all its windows: none is held by a window that nobody sees, or while nothing runs.
export function follow(debate, tell, lost) {
  let source = null;
  let later;
  const close = () => {
    clearTimeout(later);
    source?.close();
    source = null;
  };
  const look = () => {
    close();
    if (document.hidden) return;
    source = new EventSource(`${API}${at(debate, "events")}`);
    source.onopen = () => lost(false);
    source.onerror = () => lost(true);
    source.onmessage = (event) => {
      const told = JSON.parse(event.data);
      if (!told.rest) return tell(told);
      close();
      later = setTimeout(look, LOOK_AGAIN_MS);
    };
  };
  document.addEventListener("visibilitychange", look);
  look();
  return {
    look,
    hangUp: () => {
      document.removeEventListener("visibilitychange", look);
      close();
    },
  };
}
