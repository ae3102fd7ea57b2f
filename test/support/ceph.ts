// SPDX-License-Identifier: Apache-2.0
import { spawn, execFile, type ChildProcess } from "node:child_process";
import { randomBytes, randomUUID } from "node:crypto";
import { once } from "node:events";
import { accessSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { CreateBucketCommand, S3Client } from "@aws-sdk/client-s3";
import { freePort } from "./redis.ts";

const run = promisify(execFile);

/** Without it the S3 tests are skipped on a developer's machine, and fail in CI. */
export const cephMissing = process.env["CI"] === undefined && !isThere("/usr/bin/radosgw");

export interface TestS3 {
  endpoint: string;
  /** What a process needs to find the server and to be let in. */
  env: { AWS_ENDPOINT_URL_S3: string; AWS_ACCESS_KEY_ID: string; AWS_SECRET_ACCESS_KEY: string; AWS_EC2_METADATA_DISABLED: string };
  client: S3Client;
  /** Makes a bucket; its name. */
  newBucket(): Promise<string>;
  stop(): Promise<void>;
}

/**
 * A real S3 server: the gateway of Ceph (RGW 16) with one monitor and one storage daemon that keeps everything in memory.
 * Takes about five seconds and 150 MB. `npm run setup:ceph` installs the Debian packages it needs.
 */
export async function startCeph(): Promise<TestS3> {
  if (!isThere("/usr/bin/radosgw")) throw new Error("there is no radosgw: run `npm run setup:ceph` (Debian, Ubuntu)");
  const dir = await mkdtemp(join(tmpdir(), "rollcall-ceph-"));
  const [monitorPort, port] = [await freePort(), await freePort()];
  const conf = join(dir, "ceph.conf");
  const env = { PATH: process.env["PATH"] ?? "", CEPH_CONF: conf };
  const daemons: ChildProcess[] = [];
  const stop = async (): Promise<void> => {
    for (const daemon of daemons.reverse()) {
      if (daemon.exitCode !== null || daemon.signalCode !== null) continue;
      const ended = once(daemon, "exit");
      daemon.kill("SIGKILL"); // everything is thrown away
      await ended;
    }
    await rm(dir, { recursive: true, force: true });
  };
  // They must not outlive a test process that is killed.
  const start = (...command: string[]): void => {
    daemons.push(spawn("setpriv", ["--pdeathsig", "KILL", ...command, "-f"], { env, stdio: "ignore" }));
  };
  const access = { key: "ROLLCALLTESTKEY00001", secret: `s3cret/Key+with=${randomBytes(12).toString("hex")}` };
  const endpoint = `http://127.0.0.1:${port}`;
  try {
    const id = randomUUID();
    for (const name of ["mon", "osd", "rgw", "run"]) await mkdir(join(dir, name));
    await writeFile(conf, configuration(dir, { id, monitorPort, port }));
    const monitors = join(dir, "monitors");
    await run("monmaptool", ["--create", "--fsid", id, "--addv", "a", `[v2:127.0.0.1:${monitorPort}]`, monitors], { env });
    await run("ceph-mon", ["--mkfs", "-i", "a", "--monmap", monitors], { env });
    start("ceph-mon", "-i", "a");
    await run("ceph", ["--connect-timeout", "60", "osd", "create"], { env });
    await run("ceph-osd", ["--mkfs", "-i", "0"], { env });
    start("ceph-osd", "-i", "0");
    const user = ["--uid=test", "--display-name=test", `--access-key=${access.key}`, `--secret-key=${access.secret}`];
    await run("radosgw-admin", ["user", "create", ...user], { env });
    start("radosgw", "-n", "client.admin");
    await answers(endpoint);
  } catch (error) {
    const log = await readFile(join(dir, "run/log"), "utf8").catch(() => "");
    await stop();
    throw new Error(`Ceph did not start:\n${log.slice(-4_000)}`, { cause: error });
  }
  const client = new S3Client({
    endpoint,
    region: "us-east-1",
    forcePathStyle: true,
    credentials: { accessKeyId: access.key, secretAccessKey: access.secret },
  });
  return {
    endpoint,
    env: {
      AWS_ENDPOINT_URL_S3: endpoint,
      AWS_ACCESS_KEY_ID: access.key,
      AWS_SECRET_ACCESS_KEY: access.secret,
      AWS_EC2_METADATA_DISABLED: "true",
    },
    client,
    async newBucket() {
      const Bucket = `b-${randomBytes(6).toString("hex")}`;
      await client.send(new CreateBucketCommand({ Bucket }));
      return Bucket;
    },
    stop,
  };
}

function configuration(dir: string, { id, monitorPort, port }: { id: string; monitorPort: number; port: number }): string {
  return `[global]
fsid = ${id}
mon_host = v2:127.0.0.1:${monitorPort}
public_addr = 127.0.0.1
cluster_addr = 127.0.0.1
run_dir = ${dir}/run
admin_socket =
log_file = ${dir}/run/log
mon_data = ${dir}/mon
osd_data = ${dir}/osd
rgw_data = ${dir}/rgw
auth_cluster_required = none
auth_service_required = none
auth_client_required = none
# The gateway asks for "secure", which there is not without keys.
ms_mon_client_mode = crc secure
# One copy of everything, in memory, however full this machine's disk is.
mon_allow_pool_size_one = true
mon_data_avail_crit = 0
mon_data_avail_warn = 0
osd_objectstore = memstore
memstore_device_bytes = 2147483648
osd_pool_default_size = 1
osd_pool_default_min_size = 1
osd_pool_default_pg_num = 1
osd_pool_default_pgp_num = 1
osd_pool_default_pg_autoscale_mode = off
osd_crush_chooseleaf_type = 0
rgw_frontends = beast endpoint=127.0.0.1:${port}
`;
}

async function answers(endpoint: string): Promise<void> {
  for (const end = Date.now() + 60_000; ;) {
    try {
      await (await fetch(endpoint)).arrayBuffer();
      return;
    } catch (error) {
      if (Date.now() > end) throw error;
      await new Promise((next) => setTimeout(next, 100));
    }
  }
}

function isThere(path: string): boolean {
  try {
    accessSync(path);
    return true;
  } catch {
    return false;
  }
}
