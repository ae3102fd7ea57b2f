// SPDX-License-Identifier: Apache-2.0
import { mcp, say, shell, step, withFault } from "../script.ts";
import { finish, lines, OFFICE_SERVER, readPage, run, search, type OfficeJob } from "./job.ts";

export const PEOPLE_JOBS: readonly OfficeJob[] = [
  {
    id: "meeting-minutes",
    department: "Office management",
    request:
      "Turn the raw notes of Tuesday's meeting (notes.txt) into minutes: minutes.md with the people present, decisions, and a table of actions with owner and date. Lines begin with P (present), D (decision) or A (action: owner; date; what).",
    files: [
      {
        path: "notes.txt",
        content: lines(
          "P Adaeze Okafor",
          "P Jonas Lindqvist",
          "P Mei Tanaka",
          "D Move the archive to the second floor",
          "D No printer in the lobby",
          "A Okafor; 2026-12-04; ask two movers for an offer",
          "A Tanaka; 2026-12-11; label the shelves",
          "x coffee was cold",
        ),
      },
    ],
    deliverables: ["minutes.md"],
    steps: [
      run("cat notes.txt"),
      run("cut -c1 notes.txt | sort | uniq -c"),
      run("{ echo '# Minutes'; echo; echo '## Present'; grep '^P ' notes.txt | sed 's/^P /- /'; } > minutes.md"),
      run("{ echo; echo '## Decisions'; grep '^D ' notes.txt | cut -c3- | nl -w1 -s'. '; } >> minutes.md"),
      run(
        "{ echo; echo '## Actions'; echo; echo '| who | until | what |'; echo '|---|---|---|'; grep '^A ' notes.txt | cut -c3- | awk -F'; ' '{ print \"| \" $1 \" | \" $2 \" | \" $3 \" |\" }'; } >> minutes.md",
      ),
      run("cat minutes.md"),
      finish("Minutes with two decisions and two actions; a remark about coffee left out.", "minutes.md"),
      step(say("The minutes are in minutes.md.")),
    ],
  },
  {
    id: "holiday-roster",
    department: "Human resources",
    request:
      "Plan who stands by on the public holidays of 2027 in May and October. Take the holidays from an official page and the people from staff.txt in turn. Write roster.csv with date and name.",
    files: [{ path: "staff.txt", content: lines("Okafor", "Lindqvist", "Tanaka") }],
    deliverables: ["roster.csv"],
    steps: [
      run("cat staff.txt"),
      search("public holidays 2027"),
      // The connection to the model breaks once in the middle of this reply; Codex asks again.
      withFault(readPage("https://labour.example/public-holidays-2027"), { kind: "cut", times: 1 }),
      run("printf '2027-05-01\\n2027-05-06\\n2027-05-17\\n2027-10-03\\n' > dates.txt; wc -l dates.txt"),
      run("awk 'NR == FNR { name[n++] = $1; next } { print $1 \",\" name[(FNR - 1) % n] }' staff.txt dates.txt > body.csv"),
      run("{ echo date,name; cat body.csv; } > roster.csv; rm body.csv dates.txt"),
      run("cat roster.csv"),
      finish("Four holidays, shared by three people in turn.", "roster.csv"),
      step(say("Okafor has two dates, the others one each.")),
    ],
  },
  {
    id: "applicant-retention",
    department: "Human resources",
    request:
      "Which applications in applicants.csv must be deleted as of 30 November 2026? Look up how long we keep those of people who were not hired. Write delete.txt with the ids, and reason.txt with one sentence naming the rule.",
    files: [
      {
        path: "applicants.csv",
        content: lines("id,decided,hired", "K-17,2026-03-02,no", "K-21,2026-04-18,yes", "K-30,2026-05-29,no", "K-38,2026-08-11,no"),
      },
    ],
    deliverables: ["delete.txt", "reason.txt"],
    steps: [
      run("cat applicants.csv"),
      search("retention period applications of candidates not hired"),
      readPage("https://intranet.example/policies/retention"),
      run('awk -F, \'NR > 1 && $3 == "no" && $2 < "2026-05-30" { print $1 }\' applicants.csv > delete.txt'),
      run("cat delete.txt"),
      run("echo 'Applications of candidates who were not hired are kept for 6 months (record retention periods).' > reason.txt"),
      run("ls -l delete.txt reason.txt"),
      finish("K-17 and K-30 are older than six months.", "delete.txt", "reason.txt"),
      step(say("Two applications are due: K-17 and K-30.")),
    ],
  },
  {
    id: "training-overview",
    department: "Human resources",
    request: "From trainings.csv, write overdue.csv: everybody whose fire safety training is older than one year on 30 November 2026.",
    files: [
      {
        path: "trainings.csv",
        content: lines(
          "name,training,date",
          "Okafor,fire safety,2025-09-14",
          "Lindqvist,fire safety,2026-02-03",
          "Tanaka,first aid,2024-05-20",
          "Moreau,fire safety,2025-11-02",
        ),
      },
    ],
    deliverables: ["overdue.csv"],
    steps: [
      run("cat trainings.csv"),
      run('awk -F, \'NR == 1 || ($2 == "fire safety" && $3 < "2025-11-30")\' trainings.csv > overdue.csv; cat overdue.csv'),
      finish("Okafor and Moreau must repeat the training.", "overdue.csv"),
      step(say("Two people are overdue.")),
    ],
  },
  {
    id: "travel-policy-answer",
    department: "Office management",
    request:
      "A colleague asks whether a flight of 450 km and a hotel for 135 EUR are allowed (question.txt). Write answer.txt, at most four sentences, quoting the policy.",
    files: [{ path: "question.txt", content: "May I fly to Hamburg (450 km) and stay for 135 EUR a night?\n" }],
    deliverables: ["answer.txt"],
    steps: [
      step(shell("cat question.txt"), mcp(OFFICE_SERVER, "fetch_web_page", { url: "https://intranet.example/policies/travel" })),
      run(
        "printf 'The hotel is fine: the policy allows at most 140 EUR a night. The flight is not: flights are for distances over 600 km only. Please take the train, second class.\\n' > answer.txt; wc -w answer.txt",
      ),
      finish("Answered from the travel policy 2026.", "answer.txt"),
      step(say("The answer is written: hotel yes, flight no.")),
    ],
  },
];
