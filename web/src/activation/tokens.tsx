// SPDX-License-Identifier: Apache-2.0
import type { Usage } from "../../../src/contract/response.ts";
import { usageText } from "../../../src/contract/usage.ts";
import { wholeText } from "../charts/words.ts";
import { Fact } from "../parts.tsx";

/** What was taken of the model, by kind; nothing where nothing was. `isUnknown`: something may have been, of which nothing is known. */
export function Tokens({ usage, isUnknown }: { usage: Usage | null; isUnknown: boolean }) {
  if (usage === null) return isUnknown ? <Fact name="Tokens">not known</Fact> : null;
  return (
    <Fact name="Tokens">
      {wholeText(usage.total_tokens)} <span class="dim">{usageText(usage, wholeText)}</span>
      {isUnknown && <span class="dim">; not all are known</span>}
    </Fact>
  );
}
