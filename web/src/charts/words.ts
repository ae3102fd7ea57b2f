// SPDX-License-Identifier: Apache-2.0

/** "7", "1,234", "12.3 k", "4.5 M": at most five digits. Pure. */
export function countText(count: number): string {
  if (count < 10_000) return wholeText(count);
  return count < 999_950 ? `${(count / 1_000).toFixed(1)} k` : `${(count / 1_000_000).toFixed(2)} M`;
}

/** "0.7", "0.333", "-1", "1,250": three digits after the point at most, and more only where there would be no other. Pure. */
export function rewardText(reward: number): string {
  const near = Math.round(reward * 1_000) / 1_000;
  return near === 0 && reward !== 0 ? reward.toPrecision(2) : near.toLocaleString("en-US", { maximumFractionDigits: 3 });
}

/** "12,345". Pure. */
export function wholeText(count: number): string {
  return Math.round(count).toLocaleString("en-US");
}

/** "0 B", "12.3 KB". Pure. */
export function bytesText(bytes: number): string {
  if (bytes < 1_000) return `${bytes} B`;
  return bytes < 999_950 ? `${(bytes / 1_000).toFixed(1)} KB` : `${(bytes / 1_000_000).toFixed(1)} MB`;
}

/** Text of others as it can be read: what steers a terminal, or the direction of the text around it, is spelt out. Pure. */
export function visible(text: string): string {
  return text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, (character) => {
    return `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
  });
}

/** "1 call", "1,234 calls". Pure. */
export function counted(count: number, word: string): string {
  return `${wholeText(count)} ${word}${count === 1 ? "" : "s"}`;
}
