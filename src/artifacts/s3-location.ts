// SPDX-License-Identifier: Apache-2.0

/** A place for artifacts in a bucket. */
export interface S3Location {
  bucket: string;
  /** Empty, or with a slash at its end. */
  prefix: string;
}

/** `s3://bucket` or `s3://bucket/a/prefix`; null for what is none, e.g. one with credentials in it. */
export function parseS3Location(text: string): S3Location | null {
  const { bucket, prefix = "" } = /^s3:\/\/(?<bucket>[a-z0-9][a-z0-9.-]{1,61}[a-z0-9])(?:\/(?<prefix>.*))?$/su.exec(text)?.groups ?? {};
  if (bucket === undefined) return null;
  const segments = prefix.replace(/\/$/u, "").split("/");
  if (segments.length === 1 && segments[0] === "") return { bucket, prefix: "" };
  if (segments.some((segment) => segment === "" || segment === "." || segment === "..")) return null;
  return { bucket, prefix: `${segments.join("/")}/` };
}
