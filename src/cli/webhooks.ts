// SPDX-License-Identifier: Apache-2.0
import { Command } from "commander";
import type { Client } from "../client/client.ts";
import { wholeNumber } from "./options.ts";
import { clientOf, withServerFlags, type ServerFlags } from "./server-client.ts";
import { settingsFrom, withConfigFlag, type SettingsFlags } from "./settings-flags.ts";
import { printable } from "../printable.ts";

type WebhooksFlags = SettingsFlags & ServerFlags & { server: string; limit: number };

export function webhooksCommand(): Command {
  const all = new Command("webhooks").description("What a server pushes to URLs (docs/webhooks.md): each line is JSON.");
  const under = (
    name: string,
    description: string,
    act: (client: Client, args: string[], flags: WebhooksFlags) => Promise<object[]>,
  ): Command => {
    const command = withConfigFlag(withServerFlags(new Command(name))).description(description);
    for (const option of command.options) if (option.long === "--server") option.makeOptionMandatory();
    return command.action(async (...given: unknown[]) => {
      const flags = given.at(-2) as WebhooksFlags;
      const client = await clientOf(flags.server, flags, { settings: await settingsFrom(flags), env: process.env });
      for (const line of await act(client, given.slice(0, -2).flat() as string[], flags))
        process.stdout.write(printable(`${JSON.stringify(line)}\n`));
    });
  };
  all.addCommand(
    under("list", "all webhooks, with counts of what waits, was sent and is dead", async (client) => (await client.webhooks()).webhooks),
  );
  all.addCommand(
    under(
      "dead",
      "what could not be pushed, the newest first",
      async (client, [name], { limit }) => (await client.deadLetters(name!, { limit })).dead,
    )
      .argument("<name>", "of the webhook")
      .option("--limit <n>", "at most so many, up to 1000", wholeNumber(1), 100),
  );
  all.addCommand(
    under("replay", "push dead letters again, those that are named, else the oldest 1000", async (client, [name, ...ids]) => [
      await client.replayDead(name!, ids.length === 0 ? undefined : ids),
    ])
      .argument("<name>", "of the webhook")
      .argument("[delivery...]", "ids of deliveries"),
  );
  for (const command of all.commands) command.exitOverride();
  return all;
}
