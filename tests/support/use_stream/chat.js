// A chat on `useStream` that asks, edits its question, regenerates an answer and switches branches.
// Usage: node chat.js URL. Prints the messages after each of these steps as one JSON document.
import { JSDOM } from "jsdom";

const { window } = new JSDOM("<!doctype html><div id=root></div>", { url: "http://localhost/" });
Object.assign(globalThis, { window, document: window.document, navigator: window.navigator });
const { createElement, useState } = (await import("react")).default;
const { createRoot } = await import("react-dom/client");
const { useStream } = await import("@langchain/langgraph-sdk/react");

const apiUrl = process.argv[2];
const context = { turns: 2, openings: "sequential", judge: { swap: false } };
let chat;

function Chat() {
  const [threadId, onThreadId] = useState(null);
  chat = useStream({ apiUrl, assistantId: "debate", threadId, onThreadId, fetchStateHistory: { limit: 100 } });
  return null;
}

async function until(holds) {
  const deadline = Date.now() + 120_000;
  while (!holds()) {
    if (Date.now() > deadline) throw new Error(`waited too long for ${holds}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

const metadata = (at) => chat.getMessagesMetadata(chat.messages[at], at);
const last = () => chat.messages.at(-1)?.id ?? "";

// Waits until the run has ended and the history with the result has been fetched.
async function submitted(input, options) {
  const before = last();
  chat.submit(input, options);
  await until(() => !chat.isLoading && last().startsWith("judge-") && last() !== before && metadata(0)?.firstSeenState
    && metadata(chat.messages.length - 1)?.firstSeenState);
  return shown();
}

const shown = () =>
  chat.messages.map((message, at) => ({
    id: message.id,
    name: message.name,
    text: message.content,
    branches: metadata(at)?.branchOptions?.length ?? 1,
  }));

createRoot(window.document.getElementById("root")).render(createElement(Chat));
await until(() => chat);
const human = (id, content) => ({ messages: [{ id, type: "human", content }] });
const asked = await submitted(human("ui-1", "Should cities ban cars?"), { context });
const cards = chat.values.ui.map((card) => ({ name: card.name, beside: card.metadata.message_id, props: card.props }));
const beforeQuestion = metadata(0).firstSeenState.parent_checkpoint;
const edited = await submitted(human("ui-2", "Should cities ban trucks?"), { checkpoint: beforeQuestion, context });
const beforeAnswer = metadata(1).firstSeenState.parent_checkpoint;
const regenerated = await submitted(undefined, { checkpoint: beforeAnswer });
chat.setBranch(metadata(0).branchOptions[0]);
await until(() => chat.messages[0].id === "ui-1");
process.stdout.write(JSON.stringify({ cards, asked, edited, regenerated, switched: shown() }), () => process.exit(0));
