// SPDX-License-Identifier: Apache-2.0
import type { StateReply } from "../../../src/api/messages.ts";
import type { Story } from "../../../src/api/story.ts";
import { rewardText, visible, wholeText } from "../charts/words.ts";
import { Fact } from "../parts.tsx";
import { Reason } from "./attempt.tsx";

/** How a rollout was scored, and how it went with its resources server. All that the server said is text. */
export function Score({ rollout, now }: { rollout: NonNullable<Story["rollout"]>; now: StateReply | null }) {
  const { reward, verified, verifications, verification, verification_cut, verification_failure, cleanup_error, protocol, left_out } =
    rollout;
  const failed = now?.rollout?.failed_attempts ?? 0;
  return (
    <section class="card" aria-labelledby="score">
      <h2 id="score">Reward</h2>
      <dl class="facts">
        <Fact name="Reward">
          <strong class="big">{reward === null ? "none" : rewardText(reward)}</strong>
        </Fact>
        <Fact name="Verified">{verified ? (verifications === 1 ? "once" : `${wholeText(verifications)} times`) : "no"}</Fact>
        {failed > 0 && <Fact name="Failed attempts">{wholeText(failed)}</Fact>}
        <Fact name="Protocol">{protocol}</Fact>
      </dl>
      {verification_failure !== null && (
        <>
          <h3>Why it was not scored</h3>
          <Reason failure={verification_failure} />
        </>
      )}
      {cleanup_error !== null && (
        <>
          <h3>Its session could not be closed</h3>
          <pre tabIndex={0}>{visible(cleanup_error)}</pre>
        </>
      )}
      {verification !== null && verification !== "{}" && (
        <details>
          <summary>What the verifier said</summary>
          <pre tabIndex={0} aria-label="What the verifier said">
            {visible(verification)}
            {left_out.verification_characters > 0
              ? `\n… ${wholeText(left_out.verification_characters)} characters more are in the result`
              : ""}
          </pre>
          {verification_cut && <p class="dim">Large fields were left out; the artifact store has the whole answer.</p>}
        </details>
      )}
    </section>
  );
}
