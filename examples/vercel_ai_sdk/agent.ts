// An agent of the Vercel AI SDK with two tools that keep its memory in memservice.
//
//     npx tsx agent.ts USER
//
// Each line of the standard input is what the user says; the agent's answers are printed.

import { createInterface } from "node:readline";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, stepCountIs, tool } from "ai";
import { z } from "zod";

const memoryUrl = process.env.MEMSERVICE_URL ?? "http://127.0.0.1:8000";
const memoryKey = process.env.MEMSERVICE_API_KEY; // only with authentication
const workspace = process.env.MEMSERVICE_WORKSPACE ?? "vercel";
const user = process.argv[2];

async function memory(path: string, body: unknown): Promise<any> {
  const headers: Record<string, string> = { "Content-Type": "application/json" };
  if (memoryKey) headers.Authorization = `Bearer ${memoryKey}`;
  const answer = await fetch(`${memoryUrl}/v3/workspaces${path}`, {
    method: "POST",
    headers,
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(`memservice answered ${answer.status}: ${await answer.text()}`);
  return answer.json();
}

const tools = {
  remember: tool({
    description: "Store one fact about the user, as a sentence, for all later conversations.",
    inputSchema: z.object({ text: z.string() }),
    execute: async ({ text }) => {
      const conclusion = { observer_id: user, observed_id: user, content: text };
      await memory(`/${workspace}/conclusions`, { conclusions: [conclusion] });
      return "stored";
    },
  }),
  recall: tool({
    description: "Find facts about the user that were stored before.",
    inputSchema: z.object({ query: z.string() }),
    execute: async ({ query }) => {
      const filters = { observer: user, observed: user };
      const found = await memory(`/${workspace}/conclusions/query`, { query, top_k: 5, filters });
      return found.map((conclusion: { content: string }) => conclusion.content).join("\n");
    },
  }),
};

const provider = createOpenAICompatible({
  name: "local",
  baseURL: process.env.OPENAI_BASE_URL ?? "http://127.0.0.1:11434/v1",
  apiKey: process.env.OPENAI_API_KEY ?? "none",
});

await memory("", { id: workspace });
await memory(`/${workspace}/peers`, { id: user });
for await (const line of createInterface({ input: process.stdin })) {
  if (!line.trim()) continue;
  const { text } = await generateText({
    model: provider(process.env.MODEL ?? "llama3.2"),
    system:
      "You are a helpful agent. Before you answer a question about the user, call `recall`. " +
      "When the user says something that will matter later, call `remember`.",
    prompt: line.trim(),
    tools,
    stopWhen: stepCountIs(5),
  });
  console.log(text);
}
