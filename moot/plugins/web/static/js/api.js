// Requests to the server. An error response is thrown with the server's message.
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

// Posts a request whose response is a line of JSON for each part. `tell` gets the updates of the text, the last line is returned.
export async function postStream(path, body, tell) {
  const headers = { "Content-Type": "application/json" };
  const response = await fetch(`${API}${path}`, { method: "POST", headers, body: JSON.stringify({ ...body, stream: true }) });
  if (!response.ok) return answer(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let last = {}; ;) {
    const { done, value = "" } = await reader.read();
    if (done) return last;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      last = JSON.parse(line);
      if (last.error) throw new Error(last.error);
      if (last.open != null) tell(last);
    }
  }
}

export async function upload(path, file) {
  const headers = { "Content-Type": "application/octet-stream" };
  return answer(await fetch(`${API}${path}`, { method: "POST", headers, body: file }));
}

async function answer(response) {
  const text = await response.text();
  let body;
  try {
    body = JSON.parse(text);
  } catch {
    throw new Error(text.slice(0, 300) || `The server responded with status ${response.status}.`);
  }
  if (!response.ok) throw Object.assign(new Error(body.error ?? `The server responded with status ${response.status}.`), { status: response.status });
  return body;
}

export const file = (debate, form) => `${API}${at(debate, `files/${form}`)}`;

// Calls `tell` with each message about a debate, and `lost` with true if the connection is lost. A browser allows
// six connections to a server for all its windows, so a hidden window or a debate that does not run has none.
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
      const message = JSON.parse(event.data);
      if (!message.idle) return tell(message);
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
