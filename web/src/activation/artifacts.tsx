// SPDX-License-Identifier: Apache-2.0
import { useState } from "preact/hooks";
import type { Story } from "../../../src/api/story.ts";
import { ask, Refused, segment } from "../ask.ts";
import { bytesText, visible, wholeText } from "../charts/words.ts";
import { Name } from "../parts.tsx";

type Artifact = Story["artifacts"][number];

/** So much of a text is shown; all of it can be downloaded. */
const MOST_BYTES = 100_000;
const TEXT = /\.(txt|md|log|json|jsonl|toml|csv)$/i;
const KINDS: Record<Artifact["kind"], string> = { output: "deliverable", submission: "submitted", evidence: "evidence" };
const ORDER: readonly Artifact["kind"][] = ["submission", "output", "evidence"];

/** The files of an activation: texts are shown, all can be downloaded. */
export function Artifacts({ story: { activation_id, artifacts, artifacts_of, left_out } }: { story: Story }) {
  if (artifacts.length === 0 || artifacts_of === null) return null;
  const base = `/v1/artifacts/${segment(activation_id)}/${artifacts_of}`;
  const ordered = artifacts.toSorted((a, b) => ORDER.indexOf(a.kind) - ORDER.indexOf(b.kind));
  return (
    <section class="card" aria-labelledby="artifacts">
      <h2 id="artifacts">
        Files <span class="dim">{wholeText(artifacts.length + left_out.artifacts)}</span>
      </h2>
      <ul class="artifacts">
        {ordered.map((artifact) => (
          <File key={artifact.path} artifact={artifact} href={`${base}/${artifact.path.split("/").map(segment).join("/")}`} />
        ))}
      </ul>
      {left_out.artifacts > 0 && <p class="dim">{wholeText(left_out.artifacts)} more are in the result.</p>}
    </section>
  );
}

function File({ artifact: { path, kind, bytes, source, quarantined }, href }: { artifact: Artifact; href: string }) {
  const [text, setText] = useState<string | null>(null);
  const show = async (): Promise<void> => {
    if (text !== null) return setText(null);
    try {
      const answer = await ask(href, { headers: { accept: "*/*", ...(bytes > MOST_BYTES ? { range: `bytes=0-${MOST_BYTES - 1}` } : {}) } });
      setText((await answer.text()) + (bytes > MOST_BYTES ? `\n… ${bytesText(bytes - MOST_BYTES)} more: download it` : ""));
    } catch (thrown) {
      setText(thrown instanceof Refused ? thrown.message : "The server cannot be reached.");
    }
    return undefined;
  };
  return (
    <li>
      <div class="file">
        <a href={href} download>
          <Name>{path}</Name>
        </a>
        <span class="dim">
          {KINDS[kind]}, {bytesText(bytes)}
          {source !== null && source !== path && (
            <>
              , from <Name>{source}</Name>
            </>
          )}
        </span>
        {quarantined && <strong class="is-failed">a secret was found in it: admins only</strong>}
        {TEXT.test(path) && (
          <button type="button" class="quiet" aria-expanded={text !== null} onClick={() => void show()}>
            {text === null ? "Show" : "Hide"}
            <span class="hidden"> {path}</span>
          </button>
        )}
      </div>
      {text !== null && (
        <pre tabIndex={0} aria-label={path}>
          {text === "" ? "(empty)" : visible(text)}
        </pre>
      )}
    </li>
  );
}
