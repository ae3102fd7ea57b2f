// SPDX-License-Identifier: Apache-2.0
import { S3Client, S3ServiceException, type S3ClientConfig } from "@aws-sdk/client-s3";
import { messageOf, RollcallError } from "../errors.ts";
import { buildSecretSet, redactText } from "../redact/index.ts";
import type { S3Settings } from "./open-store.ts";

/** A server that says nothing this long is asked again, and in the end given up; otherwise a commit could wait for ever. */
const CONNECT_MS = 10_000;
const SILENCE_MS = 60_000;
const TRIES = 5;

/** Credentials come from the SDK's own chain: variables, the shared files, the machine's or container's role. */
export function makeS3Client({ endpoint, region, force_path_style }: S3Settings): S3Client {
  const config: S3ClientConfig = {
    maxAttempts: TRIES,
    requestHandler: { connectionTimeout: CONNECT_MS, socketTimeout: SILENCE_MS },
    // Other servers seldom have a name for each bucket, and do not care about regions.
    ...(endpoint === undefined ? {} : { endpoint, region: "us-east-1", forcePathStyle: true }),
    ...(region === undefined ? {} : { region }),
    ...(force_path_style === undefined ? {} : { forcePathStyle: force_path_style }),
  };
  return new S3Client(config);
}

/** The HTTP status with which the server refused; null when it was something else that failed. */
export function statusOf(error: unknown): number | null {
  return error instanceof S3ServiceException ? (error.$metadata.httpStatusCode ?? null) : null;
}

/** The server's name for its refusal, e.g. "NoSuchKey"; null when it was something else that failed. */
export function refusalOf(error: unknown): string | null {
  return error instanceof S3ServiceException ? error.name : null;
}

const HINTS: Readonly<Record<string, string>> = {
  AccessDenied: "docs/storage.md lists the permissions it needs",
  CredentialsProviderError: "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, AWS_PROFILE, or give this machine a role",
  InvalidAccessKeyId: "the server does not know the key that the environment names",
  NoSuchBucket: "create the bucket first",
  SignatureDoesNotMatch: "the secret key is not the access key's",
};

/**
 * What failed, for people. The SDK's own error is not kept as the cause: it holds the request's headers, and some servers
 * send the access key along.
 */
export async function s3Error(client: S3Client, code: string, task: string, error: unknown): Promise<RollcallError> {
  if (error instanceof RollcallError) return error;
  const name = error instanceof Error ? error.name : "";
  const status = statusOf(error);
  const said = messageOf(error) === "UnknownError" ? "" : messageOf(error);
  const parts = [name === "Error" ? "" : name, status === null ? "" : `HTTP ${status}`, said, HINTS[name] ?? ""];
  const text = `cannot ${task}: ${parts.filter((part) => part !== "").join("; ")}`;
  return new RollcallError(code, await withoutCredentials(client, text));
}

async function withoutCredentials(client: S3Client, text: string): Promise<string> {
  const found = await client.config.credentials().catch(() => null);
  if (found === null) return text;
  const { accessKeyId, secretAccessKey, sessionToken = "" } = found;
  const values = { access_key: accessKeyId, secret_key: secretAccessKey, session_token: sessionToken };
  return redactText(buildSecretSet(Object.entries(values).map(([name, value]) => ({ name, value }))), text);
}
