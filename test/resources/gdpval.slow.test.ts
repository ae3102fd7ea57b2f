// SPDX-License-Identifier: Apache-2.0
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it, onTestFinished } from "vitest";
import { startModelServer } from "../../examples/stand-ins/model-server.ts";
import { startResourcesServer } from "../../examples/stand-ins/resources-server.ts";
import { mcp, scriptLine, shell, step } from "../../examples/stand-ins/script.ts";
import { resultSchema } from "../../src/contract/result.ts";
import { commandLinesHolding, filesHolding } from "../support/byte-search.ts";
import { gdpvalRows, referenceText, writeReferences } from "../support/gdpval-rows.ts";
import { rollcall } from "../support/rollcall-command.ts";
import { tempDir } from "../support/temp-dir.ts";

// GDPVal's sample rows by the command, on the real Codex, its sandbox, MCP and Redis. Only the model and the resources server are stand-ins.

it("GDPVal's rows are seeded, worked on with the server's own tools, handed in and scored; no token is left anywhere [R46 R55 R39]", async () => {
  const root = tempDir();
  const [out, deliverables] = [join(root, "out"), join(root, "deliverables")];
  mkdirSync(join(root, "run"), { mode: 0o700 });
  const model = await startModelServer({ apiKey: "k" });
  const resources = await startResourcesServer({ artifacts: join(out, "artifacts"), deliverables });
  onTestFinished(() => Promise.all([model.close(), resources.close()]).then(() => undefined));
  const rows = gdpvalRows();
  for (const row of rows) {
    writeReferences(root, row);
    const work = [shell("cat reference_files/* > report.txt"), mcp("office", "web_search", { query: "travel policy" })];
    const finish = mcp("office", "finish", { reason: `done for ${row.sector}`, paths: ["{{workdir}}/report.txt"] });
    row.prompt += `\n${scriptLine({ steps: [step(...work), step(finish)] })}`;
  }
  // One that says it finished with a file that it never wrote.
  const liar = structuredClone(rows[0]!);
  liar.task_id = "liar";
  liar.prompt = liar.prompt.replace("/report.txt", "/nowhere.txt");
  const tasks = join(root, "tasks.jsonl");
  writeFileSync(tasks, [...rows, liar].map((row) => `${JSON.stringify(row)}\n`).join(""));
  const args = ["run", tasks, "--out", out, "--model", "m", "--model-base-url", model.captureBaseUrl, "--resources-server", resources.url];
  const env = { OPENAI_API_KEY: "k", ROLLCALL_STATE_DIR: join(root, "state"), XDG_RUNTIME_DIR: join(root, "run"), TMPDIR: root };
  const { code, stdout, stderr } = await rollcall([...args, "--concurrency", "3"], { env });
  expect({ code, stderr }).toMatchObject({ code: 0 });

  const results = new Map(
    readFileSync(join(out, "results.jsonl"), "utf8")
      .split("\n")
      .filter(Boolean)
      .map((line) => resultSchema.parse(JSON.parse(line)))
      .map((result) => [result.task_id.task_id, result]),
  );
  expect([...results.keys()].sort()).toEqual([...rows, liar].map(({ task_id }) => task_id).sort());
  for (const row of rows) {
    const { task_id, reference_files } = row;
    const directory = join(deliverables, `task_${task_id}`, "repeat_0");
    expect(results.get(task_id)).toMatchObject({
      status: "completed",
      row,
      reward: 1,
      verification: { submitted: ["/workspace/report.txt"], missing: [], deliverables_dir: directory },
      rollout: { verified: true, protocol: "session" },
    });
    expect(Object.keys(results.get(task_id)!.verification!).sort()).toEqual(["deliverables_dir", "missing", "submitted"]);
    expect(readdirSync(directory).sort()).toEqual(["finish_params.json", "report.txt"]);
    // What the server found is what lies in the run's own directory.
    for (const place of [directory, join(out, `task_${task_id}`, "repeat_0")]) {
      for (const path of reference_files) expect(readFileSync(join(place, "report.txt"), "utf8")).toContain(referenceText(path));
      expect(JSON.parse(readFileSync(join(place, "finish_params.json"), "utf8"))).toMatchObject({ paths: ["/workspace/report.txt"] });
    }
    const calls = resources.calls.filter(({ rollout_id }) => rollout_id === task_id);
    expect(calls.map(({ path, status }) => `${path} ${status}`)).toEqual(["/seed_session 200", "/verify 200", "/close_session 200"]);
    // The row as it is, with the prompt that was made of it.
    const [seeded, verified] = calls.map(({ body }) => body);
    const { responses_create_params: _made, ...others } = row;
    expect(seeded).toMatchObject({ task_data: others });
    expect(verified).toMatchObject({ ...others, responses_create_params: { input: [{ role: "user" }] } });
    expect(JSON.stringify(verified!["responses_create_params"])).toContain(JSON.stringify(row.prompt).slice(1, -1));
    // Recorded for the session that the token was minted for.
    const finished = resources.toolCalls.filter(({ session_id, tool }) => session_id === calls[0]!.session_id && tool === "finish");
    expect(finished).toHaveLength(1);
  }
  expect(results.get("liar")).toMatchObject({ status: "completed", reward: 0, verification: { missing: ["/workspace/nowhere.txt"] } });
  expect(resources.openSessions()).toEqual([]);
  const coverage = { expected: 6, completed: 6, missing: 0, reconciled: true };
  expect(JSON.parse(readFileSync(join(out, "coverage.json"), "utf8"))).toMatchObject(coverage);
  expect(JSON.parse(readFileSync(join(out, "summary.json"), "utf8"))).toMatchObject({ unverified: 0, rewards: { scored: 6 } });

  expect(resources.secrets).toHaveLength(12);
  for (const text of resources.secrets.flatMap((secret) => [secret, secret.split(".")[1]!])) {
    for (const place of [out, join(root, "state"), deliverables]) expect(filesHolding(place, text)).toEqual([]);
    expect(stdout + stderr).not.toContain(text);
    expect(commandLinesHolding(text)).toEqual([]);
  }
  // The same search finds the name of the header that held a token, in the queue's file too.
  expect(filesHolding(join(root, "state"), "X-NeMo-Gym-Session-Token").some((file) => file.includes("appendonly"))).toBe(true);
});
