// SPDX-License-Identifier: Apache-2.0

const JSON_SHORT: Record<string, string> = { n: "\n", t: "\t", r: "\r", b: "\b", f: "\f", "0": "\0" };

/** Undoes one level of JSON or Rust escapes, as a reader of a log would; written apart from the code under test. */
function unescaped(text: string): string {
  return text.replace(/\\(?:u\{([0-9a-fA-F]{1,6})\}|u([0-9a-fA-F]{4})|(.))/gs, (_, braced?: string, four?: string, one?: string) => {
    const hex = braced ?? four;
    if (hex === undefined) return JSON_SHORT[one!] ?? one!;
    const point = parseInt(hex, 16);
    return point > 0x10ffff
      ? ""
      : String.fromCharCode(...(point > 0xffff ? [0xd800 + ((point - 0x10000) >> 10), 0xdc00 + (point & 0x3ff)] : [point]));
  });
}

function percentDecoded(text: string): string {
  return text.replace(/(?:%[0-9a-fA-F]{2})+/g, (run) => Buffer.from(run.replaceAll("%", ""), "hex").toString());
}

/** All readings of a text that a curious person would try. */
export function readings(text: string): string[] {
  const once = unescaped(text);
  const twice = unescaped(once);
  return [text, once, twice, unescaped(twice), percentDecoded(text), percentDecoded(once), percentDecoded(percentDecoded(text))];
}

/** The pieces of `length` characters of `secret` (and of its base64) that stand in some reading of `text`. */
export function leakedPieces(text: string, secret: string, length = 8): string[] {
  const seen = readings(text);
  const pieces = (of: string): string[] => {
    const points = Array.from(of);
    return Array.from({ length: Math.max(0, points.length - length + 1) }, (_, at) => points.slice(at, at + length).join(""));
  };
  const base64 = Buffer.from(secret).toString("base64").replace(/=+$/, "");
  return [...new Set([...pieces(secret), ...pieces(base64)])].filter((piece) => seen.some((reading) => reading.includes(piece)));
}
