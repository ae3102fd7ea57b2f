// SPDX-License-Identifier: Apache-2.0
import { pino } from "pino";
import { printable } from "./printable.ts";
import { redactText, redactValue, type LiveSecrets } from "./redact/index.ts";

export type LoggerOptions = {
  /** pino's levels: fatal, error, warn, info, debug, trace, silent. */
  level: string;
  /** Whose secrets never show; looked at anew for each line. */
  secrets: LiveSecrets;
  /** Where lines go; stderr unless given. */
  destination?: NodeJS.WritableStream;
  /** Fields of every line. */
  base?: Record<string, unknown>;
};

/**
 * The one way to make a logger. The destination redacts each finished line, on its decoded strings, so no call can
 * forget to: messages, fields, error messages and stacks alike. Lines stay valid JSON.
 */
export function createLogger(options: LoggerOptions): pino.Logger {
  const { level, secrets, destination = process.stderr, base = {} } = options;
  const redacting = {
    write(line: string): void {
      destination.write(printable(redactLine(secrets, line)));
    },
  };
  return pino(
    {
      level,
      base,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: errorFields, error: errorFields },
    },
    redacting,
  );
}

/** ioredis hangs the failed command on its errors, and that of AUTH holds the password. */
function errorFields(thrown: unknown): unknown {
  const fields: unknown = pino.stdSerializers.err(thrown as Error);
  if (fields !== null && typeof fields === "object" && "command" in fields) delete fields.command;
  return fields;
}

function redactLine(secrets: LiveSecrets, line: string): string {
  const set = secrets.current;
  if (set.isEmpty) return line;
  let entry: unknown;
  try {
    entry = JSON.parse(line);
  } catch {
    return redactText(set, line);
  }
  const redacted = redactValue(set, entry);
  return redacted === entry ? line : `${JSON.stringify(redacted)}\n`;
}
