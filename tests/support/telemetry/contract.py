"""The events as the contract lists them, and a JSON schema of each made from that list.

Each line: type (version) category H? | fields. `?` marks what may be null, `[]` a list, `{}` an
object; `(a/b)` the values that there are.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

LISTED = """
message.created (1) api | workspace_name, session_name, message_count, total_tokens, source(api/file_upload), last_message_id
file.uploaded (1) api | workspace_name, session_name, peer_name, file_id, filename?, content_type?, file_size_bytes?, message_count, total_tokens
context.retrieved (1) api | workspace_name, context_scope(session/peer), session_name?, peer_name?, target_name?, tokens_requested?, message_count, has_summary, has_representation, has_peer_card, search_query_provided, search_top_k?, search_max_distance?, include_most_frequent?, max_conclusions?, include_summary?, limit_to_session, peer_perspective_provided, total_duration_ms
representation.completed (2) representation | workspace_name, session_name, observed, queue_items_processed, earliest_message_id, latest_message_id, message_count, explicit_conclusion_count, context_preparation_ms, llm_call_ms, total_duration_ms, input_tokens, total_input_tokens, output_tokens, queued_message_count, prompt_message_count, prompt_message_tokens, extra_context_message_count, extra_context_tokens, prompt_scaffold_tokens, exact_dup_in_batch_count, exact_dup_existing_count, semantic_dup_rejected_count, semantic_dup_replaced_count, batch_max_tokens, max_input_tokens, was_flush_enabled, hit_batch_token_cap, hit_input_token_cap, observer_count, failed_observer_count
dialectic.completed (2) dialectic | run_id, workspace_name, peer_name?, session_name?, reasoning_level, total_iterations, prefetched_conclusion_count, tool_calls_count, total_duration_ms, input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens, hit_input_token_cap
dream.run (2) dream | run_id, workspace_name, session_name?, observer, observed, specialists_run[], deduction_success, induction_success, surprisal_enabled, surprisal_conclusion_count, total_iterations, total_input_tokens, total_output_tokens, total_duration_ms, dream_type?, enabled_types_count, trigger_reason?, delay_reason?, documents_since_last_dream_at_schedule?, document_threshold?
dream.specialist (2) dream | run_id, specialist_type, workspace_name, observer, observed, iterations, tool_calls_count, input_tokens, output_tokens, duration_ms, success, created_observation_count, deleted_observation_count, created_counts_by_level{}, deleted_counts_by_level{}, peer_card_updated, search_tool_calls_count, error_class?
agent.iteration (2) agent H | run_id, parent_category, agent_type, workspace_name, observer?, observed?, peer_name?, iteration, tool_calls[], input_tokens, output_tokens, cache_read_tokens, cache_creation_tokens
agent.tool.call.completed (1) agent H | run_id, iteration, tool_call_seq, provider_tool_call_id?, parent_category, agent_type, workspace_name, tool_name, duration_ms, is_error, result_chars, result_chars_before_truncation?, result_tokens_estimate, was_truncated, query_tokens?, top_k?, results_count?, used_embedding?, embedding_query_count
agent.tool.conclusions.created (2) agent | run_id, iteration, parent_category, agent_type, workspace_name, observer, observed, conclusion_count, levels[]
agent.tool.conclusions.deleted (3) agent | run_id, iteration, parent_category, agent_type, workspace_name, observer, observed, conclusion_count, levels[]
agent.tool.peer_card.updated (2) agent | run_id, iteration, parent_category, agent_type, workspace_name, observer, observed, facts_count
agent.tool.summary.created (3) agent | run_id?, iteration?, parent_category, agent_type, workspace_name, session_name, message_id, message_count, message_seq_in_session, summary_type(short/long), input_tokens, output_tokens, previous_summary_tokens, message_tokens, prompt_scaffold_tokens
deletion.completed (1) deletion | workspace_name, deletion_type(workspace/session/observation), resource_id, success, peers_deleted, sessions_deleted, messages_deleted, conclusions_deleted, error_message?
erasure.completed (1) deletion | workspace_name, erasure_id, erasure_type, success, peers_deleted, sessions_deleted, messages_deleted, conclusions_deleted, error_class?
reconciliation.sync_vectors.completed (1) reconciliation | documents_synced, documents_failed, documents_cleaned, message_embeddings_synced, message_embeddings_failed, total_duration_ms
reconciliation.cleanup_stale_items.completed (1) reconciliation | documents_cleaned, queue_items_cleaned, total_duration_ms
llm.call.completed (1) llm H | workspace_name?, call_purpose?, parent_category?, transport, provider_label?, model, effective_max_output_tokens, provider_input_tokens, provider_output_tokens, cache_read_tokens, cache_creation_tokens, finish_reason?, outcome(success/error/cancelled), is_final_attempt, error_class?, attempt, retry_attempts, was_fallback, duration_ms, has_tools, tool_call_count, was_stream, run_id?, iteration?
embedding.call.completed (1) llm H | workspace_name?, call_purpose?, parent_category?, provider, model, input_count, input_tokens_estimate, duration_ms, outcome(success/error/cancelled), is_final_attempt, error_class?, run_id?
llm.call.traced (1) trace | trace_id?, span_id?, parent_span_id?, iteration?, step_seq, attempt, was_fallback, parent_event_id?, call_purpose?, parent_category?, session_id?, transport, provider_label?, model, input_message_refs[], system_prompt_ref?, tool_schema_refs[], tool_choice?, output_content_ref?, output_tool_calls[], output_thinking_ref?, output_signatures[], raw_response_ref?, finish_reason?, provider_input_tokens, provider_output_tokens, cache_read_tokens, cache_creation_tokens, was_truncated
embedding.call.traced (1) trace | trace_id?, span_id?, parent_span_id?, iteration?, step_seq, attempt, session_id?, call_purpose?, parent_category?, provider, model, provider_input_tokens, provider_output_tokens, input_count, was_truncated
trace.content (1) trace | content_hash, role, content, tool_call_id?, tool_calls[], honcho_authored
"""  # noqa: E501
"""As listed, but for `erasure.completed`, which is our own, and for two fields that may be null:
`peer_name` of a chat with a whole workspace, and `tool_choice` of a call without."""

CALL_PURPOSES = {
    *(
        "deriver.representation",
        "dialectic.answer",
        "dream.deduction",
        "dream.induction",
        "dream.card_refresh",
    ),
    *("summary.short", "summary.long"),
}
EMBEDDING_PURPOSES = {
    *(
        "search_memory",
        "search_messages",
        "create_observations",
        "vector_sync",
        "summary",
        "message_create",
        "dialectic_prefetch",
    ),
    *("session_context_search", "preference_extraction", "generic_document_search"),
}

_NUMBER = re.compile(
    r"(_count|_tokens|tokens_.*|_chars|_estimate|_processed|_deleted|_synced|_failed|_cleaned|_iterations|_threshold|_seq|_top_k|top_k|_bytes)$"
    r"|^(iterations?|attempt|retry_attempts|message_seq_in_session|result_chars_before_truncation|max_conclusions|iteration)$"
    r"|^documents_since_|_tool_calls_count$"
)
_TRUTH = re.compile(
    r"^(has|was|is|hit|used|include|limit|honcho)_|_provided$|_enabled$|(^|_)success$|_updated$"
)


@dataclass(frozen=True)
class Listed:
    type: str
    version: int
    category: str
    high_volume: bool
    fields: dict[str, dict[str, Any]]
    """Field → JSON schema."""

    @property
    def data_schema(self) -> dict[str, Any]:
        extra = {
            "timestamp": {"type": "string", "format": "date-time"},
            "honcho_version": {"type": "string", "minLength": 1},
        }
        properties = self.fields | extra
        return {
            "type": "object",
            "properties": properties,
            "required": sorted(properties),
            "additionalProperties": False,
        }

    def envelope_schema(self, namespace: str | None) -> dict[str, Any]:
        source = f"/honcho/{namespace}/{self.category}" if namespace else f"/honcho/{self.category}"
        properties: dict[str, Any] = {
            "specversion": {"const": "1.0"},
            "id": {"type": "string", "pattern": "^evt_[A-Za-z0-9_-]{22}$"},
            "source": {"const": source},
            "type": {"const": self.type},
            "time": {"type": "string", "format": "date-time"},
            "dataschema": {"const": f"https://honcho.dev/schemas/{self.type}/v{self.version}"},
            "data": self.data_schema,
        }
        return {
            "type": "object",
            "properties": properties,
            "required": sorted(properties),
            "additionalProperties": False,
        }


def _schema(word: str) -> tuple[str, dict[str, Any]]:
    name = re.sub(r"[(?\[{].*$", "", word)
    choices = re.search(r"\((.*)\)", word)
    schema: dict[str, Any]
    if "[]" in word:
        schema = (
            {"type": "array"}
            if name == "tool_calls" or name == "output_tool_calls"
            else {"type": "array", "items": {"type": "string"}}
        )
    elif "{}" in word:
        schema = {"type": "object", "additionalProperties": {"type": "integer"}}
    elif choices:
        schema = {"enum": choices[1].split("/")}
    elif name.endswith("_ms") or name == "search_max_distance":
        schema = {"type": "number", "minimum": 0}
    elif _TRUTH.search(name):
        schema = {"type": "boolean"}
    elif _NUMBER.search(name):
        schema = {"type": "integer", "minimum": 0}
    else:
        schema = {"type": "string", "minLength": 0 if name == "content" else 1}
    return name, {"anyOf": [schema, {"type": "null"}]} if "?" in word else schema


def _read(line: str) -> Listed:
    head, _, fields = line.partition("|")
    match = re.fullmatch(r"(\S+) \((\d)\) (\w+)( H)?", head.strip())
    assert match, line
    return Listed(
        match[1],
        int(match[2]),
        match[3],
        bool(match[4]),
        dict(_schema(word.strip()) for word in fields.split(",")),
    )


EVENTS = {listed.type: listed for listed in map(_read, LISTED.strip().splitlines())}
