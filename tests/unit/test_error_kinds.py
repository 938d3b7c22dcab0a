"""Error bodies in the styles of many servers, and what Moot reads from them. The wording is Moot's own."""

from __future__ import annotations

import json
from typing import Any

import pytest

from moot.models.error_body import read_error
from moot.models.error_kinds import kind_of, overflow_of, refused_parameter, stated_wait


def openai(message: str, **rest: object) -> dict[str, Any]:
    return {"error": {"message": message, **rest}}


OVERFLOWS: dict[str, tuple[int, object, dict[str, int]]] = {
    "openai": (
        400,
        openai(
            "This model's maximum context length is 16,384 tokens, but your messages came to 20,010 tokens.",
            code="context_length_exceeded",
        ),
        {"limit": 16384},
    ),
    "openai-responses": (400, openai("The input exceeds this model's context window. Shorten it."), {}),
    "openai-configured": (
        400,
        openai(
            "Input tokens exceed the configured limit of 272000 tokens. Your messages resulted in "
            "301200 tokens."
        ),
        {"limit": 272000, "prompt": 301200},
    ),
    "openai-429": (
        429,
        openai(
            "Request too large for gpt-x in organization org-9 on tokens per min (TPM): Limit 10000, "
            "Requested 15213.",
            code="rate_limit_exceeded",
            type="tokens",
        ),
        {"limit": 10000, "total": 15213},
    ),
    "azure": (
        400,
        openai(
            "This model's maximum context length is 8192 tokens, however you requested 9100 tokens "
            "(8100 in your prompt; 1000 for the completion)."
        ),
        {"limit": 8192, "total": 9100, "prompt": 8100},
    ),
    "deepseek": (
        400,
        openai(
            "The maximum context length of this model is 65536 tokens. You asked for a total of 70000 tokens "
            "(66000 in the messages, 4000 in the completion)."
        ),
        {"limit": 65536, "total": 70000, "prompt": 66000},
    ),
    "vllm-detail": (
        400,
        {"detail": "This model's maximum context length is 4096 tokens. Your request has 5000 input tokens."},
        {"limit": 4096, "prompt": 5000},
    ),
    "vllm-object": (
        400,
        {
            "object": "error",
            "message": "The prompt (total length 5120) exceeds the maximum model length of 4096.",
            "type": "BadRequestError",
            "code": 400,
        },
        {"limit": 4096},
    ),
    "vllm-at-least": (
        400,
        openai(
            "You requested 900 output tokens and your prompt contains at least 3500 input tokens, at "
            "least 4400 "
            "tokens in total, but the maximum context length is 4096 tokens."
        ),
        {"limit": 4096, "prompt": 3500},
    ),
    "llama.cpp": (
        400,
        openai(
            "the request exceeds the available context size. try a larger one",
            type="exceed_context_size_error",
            n_prompt_tokens=14429,
            n_ctx=8192,
        ),
        {"limit": 8192, "prompt": 14429},
    ),
    "llama.cpp-500": (
        500,
        openai(
            "the request exceeds the available context size. enable context shift",
            type="server_error",
            code=500,
        ),
        {},
    ),
    "llama-cpp-python": (
        400,
        openai("Requested tokens (2285) exceed context window of 2048"),
        {"limit": 2048, "total": 2285},
    ),
    "ollama-string": (400, {"error": "input length exceeds maximum context length"}, {}),
    "ollama-excess": (400, openai("prompt is longer than the context length by 812 tokens"), {"excess": 812}),
    "lmstudio": (
        400,
        {
            "error": "It is loaded with context length of only 4096 tokens; the first 6012 tokens stay: "
            "the context overflows"
        },
        {"limit": 4096, "prompt": 6012},
    ),
    "lmstudio-bare": (400, "The number of tokens to keep is greater than the context length.", {}),
    "tgi": (
        422,
        {
            "error": "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 8193. Given: "
            "8100 `inputs` tokens and 512 `max_new_tokens`",
            "error_type": "validation",
        },
        {"limit": 8193, "prompt": 8100},
    ),
    "tgi-inputs": (
        422,
        {"error": "Input validation error: `inputs` must have less than 1024 tokens. Given: 1300"},
        {"limit": 1024, "prompt": 1300},
    ),
    "groq": (
        413,
        openai(
            "Request too large for model `m` on tokens per minute (TPM): Limit 6000, Requested 7211",
            code="rate_limit_exceeded",
        ),
        {"limit": 6000, "total": 7211},
    ),
    "groq-reduce": (400, openai("Please reduce the length of the messages or completion."), {}),
    "bedrock": (400, {"message": "The input is too long for the requested model."}, {}),
    "bedrock-boto": (
        400,
        {
            "Error": {"Message": "Input is too long for requested model.", "Code": "ValidationException"},
            "ResponseMetadata": {"HTTPStatusCode": 400, "RetryAttempts": 0},
        },
        {},
    ),
    "gemini": (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "status": "INVALID_ARGUMENT",
                    "message": "The input token count (1196265) exceeds the maximum number of tokens "
                    "allowed (1048575).",
                }
            }
        ],
        {"limit": 1048575, "prompt": 1196265},
    ),
    "anthropic": (
        400,
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "prompt is too long: 212000 tokens > 200000 maximum",
            },
        },
        {"limit": 200000, "prompt": 212000},
    ),
    "anthropic-sum": (
        400,
        openai(
            "input length and `max_tokens` exceed context limit: 188240 + 21333 > 200000, decrease "
            "one of them"
        ),
        {"limit": 200000, "prompt": 188240, "total": 209573},
    ),
    "moonshot": (
        400,
        openai("Your request exceeded model token limit: 32768 (requested: 40021)"),
        {"limit": 32768, "total": 40021},
    ),
    "dashscope": (
        400,
        {"code": "InvalidParameter", "message": "Range of input length should be [1, 30720]"},
        {"limit": 30720},
    ),
    "zhipu": (400, openai("Prompt exceeds max length", code="1261"), {}),
    "zhipu-chinese": (400, openai("输入超长", code="1261"), {}),
    "minimax": (400, openai("invalid params, context window exceeds limit", type="bad_request_error"), {}),
    "cohere": (
        400,
        {
            "message": "too many tokens: the total exceeds the size limit by 1200 tokens. The limit for this "
            "model is 4081 tokens."
        },
        {"limit": 4081, "excess": 1200},
    ),
    "mistral": (
        400,
        {
            "object": "error",
            "message": "Prompt contains 40021 tokens and 0 draft tokens, too large for model "
            "with 32768 maximum context length",
            "code": 3051,
        },
        {"limit": 32768, "prompt": 40021},
    ),
    "xai": (
        400,
        {
            "code": "Client specified an invalid argument",
            "error": "This model's maximum prompt length is 131072 but the request contains 140010 tokens.",
        },
        {"limit": 131072, "prompt": 140010},
    ),
    "together": (
        422,
        openai(
            "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4097. Given: 4090 "
            "`inputs` tokens and 200 `max_new_tokens`"
        ),
        {"limit": 4097, "prompt": 4090},
    ),
    "fireworks": (
        400,
        openai("The prompt is too long: 140000, model maximum context length: 131072"),
        {"limit": 131072, "prompt": 140000},
    ),
    "openrouter-nested": (
        400,
        openai(
            "Provider returned error",
            code=400,
            metadata={
                "raw": json.dumps(
                    openai(
                        "This endpoint's maximum context length is 8192 tokens. You requested about 9100 "
                        "tokens (8100 of text input, 1000 in the output)."
                    )
                ),
                "provider_name": "Some",
            },
        ),
        {"limit": 8192, "total": 9100, "prompt": 8100},
    ),
    "litellm": (
        400,
        openai(
            "litellm.ContextWindowExceededError: OpenAIException - maximum context length is 4096 tokens",
            code="400",
        ),
        {"limit": 4096},
    ),
    "sglang": (
        400,
        {
            "object": "error",
            "message": "The input (5121 tokens) is longer than the model's context length (4096 tokens).",
        },
        {"limit": 4096, "prompt": 5121},
    ),
    "copilot": (
        400,
        openai(
            "prompt token count of 150000 exceeds the limit of 128000",
            code="model_max_prompt_tokens_exceeded",
        ),
        {"limit": 128000, "prompt": 150000},
    ),
    "gpt4all": (400, "ERROR: The prompt size exceeds the context window size and cannot be processed.", {}),
    "body-413": (413, "<html><head><title>413 Payload Too Large</title></head></html>", {}),
    "vllm-negative": (400, openai("max_tokens must be at least 1, got -7584."), {"excess": 7584}),
    "vllm-indices": (
        400,
        openai("The sequence is longer than this model's maximum sequence length (16769 > 16384)"),
        {"limit": 16384, "prompt": 16769},
    ),
    "trt-llm": (
        400,
        openai("Prompt length (9000) + max_tokens (500) exceeds max_seq_len (8192)"),
        {"limit": 8192, "prompt": 9000, "reply": 500},
    ),
    "lmdeploy": (
        400,
        openai("The input exceeds the session length: 9000 > 8192"),
        {"limit": 8192, "prompt": 9000},
    ),
    "mistral.rs": (400, {"message": "The prompt sequence is greater than 8192"}, {"limit": 8192}),
    "siliconflow": (
        400,
        {"code": 20015, "message": "prompt_tokens (9000) must be less than max_seq_len (8192)."},
        {"limit": 8192, "prompt": 9000},
    ),
    "github": (
        413,
        openai("Request body too large. Max size: 8000 tokens.", code="tokens_limit_reached"),
        {},
    ),
    "code-only": (400, openai("Bad request", code="prompt_too_long"), {}),
    "lmstudio-event": (
        200,
        openai("Cannot truncate prompt with n_keep (5000) >= n_ctx (4096)"),
        {"limit": 4096},
    ),
    "hunyuan": (400, openai("输入长度超过模型最大上下文长度"), {}),
    "exl": (400, {"detail": "Prompt length 9001 is greater than max_seq_len 8192"}, {"prompt": 9001}),
}


@pytest.mark.parametrize("name", OVERFLOWS)
def test_context_overflow_is_recognized_with_its_numbers(name: str) -> None:
    status, sent, numbers = OVERFLOWS[name]
    body = read_error(sent)
    overflow = overflow_of(body)
    assert kind_of(body, status) == "overflow"
    assert {key: getattr(overflow, key) for key in numbers} == numbers


FILTERS: dict[str, tuple[int, object]] = {
    "deepseek": (400, openai("Content Exists Risk", code="invalid_request_error")),
    "dashscope": (
        400,
        {"code": "DataInspectionFailed", "message": "Input data may contain inappropriate content."},
    ),
    "qwen-nested": (
        400,
        openai("<400> InternalError.Algo.DataInspectionFailed: the text may contain inappropriate content"),
    ),
    "openai-prompt": (
        400,
        openai(
            "Invalid prompt: your prompt was flagged as possibly violating our usage policy.",
            code="invalid_prompt",
        ),
    ),
    "openai-limited": (
        400,
        openai(
            "Invalid prompt: we've limited access to this content for safety reasons.", code="invalid_prompt"
        ),
    ),
    "azure": (
        400,
        openai("The response was filtered by the content management policy.", code="content_filter"),
    ),
    "openrouter": (403, openai("Input was flagged for moderation", code=403, metadata={"reasons": ["hate"]})),
    "xai": (
        403,
        {
            "code": "The caller does not have permission to execute the specified operation",
            "error": "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO",
        },
    ),
    "zhipu": (400, openai("系统检测到输入或生成内容可能包含不安全或敏感内容", code="1301")),
    "gemini": (400, openai("The prompt was blocked because of safety settings", status="INVALID_ARGUMENT")),
    "gemini-reason": (
        200,
        {"promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}, "error": "PROHIBITED_CONTENT"},
    ),
    "moonshot": (
        400,
        openai("The request was rejected because it was considered high risk", type="content_filter"),
    ),
    "bedrock": (400, {"message": "The output was blocked by a guardrail policy"}),
    "volcengine": (400, openai("The output may be sensitive.", code="OutputTextSensitiveContentDetected")),
    "minimax": (200, {"base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}}),
    "hunyuan": (400, openai("内容违规，请修改后重试", code="OperationDenied")),
    "cloudflare": (403, {"errors": [{"code": 2016, "message": "Prompt blocked due to the configuration"}]}),
    "code-only": (400, openai("Bad request", code="content_safety_violation")),
    "together": (422, openai("The request was refused by the safety model: unsafe content")),
}


@pytest.mark.parametrize("name", FILTERS)
def test_blocked_content_is_recognized(name: str) -> None:
    status, sent = FILTERS[name]
    assert kind_of(read_error(sent), status) == "filter"


def fastapi(field: str, message: str = "Extra inputs are not permitted") -> dict[str, Any]:
    return {"detail": [{"type": "extra_forbidden", "loc": ["body", field], "msg": message, "input": 3}]}


PARAMETERS: dict[str, tuple[int, object, dict[str, object]]] = {
    "openai-temperature": (
        400,
        openai(
            "Unsupported value: 'temperature' does not support 0.2 with this model.",
            param="temperature",
            code="unsupported_value",
        ),
        {"temperature": False},
    ),
    "relay-temperature": (
        400,
        {
            "error": {
                "cause": json.dumps(
                    openai("Unsupported parameter: 'temperature' is not supported.", param="temperature")
                ),
                "code": 400,
                "message": "模型服务调用失败",
            }
        },
        {"temperature": False},
    ),
    "anthropic-temperature": (
        400,
        openai("`temperature` is deprecated for this model."),
        {"temperature": False},
    ),
    "mistral-temperature": (
        422,
        {
            "object": "error",
            "message": {
                "detail": [
                    {
                        "type": "less_than_equal",
                        "loc": ["body", "temperature"],
                        "msg": "Input should be less than or equal to 1",
                    }
                ]
            },
        },
        {"temperature": False},
    ),
    "mistral-proxied": (
        422,
        {
            "object": "error",
            "message": json.dumps(fastapi("seed")),
            "type": "internal_error_proxy",
            "code": "1000",
        },
        {"seed": False},
    ),
    "fastapi-seed": (422, fastapi("seed"), {"seed": False}),
    "fireworks": (
        400,
        openai("Extra inputs are not permitted, field: 'stream_options'"),
        {"stream_usage": False},
    ),
    "openai-old": (400, openai("Unrecognized request argument supplied: seed"), {"seed": False}),
    "gemini": (
        400,
        [
            {
                "error": {
                    "code": 400,
                    "message": 'Invalid JSON payload received. Unknown name "seed": Cannot find field.',
                }
            }
        ],
        {"seed": False},
    ),
    "o-series": (
        400,
        openai("Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."),
        {"max_tokens_field": "max_completion_tokens"},
    ),
    "older-server": (422, fastapi("max_completion_tokens"), {"max_tokens_field": "max_tokens"}),
    "stream": (
        400,
        openai("Your organization must be verified to stream this model.", param="stream"),
        {"stream": False},
    ),
    "stream-words": (400, openai("This model does not support streaming"), {"stream": False}),
    "groq-name": (
        400,
        openai(
            "'messages.2' : for 'role:user' the following must be satisfied[('messages.2' : property 'name' "
            "is unsupported)]"
        ),
        {"names": False},
    ),
    "gemma-system": (500, openai("System role not supported"), {"system_role": False}),
    "ministral-system": (
        500,
        openai("Only user, assistant and tool roles are supported, got system."),
        {"system_role": False},
    ),
    "google-developer": (
        400,
        openai("Developer instruction is not enabled for models/gemma-x"),
        {"system_role": False},
    ),
    "jinja": (
        500,
        openai(
            "Error: Jinja Exception: After the optional system message, conversation roles must alternate "
            "user and assistant roles except for tool calls."
        ),
        {"merge_roles": True},
    ),
    "perplexity": (
        400,
        openai("After the system message, user and assistant messages should be alternating."),
        {"merge_roles": True},
    ),
    "max-reply": (
        400,
        openai("max_tokens must be less than or equal to `4096`, the maximum value for this model"),
        {"max_reply": 4096},
    ),
    "bedrock-reply": (
        400,
        {"message": "The maximum tokens you requested exceeds the model limit of 4096."},
        {"max_reply": 4096},
    ),
    "deepseek-reply": (
        400,
        openai("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]"),
        {"max_reply": 8192},
    ),
    "vllm-reply": (
        400,
        openai(
            "'max_tokens' or 'max_completion_tokens' is too large: 8000. The context has 4096 tokens and "
            "your request has 300 input tokens (8000 > 4096 - 300)."
        ),
        {"max_reply": 3796},
    ),
    "anthropic-range": (400, openai("temperature: range: 0..1"), {"temperature": False}),
    "anthropic-seed": (400, openai("seed: Extra inputs are not permitted"), {"seed": False}),
    "anthropic-reply": (
        400,
        openai("max_tokens: 100000 > 8192, the maximum number of output tokens"),
        {"max_reply": 8192},
    ),
    "moonshot-temperature": (400, openai("invalid temperature: only 1 is allowed"), {"temperature": False}),
    "zhipu-temperature": (400, openai("temperature 参数非法", code="1210"), {"temperature": False}),
    "fastapi-role": (
        422,
        {
            "detail": [
                {"loc": ["body", "messages", 0, "role"], "msg": "Input should be 'user' or 'assistant'"}
            ]
        },
        {"system_role": False},
    ),
    "deepseek-roles": (
        400,
        openai("The model does not support successive user or assistant messages"),
        {"merge_roles": True},
    ),
    "mistral-roles": (400, openai("Unexpected role 'user' after role 'user'"), {"merge_roles": True}),
    "vertex-reply": (
        400,
        openai(
            "maxOutputTokens is 70000 but the range is from 1 (inclusive) to 65537 (exclusive). Try again."
        ),
        {"max_reply": 65537},
    ),
    "openrouter-afford": (
        402,
        openai(
            "This request requires fewer max_tokens. You requested up to 1000 tokens, but can only "
            "afford 300."
        ),
        {"max_reply": 300},
    ),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_refused_parameter_is_recognized(name: str) -> None:
    status, sent, settings = PARAMETERS[name]
    body = read_error(sent)
    change = refused_parameter(body)
    assert kind_of(body, status) == "parameter"
    assert change is not None
    assert change.settings == settings


OTHERS: dict[str, tuple[int, object, str]] = {
    "llama.cpp-loading": (503, openai("Loading model", type="unavailable_error", code=503), "loading"),
    "hf-loading": (
        503,
        {"error": "Model some/model is currently loading", "estimated_time": 20.0},
        "loading",
    ),
    "lmstudio-loading": (400, {"error": "No models loaded. Please load a model first."}, "other"),
    "overloaded": (
        529,
        {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
        "later",
    ),
    "openai-quota": (
        429,
        openai(
            "You exceeded your current quota, check your plan and billing details.", code="insufficient_quota"
        ),
        "quota",
    ),
    "openrouter-credits": (402, openai("Insufficient credits. Add more.", code=402), "quota"),
    "deepseek-balance": (402, openai("Insufficient Balance", code="invalid_request_error"), "quota"),
    "daily": (429, openai("Rate limit exceeded: free-models-per-day. Add credits.", code=429), "quota"),
    "rate": (
        429,
        openai(
            "Rate limit reached on tokens per min (TPM): Limit 30000, Used 29000, Requested 2000. "
            "Try again in 3s."
        ),
        "later",
    ),
    "gemini-rate": (
        429,
        openai("You exceeded your current quota. Please retry in 3.2s.", status="RESOURCE_EXHAUSTED"),
        "later",
    ),
    "missing-model": (404, openai("The model 'x' does not exist", code="model_not_found"), "model"),
    "ollama-model": (404, {"error": "model 'x' not found, try pulling it first"}, "model"),
    "key": (401, openai("Incorrect API key provided: sk-x", code="invalid_api_key"), "key"),
    "router-later": (424, openai("Upstream dependency failed"), "later"),
    "plain": (500, "Internal Server Error", "later"),
    "images": (
        400,
        openai("At most 4 images are allowed in the input; the message exceeds this limit"),
        "other",
    ),
    "schema": (400, openai("This model does not support response_format"), "other"),
    "schema-now": (400, openai("This response_format type is unavailable now"), "other"),
    "lmstudio-unloaded": (400, {"error": "Model is unloaded."}, "later"),
    "lmstudio-crash": (400, {"error": "The model has crashed. (Exit code: 18446744072635812000)"}, "later"),
    "xai-credits": (
        429,
        {"error": "Your team has used all available credits or reached its spending limit."},
        "quota",
    ),
    "router-model": (400, openai("some/model is not a valid model ID", code=400), "model"),
    "retired": (400, openai("The model `x` has been decommissioned", code="model_decommissioned"), "model"),
    "google-model": (404, openai("models/x is not found for this API version"), "model"),
}


@pytest.mark.parametrize("name", OTHERS)
def test_other_errors_are_told_apart(name: str) -> None:
    status, sent, kind = OTHERS[name]
    assert kind_of(read_error(sent), status) == kind


@pytest.mark.parametrize(
    ("sent", "seconds"),
    [
        (openai("Rate limit reached. Please try again in 12s."), 12.0),
        (openai("Please try again in 1m26.4s."), 86.4),
        (openai("Please retry in 820ms."), 0.82),
        (openai("Quota exceeded", details=[{"@type": "google.rpc.RetryInfo", "retryDelay": "34s"}]), 34.0),
        (openai("Too many requests, retry after 20 seconds"), 20.0),
        ({"error": "Model x is currently loading", "estimated_time": 20.5}, 20.5),
        ({"detail": "Too fast", "retry_after": 7}, 7.0),
        (openai("You sent 30 requests in 60 s"), None),
        (openai("slow down"), None),
    ],
    ids=range(9),
)
def test_wait_in_an_error_body_is_read(sent: object, seconds: float | None) -> None:
    assert stated_wait(read_error(sent)) == seconds


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        (openai("no"), "no"),
        ({"error": "no"}, "no"),
        ({"detail": "no"}, "no"),
        ({"detail": [{"msg": "no"}, {"msg": "never"}]}, "no: never"),
        (["no"], "no"),
        ("no", "no"),
        (json.dumps(json.dumps(openai("no"))), "no"),
        ({"message": json.dumps(openai("no"))}, "no"),
        ({"errors": [{"title": "Bad", "detail": "no"}]}, "no: Bad"),
        ('400 {"error": {"message": "no"}}', "400: no"),
        (None, ""),
        (7, ""),
    ],
    ids=range(12),
)
def test_every_form_of_an_error_body_is_read(sent: object, text: str) -> None:
    assert read_error(sent).text == text


@pytest.mark.parametrize(
    ("message", "limit", "prompt"),
    [
        ("Input validation error: 9000 tokens given, model takes 8192", 8192, 9000),
        ("This model's context window is 8k tokens; you sent 12345", 8000, 12345),
    ],
)
def test_overflow_is_recognized_by_numbers_of_other_forms(message: str, limit: int, prompt: int) -> None:
    body = read_error(openai(message))
    assert kind_of(body, 400) == "overflow"
    assert (overflow_of(body).limit, overflow_of(body).prompt) == (limit, prompt)


def test_key_that_is_not_valid_is_no_other_error() -> None:
    assert kind_of(read_error(openai("API key not valid. Please pass a valid API key.")), 400) == "key"
