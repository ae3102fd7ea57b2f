// SPDX-License-Identifier: Apache-2.0
import type { Thread } from "./result.ts";

/** What people call a thread of a session: "root", its path ("/root/sub_one"), or its id where nothing else is told. Text of others. Pure. */
export function threadLabel(threads: readonly Pick<Thread, "thread_id" | "parent_thread_id" | "agent_path">[], threadId: string): string {
  const thread = threads.find(({ thread_id }) => thread_id === threadId);
  if (thread === undefined) return threadId;
  return thread.agent_path ?? (thread.parent_thread_id === null ? "root" : threadId);
}
