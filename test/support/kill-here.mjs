// SPDX-License-Identifier: Apache-2.0
// Goes into a copy of the program (see kill-points.ts), whose statements call it: the process dies here, once for each
// activation that asks for it by its name, kill-<point>.<n>. A file in died/ beside this one says that it did.
import { closeSync, existsSync, openSync, writeSync } from "node:fs";

const died = (name) => new URL(`./died/${name}`, import.meta.url);
let running = 0;
let waiting = [];

/** `text` names the activation: its id, its capture key, or a path of it. */
export function killHere(point, text) {
  const name = nameIn(point, text);
  if (name !== null) die(name);
}

/** The same, once no activation runs in this process: recording one's end must not cost another one its session. */
export async function killWhenIdle(point, text) {
  const name = nameIn(point, text);
  if (name === null) return;
  if (running === 0) return die(name);
  await new Promise((resolve) => waiting.push(resolve));
  await killWhenIdle(point, text);
}

export function began() {
  running++;
}

export function ended() {
  if (--running > 0) return;
  for (const resolve of waiting) resolve();
  waiting = [];
}

/** null: it does not die here, or has died here before. */
function nameIn(point, text) {
  const name = new RegExp(`kill-${point}\\.\\d+`).exec(text)?.[0];
  return name === undefined || existsSync(died(name)) ? null : name;
}

function die(name) {
  let file;
  try {
    file = openSync(died(name), "wx");
  } catch {
    return; // another process did meanwhile
  }
  writeSync(file, String(process.pid));
  closeSync(file);
  process.kill(process.pid, "SIGKILL");
}
