// SPDX-License-Identifier: Apache-2.0
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { z } from "zod";

/** The header by which a session shows its token to a resources server. */
export const SESSION_TOKEN_HEADER = "X-NeMo-Gym-Session-Token";

const payloadSchema = z.object({ sid: z.string(), tools: z.array(z.string()).nullable() });

export interface SessionTokens {
  /** A token for one session; `tools` lists what it may call, null = everything. It does not expire. */
  mint(sessionId: string, tools?: readonly string[] | null): string;
  /** Whose token it is; null when it was not minted here. */
  verify(token: string): { sessionId: string; tools: string[] | null } | null;
}

/** Signed tokens: nothing is stored, so they outlive a restart that keeps the secret. */
export function sessionTokens(secret: string | Buffer = randomBytes(32)): SessionTokens {
  const signature = (payload: string): Buffer => createHmac("sha256", secret).update(payload).digest();
  return {
    mint(sessionId, tools = null) {
      const payload = Buffer.from(JSON.stringify({ sid: sessionId, tools })).toString("base64url");
      return `${payload}.${signature(payload).toString("base64url")}`;
    },
    verify(token) {
      const [payload, given, more] = token.split(".");
      if (payload === undefined || given === undefined || more !== undefined) return null;
      const expected = signature(payload);
      const actual = Buffer.from(given, "base64url");
      if (actual.length !== expected.length || !timingSafeEqual(actual, expected)) return null;
      const { sid, tools } = payloadSchema.parse(JSON.parse(Buffer.from(payload, "base64url").toString("utf8")));
      return { sessionId: sid, tools };
    },
  };
}
