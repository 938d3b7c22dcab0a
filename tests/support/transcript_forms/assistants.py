"""Conversations with assistants, and results of agent frameworks."""

# one line of a file may be longer than a line of code

from __future__ import annotations

from tests.support.transcript_forms.case import CHAT, Case, to_json, to_lines

ASSISTANTS = [
    Case(
        "export of Council, with events",
        "transcript.ndjson",
        to_lines(
            {
                "kind": "panel.assembled",
                "experts": [
                    {"slug": "eng", "displayName": "Mira Holt (CTO)", "model": "m"},
                    {"slug": "fin", "displayName": "Tomas Reyes", "model": "m"},
                ],
            },
            {"kind": "round.start", "round": 0},
            {"kind": "turn.start", "expertSlug": "eng", "round": 0, "seq": 0},
            {"kind": "turn.end", "expertSlug": "eng", "turnId": "1", "content": "It stays open."},
            {"kind": "turn.end", "expertSlug": "fin", "turnId": "2", "content": "It is not safe."},
            {"kind": "round.end", "round": 0},
            {"kind": "turn.end", "expertSlug": "system", "turnId": "3", "content": "Stopped."},
            {"kind": "debate.end", "reason": "completed"},
        ),
        [
            ("Mira Holt (CTO)", "It stays open."),
            ("Tomas Reyes", "It is not safe."),
            ("system", "Stopped."),
        ],
    ),
    Case(
        "ChatGPT with hidden, tool and multimodal messages",
        "conversations.json",
        to_json(
            [
                {
                    "title": "Bridge",
                    "mapping": {
                        "r": {"id": "r", "message": None, "parent": None, "children": ["h"]},
                        "h": {
                            "id": "h",
                            "parent": "r",
                            "children": ["u"],
                            "message": {
                                "author": {"role": "user"},
                                "content": {"content_type": "user_editable_context", "user_profile": "x"},
                                "metadata": {"is_visually_hidden_from_conversation": True},
                            },
                        },
                        "u": {
                            "id": "u",
                            "parent": "h",
                            "children": ["c"],
                            "message": {
                                "author": {"role": "user"},
                                "create_time": 1770000000.5,
                                "content": {
                                    "content_type": "multimodal_text",
                                    "parts": [
                                        {"content_type": "image_asset_pointer", "asset_pointer": "x"},
                                        "Is the bridge safe?",
                                    ],
                                },
                            },
                        },
                        "c": {
                            "id": "c",
                            "parent": "u",
                            "children": ["t"],
                            "message": {
                                "author": {"role": "assistant"},
                                "recipient": "python",
                                "content": {"content_type": "code", "text": "x=1"},
                            },
                        },
                        "t": {
                            "id": "t",
                            "parent": "c",
                            "children": ["a"],
                            "message": {
                                "author": {"role": "tool", "name": "python"},
                                "content": {"content_type": "execution_output", "text": "1"},
                            },
                        },
                        "a": {
                            "id": "a",
                            "parent": "t",
                            "children": [],
                            "message": {
                                "author": {"role": "assistant"},
                                "recipient": "all",
                                "content": {"content_type": "text", "parts": ["Not in winter."]},
                            },
                        },
                    },
                    "current_node": "a",
                }
            ]
        ),
        CHAT,
        "1 tool call",
    ),
    Case(
        "Claude export with blocks",
        "conversations.json",
        to_json(
            [
                {
                    "uuid": "u",
                    "name": "Bridge",
                    "chat_messages": [
                        {
                            "uuid": "1",
                            "sender": "human",
                            "text": "Is the bridge safe?",
                            "content": [{"type": "text", "text": "Is the bridge safe?"}],
                            "attachments": [{"file_name": "a"}],
                            "files": [],
                        },
                        {
                            "uuid": "2",
                            "sender": "assistant",
                            "text": "",
                            "content": [
                                {"type": "thinking", "thinking": "hm"},
                                {"type": "text", "text": "Not in winter."},
                            ],
                        },
                    ],
                }
            ]
        ),
        [("human", CHAT[0][1]), CHAT[1]],
        "1 attachment, 1 reasoning",
    ),
    Case(
        "Claude Code session",
        "s.jsonl",
        to_lines(
            {"type": "summary", "summary": "Bridge", "leafUuid": "x"},
            {
                "type": "user",
                "uuid": "1",
                "sessionId": "s",
                "timestamp": "2026-02-03T09:41:00Z",
                "message": {"role": "user", "content": "Is the bridge safe?"},
            },
            {"type": "system", "uuid": "2", "sessionId": "s", "content": "hook"},
            {
                "type": "assistant",
                "uuid": "3",
                "sessionId": "s",
                "message": {"role": "assistant", "content": [{"type": "thinking", "thinking": "hm"}]},
            },
            {
                "type": "assistant",
                "uuid": "4",
                "sessionId": "s",
                "message": {"role": "assistant", "content": [{"type": "text", "text": "Not in winter."}]},
            },
        ),
        CHAT,
        "1 event",
    ),
    Case(
        "ShareGPT",
        "a.json",
        to_json(
            {
                "id": "x",
                "conversations": [
                    {"from": "system", "value": "s"},
                    {"from": "human", "value": "Is the bridge safe?"},
                    {"from": "gpt", "value": "Not in winter."},
                ],
            }
        ),
        [("system", "s"), ("human", CHAT[0][1]), ("gpt", CHAT[1][1])],
    ),
    Case(
        "ShareGPT list",
        "a.json",
        to_json(
            [
                {
                    "id": "x",
                    "conversations": [
                        {"from": "human", "value": "Is the bridge safe?"},
                        {"from": "gpt", "value": "Not in winter."},
                    ],
                }
            ]
        ),
        [("human", CHAT[0][1]), ("gpt", CHAT[1][1])],
    ),
    Case(
        "Responses API",
        "a.json",
        to_json(
            {
                "object": "response",
                "input": "Is the bridge safe?",
                "output": [
                    {"type": "reasoning", "summary": []},
                    {
                        "type": "message",
                        "role": "assistant",
                        "content": [{"type": "output_text", "text": "Not in winter."}],
                    },
                ],
            }
        ),
        CHAT,
        "1 reasoning",
    ),
    Case(
        "Chat Completions response",
        "a.json",
        to_json(
            {
                "request": {"messages": [{"role": "user", "content": "Is the bridge safe?"}]},
                "response": {"choices": [{"message": {"role": "assistant", "content": "Not in winter."}}]},
            }
        ),
        CHAT,
    ),
    Case(
        "Gemini with a thought and a system instruction",
        "a.json",
        to_json(
            {
                "systemInstruction": {"parts": [{"text": "s"}]},
                "contents": [
                    {
                        "role": "user",
                        "parts": [{"text": "Is the bridge safe?"}, {"inlineData": {"data": "x"}}],
                    },
                    {"role": "model", "parts": [{"text": "hm", "thought": True}, {"text": "Not in winter."}]},
                ],
            }
        ),
        [CHAT[0], ("model", CHAT[1][1])],
        "1 system message",
    ),
    Case(
        "AI Studio",
        "a.json",
        to_json(
            {
                "chunkedPrompt": {
                    "chunks": [
                        {"role": "user", "text": "Is the bridge safe?"},
                        {"role": "model", "text": "hm", "isThought": True},
                        {"role": "model", "text": "Not in winter."},
                    ]
                }
            }
        ),
        [CHAT[0], ("model", CHAT[1][1])],
        "1 reasoning",
    ),
    Case(
        "Vercel with a tool",
        "a.json",
        to_json(
            {
                "messages": [
                    {"id": "1", "role": "user", "parts": [{"type": "text", "text": "Is the bridge safe?"}]},
                    {
                        "id": "2",
                        "role": "assistant",
                        "parts": [
                            {"type": "tool-weather", "state": "output-available", "input": {}, "output": {}},
                            {"type": "reasoning", "text": "hm"},
                            {"type": "text", "text": "Not in winter."},
                        ],
                    },
                ]
            }
        ),
        CHAT,
        "1 tool call",
    ),
    Case(
        "ChatGPT page as text",
        "a.txt",
        "You said:\nIs the bridge safe?\n\nChatGPT said:\nNot in winter.\n",
        [("You", CHAT[0][1]), ("ChatGPT", CHAT[1][1])],
    ),
    Case(
        "input of OpenAI's Responses API",
        "a.json",
        to_json(
            [
                {"role": "user", "content": [{"type": "input_text", "text": "Is the bridge safe?"}]},
                {"type": "reasoning", "id": "r", "summary": []},
                {"type": "function_call", "name": "f", "arguments": "{}", "call_id": "1"},
                {"type": "function_call_output", "call_id": "1", "output": "3"},
                {"role": "assistant", "content": [{"type": "output_text", "text": "Not in winter."}]},
            ]
        ),
        CHAT,
        "1 reasoning",
    ),
]
FRAMEWORKS = [
    Case(
        "LangChain dumpd",
        "a.json",
        to_json(
            [
                {
                    "lc": 1,
                    "type": "constructor",
                    "id": ["langchain", "schema", "messages", "SystemMessage"],
                    "kwargs": {"content": "s", "type": "system"},
                },
                {
                    "lc": 1,
                    "type": "constructor",
                    "id": ["langchain", "schema", "messages", "HumanMessage"],
                    "kwargs": {"content": "Is the bridge safe?", "type": "human"},
                },
                {
                    "lc": 1,
                    "type": "constructor",
                    "id": ["langchain", "schema", "messages", "AIMessage"],
                    "kwargs": {
                        "content": [{"type": "text", "text": "Not in winter."}],
                        "type": "ai",
                        "name": "mira",
                    },
                },
            ]
        ),
        [("human", CHAT[0][1]), ("mira", CHAT[1][1])],
        "1 system message",
    ),
    Case(
        "LangGraph checkpoint",
        "a.json",
        to_json(
            {
                "channel_values": {
                    "messages": [
                        {"type": "human", "content": "Is the bridge safe?"},
                        {"type": "ai", "content": "Not in winter.", "name": None},
                    ]
                },
                "ts": "x",
            }
        ),
        [("human", CHAT[0][1]), ("ai", CHAT[1][1])],
    ),
    Case(
        "AutoGen team state",
        "a.json",
        to_json(
            {
                "type": "TeamState",
                "agent_states": {
                    "Mira/1": {"type": "ChatAgentContainerState", "message_buffer": []},
                    "RoundRobinGroupChatManager/1": {
                        "message_thread": [
                            {"source": "user", "content": "Is the bridge safe?", "type": "TextMessage"},
                            {
                                "source": "mira",
                                "content": [{"id": "1", "name": "f", "arguments": "{}"}],
                                "type": "ToolCallRequestEvent",
                            },
                            {"source": "mira", "content": "Not in winter.", "type": "TextMessage"},
                        ]
                    },
                },
            }
        ),
        [("user", CHAT[0][1]), ("mira", CHAT[1][1])],
        "1 event",
    ),
    Case(
        "AG2 result",
        "a.json",
        to_json(
            {
                "chat_id": 1,
                "chat_history": [
                    {"content": "Is the bridge safe?", "role": "assistant", "name": "Mira"},
                    {"content": "Not in winter.", "role": "user", "name": "Tomas"},
                ],
                "summary": "s",
                "cost": {},
            }
        ),
        [("Mira", CHAT[0][1]), ("Tomas", CHAT[1][1])],
    ),
    Case(
        "MALLM",
        "a.json",
        to_json(
            [
                {
                    "exampleId": "1",
                    "instruction": "Decide.",
                    "personas": [],
                    "input": ["Is the bridge safe?"],
                    "globalMemory": [
                        {
                            "message_id": 0,
                            "turn": 1,
                            "agent_id": "a",
                            "persona": "Engineer",
                            "contribution": "draft",
                            "message": "Not in winter.",
                            "agreement": None,
                            "solution": "no",
                        },
                        {
                            "message_id": 1,
                            "turn": 1,
                            "agent_id": "b",
                            "persona": "Mayor",
                            "contribution": "improve",
                            "message": "It must be.",
                            "agreement": False,
                            "solution": "yes",
                        },
                    ],
                    "answer": "no",
                }
            ]
        ),
        [("Engineer", "Not in winter."), ("Mayor", "It must be.")],
    ),
    Case(
        "ChatEval",
        "a.json",
        to_json(
            [
                {
                    "question": "Is the bridge safe?",
                    "response": {"one": "Yes.", "two": "No."},
                    "evaluation": [
                        {"role": "Critic", "evaluation": "Two is right."},
                        {"role": "Public", "evaluation": "One."},
                    ],
                }
            ]
        ),
        [("one", "Yes."), ("two", "No."), ("Critic", "Two is right."), ("Public", "One.")],
    ),
    Case(
        "inspect_ai with a tool",
        "a.json",
        to_json(
            {
                "eval": {},
                "samples": [
                    {
                        "id": "s",
                        "messages": [
                            {"role": "user", "content": "Is the bridge safe?"},
                            {
                                "role": "assistant",
                                "content": [
                                    {"type": "reasoning", "reasoning": "hm"},
                                    {"type": "text", "text": "Not in winter."},
                                ],
                            },
                        ],
                    }
                ],
            }
        ),
        CHAT,
        "1 reasoning",
    ),
]
