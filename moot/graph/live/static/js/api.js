// Asking the server; what it refuses is thrown in its own words.
const API = "/moot/api";

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

// Calls `tell` with everything that happens in a debate, and `lost` with whether the line is dead; the
// browser connects again by itself. Returns what hangs up.
export function follow(debate, tell, lost) {
  const source = new EventSource(`${API}${at(debate, "events")}`);
  source.onmessage = (event) => tell(JSON.parse(event.data));
  source.onopen = () => lost(false);
  source.onerror = () => lost(true);
  return () => source.close();
}
