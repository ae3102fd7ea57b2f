// SPDX-License-Identifier: Apache-2.0
import type { CallToolResult, Tool } from "@modelcontextprotocol/sdk/types.js";
import { z } from "zod";
import { pageAt, searchPages } from "./office-pages.ts";

/** Some models send the list as text: JSON, or the bare name of the one file. */
const pathsSchema = z.preprocess((value) => (typeof value === "string" ? pathsIn(value) : value), z.array(z.string()));

const argumentSchemas = {
  finish: z.object({ reason: z.string(), paths: pathsSchema }),
  abandon_task_finish: z.object({ reason: z.string() }),
  web_search: z.object({ query: z.string() }),
  fetch_web_page: z.object({ url: z.string() }),
};

const text = (description: string) => ({ type: "string", description });

export const OFFICE_TOOLS: readonly Tool[] = [
  tool("finish", "Hand the work in. Call it once, when every deliverable is written.", {
    reason: text("What was done, in one or two sentences."),
    paths: { type: "array", items: { type: "string" }, description: "Absolute paths of the deliverables." },
  }),
  tool("abandon_task_finish", "Give the task up, when it cannot be done.", { reason: text("Why it cannot be done.") }),
  tool("web_search", "Search the web.", { query: text("What to look for.") }),
  tool("fetch_web_page", "Read one web page as text.", { url: text("Its address.") }),
];

/** Runs a tool; whatever is wrong with the call is a tool error that the model can read. Pure. */
export function runOfficeTool(name: string, args: Record<string, unknown>): CallToolResult {
  if (!isOfficeTool(name)) return toolError(`There is no tool ${name}. Available tools: ${Object.keys(argumentSchemas).join(", ")}`);
  const parsed = argumentSchemas[name].safeParse(args);
  if (!parsed.success) return toolError(`Wrong arguments for ${name}: ${z.prettifyError(parsed.error)}`);
  switch (name) {
    case "finish":
    case "abandon_task_finish":
      return said(argumentSchemas.abandon_task_finish.parse(parsed.data).reason);
    case "web_search":
      return said(searchResults(argumentSchemas.web_search.parse(parsed.data).query));
    case "fetch_web_page": {
      const { url } = argumentSchemas.fetch_web_page.parse(parsed.data);
      const page = pageAt(url);
      return page === undefined ? toolError(`HTTP 404 from ${url}: there is no such page`) : said(`${page.title}\n\n${page.text}`);
    }
    default:
      return name satisfies never;
  }
}

function isOfficeTool(name: string): name is keyof typeof argumentSchemas {
  return Object.hasOwn(argumentSchemas, name);
}

function pathsIn(value: string): unknown {
  try {
    return JSON.parse(value);
  } catch {
    return [value];
  }
}

function searchResults(query: string): string {
  const pages = searchPages(query);
  if (pages.length === 0) return `No results for ${query}.`;
  return pages.map((page, index) => `${index + 1}. ${page.title}\n   ${page.url}\n   ${page.text.slice(0, 120)}`).join("\n");
}

function tool(name: string, description: string, properties: Record<string, object>): Tool {
  return { name, description, inputSchema: { type: "object", properties, required: Object.keys(properties) } };
}

function said(text: string): CallToolResult {
  return { content: [{ type: "text", text }] };
}

function toolError(text: string): CallToolResult {
  return { ...said(text), isError: true };
}
