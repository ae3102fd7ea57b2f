// SPDX-License-Identifier: Apache-2.0
import { run, finish, lines, type OfficeJob } from "./job.ts";

/** Jobs that must not end well: what they need is not there. */
export const TROUBLE_JOBS: readonly OfficeJob[] = [
  {
    id: "crm-export",
    department: "Sales",
    // Its required grant is of a kind that Codex cannot use: refused before anything is queued or paid for.
    trouble: "refused_grant",
    request: "Export last week's customers from the CRM and write customers.csv.",
    files: [],
    deliverables: ["customers.csv"],
    steps: [run("echo name > customers.csv"), finish("Exported.", "customers.csv")],
  },
  {
    id: "archive-lookup",
    department: "Legal",
    // Its required tool server is down: Codex ends before the model is asked anything.
    trouble: "server_down",
    request: "Find the contracts named in list.txt in the archive and write found.txt.",
    files: [{ path: "list.txt", content: lines("Cleaning 2019", "Copiers 2021") }],
    deliverables: ["found.txt"],
    steps: [run("cp list.txt found.txt"), finish("Found.", "found.txt")],
  },
];
