// SPDX-License-Identifier: Apache-2.0
import { mcp, reasoning, say, shell, step } from "../script.ts";
import { finish, lines, OFFICE_SERVER, readPage, run, search, type OfficeJob } from "./job.ts";

export const OPERATIONS_JOBS: readonly OfficeJob[] = [
  {
    id: "sales-summary",
    department: "Sales",
    request:
      "Summarise the third quarter from sales.csv: turnover by region and by month, as by-region.csv and by-month.csv, and summary.md with the best region and the weakest month in one sentence each.",
    files: [
      {
        path: "sales.csv",
        content: lines(
          "date,region,amount",
          "2026-07-03,north,1200",
          "2026-07-19,south,800",
          "2026-08-02,north,450",
          "2026-08-20,west,990",
          "2026-09-05,south,1310",
          "2026-09-28,north,700",
        ),
      },
    ],
    deliverables: ["by-region.csv", "by-month.csv", "summary.md"],
    steps: [
      run("head -n 4 sales.csv; wc -l sales.csv"),
      run("awk -F, 'NR > 1 { s[$2] += $3 } END { for (k in s) print k \",\" s[k] }' sales.csv | sort -t, -k2 -rn > by-region.csv"),
      run("cat by-region.csv"),
      run("awk -F, 'NR > 1 { s[substr($1, 1, 7)] += $3 } END { for (k in s) print k \",\" s[k] }' sales.csv | sort > by-month.csv"),
      run("cat by-month.csv"),
      run(
        'printf \'The best region was %s.\\nThe weakest month was %s.\\n\' "$(head -n1 by-region.csv | cut -d, -f1)" "$(sort -t, -k2 -n by-month.csv | head -n1 | cut -d, -f1)" > summary.md; cat summary.md',
      ),
      run("awk -F, '{ t += $2 } END { print t }' by-region.csv; awk -F, '{ t += $2 } END { print t }' by-month.csv"),
      finish("Both tables add up to 5450.", "by-region.csv", "by-month.csv", "summary.md"),
      step(say("North was the best region, August the weakest month.")),
    ],
  },
  {
    id: "supplier-comparison",
    department: "Procurement",
    request:
      "Score the three offers in offers.csv (price, reliability, quality points) by our published scheme, which you must look up. Write ranking.csv with the points, the best first, and recommendation.txt with one sentence.",
    files: [
      {
        path: "offers.csv",
        content: lines("supplier,price,reliability,quality", "Hansen,500,90,80", "Blitz,400,60,70", "Nordlicht,450,95,90"),
      },
    ],
    deliverables: ["ranking.csv", "recommendation.txt"],
    steps: [
      run("cat offers.csv"),
      search("supplier scoring price reliability quality percent"),
      readPage("https://procurement.example/supplier-scoring"),
      run("awk -F, 'NR > 1 && (m == 0 || $2 < m) { m = $2 } END { print m }' offers.csv"),
      run(
        "awk -F, 'NR > 1 { printf \"%s,%.1f\\n\", $1, 0.5 * 100 * 400 / $2 + 0.3 * $3 + 0.2 * $4 }' offers.csv | sort -t, -k2 -rn > ranking.csv",
      ),
      run("cat ranking.csv"),
      run('echo "We recommend $(head -n1 ranking.csv | cut -d, -f1), which has most points." > recommendation.txt; cat recommendation.txt'),
      finish("Scored by the published weights 50/30/20.", "ranking.csv", "recommendation.txt"),
      step(say("Nordlicht wins in spite of the higher price.")),
    ],
  },
  {
    id: "carbon-report",
    department: "Facilities",
    request:
      "Work out our emissions of October from meters.csv (electricity and gas in kWh, diesel in litres) with published factors. Write emissions.csv in kg CO2e and methods.txt naming the source.",
    files: [{ path: "meters.csv", content: lines("source,amount", "electricity,12400", "gas,8300", "diesel,210") }],
    deliverables: ["emissions.csv", "methods.txt"],
    steps: [
      step(
        reasoning("The factors decide everything; find them first."),
        mcp(OFFICE_SERVER, "web_search", { query: "greenhouse gas conversion factors electricity gas diesel" }),
      ),
      readPage("https://energy.example/conversion-factors"),
      run("cat meters.csv"),
      run(
        'awk -F, \'BEGIN { f["electricity"] = 0.363; f["gas"] = 0.201; f["diesel"] = 2.64; print "source,kg_co2e" } NR > 1 { printf "%s,%.1f\\n", $1, $2 * f[$1] }\' meters.csv > emissions.csv',
      ),
      run("awk -F, 'NR > 1 { t += $2 } END { printf \"total,%.1f\\n\", t }' emissions.csv >> emissions.csv"),
      run("cat emissions.csv"),
      run("echo 'Factors: https://energy.example/conversion-factors; amounts: meters.csv.' > methods.txt"),
      finish("6,723.9 kg CO2e in October, by published factors.", "emissions.csv", "methods.txt"),
      step(say("The total for October is 6,723.9 kg CO2e.")),
    ],
  },
  {
    id: "support-tickets",
    department: "Support",
    request:
      "Check tickets.csv (id, priority, minutes to the first answer) against the service levels we publish. Write breaches.csv with the late tickets and quota.txt with the percentage in time.",
    files: [
      {
        path: "tickets.csv",
        content: lines(
          "id,priority,minutes",
          "T-1,1,22",
          "T-2,1,45",
          "T-3,2,180",
          "T-4,2,300",
          "T-5,1,30",
          "T-6,2,60",
          "T-7,2,239",
          "T-8,1,12",
        ),
      },
    ],
    deliverables: ["breaches.csv", "quota.txt"],
    steps: [
      run("cat tickets.csv"),
      search("service levels support desk first answer priority"),
      readPage("https://service.example/sla"),
      run("awk -F, 'BEGIN { max[1] = 30; max[2] = 240 } NR == 1 || $3 > max[$2]' tickets.csv > breaches.csv"),
      run("cat breaches.csv"),
      run(
        'late=$(($(wc -l < breaches.csv) - 1)); all=$(($(wc -l < tickets.csv) - 1)); echo "$(((all - late) * 100 / all)) percent in time" > quota.txt',
      ),
      run("cat quota.txt"),
      finish("Two of eight tickets were late.", "breaches.csv", "quota.txt"),
      step(say("75 percent were in time; 95 are agreed.")),
    ],
  },
  {
    id: "stock-count",
    department: "Warehouse",
    request:
      "Compare the count in counted.csv with the books in booked.csv and write differences.csv (item, booked, counted) for everything that differs.",
    files: [
      { path: "booked.csv", content: lines("item,pieces", "toner,14", "paper A4,220", "folders,75") },
      { path: "counted.csv", content: lines("item,pieces", "toner,12", "paper A4,220", "folders,78") },
    ],
    deliverables: ["differences.csv"],
    steps: [
      step(shell("cat booked.csv"), shell("cat counted.csv")),
      run(
        'awk -F, \'NR == FNR { b[$1] = $2; next } FNR == 1 { print "item,booked,counted"; next } b[$1] != $2 { print $1 "," b[$1] "," $2 }\' booked.csv counted.csv > differences.csv; cat differences.csv',
      ),
      finish("Toner and folders differ.", "differences.csv"),
      step(say("Two toners are missing, three folders too many.")),
    ],
  },
  {
    id: "address-cleanup",
    department: "Marketing",
    request:
      "Clean the newsletter list addresses.txt: one address a line, lower case, sorted, no duplicates, nothing without an @. Write clean.txt.",
    files: [
      {
        path: "addresses.txt",
        content: lines("Mei@example.org", "jonas@example.org", "no address", "MEI@example.org", "adaeze@example.org"),
      },
    ],
    deliverables: ["clean.txt"],
    steps: [
      run("grep @ addresses.txt | tr 'A-Z' 'a-z' | sort -u > clean.txt; cat clean.txt"),
      finish("Three of five lines are left.", "clean.txt"),
      step(say("The list has three addresses now.")),
    ],
  },
  {
    id: "contract-deadlines",
    department: "Legal",
    request:
      "Sort the contracts in contracts.csv (name, end, months of notice) by the day on which notice must be given; ends are always the last of a month. Write deadlines.csv.",
    files: [
      { path: "contracts.csv", content: lines("name,end,notice_months", "Cleaning,2027-03,3", "Copiers,2027-06,6", "Coffee,2027-01,1") },
    ],
    deliverables: ["deadlines.csv"],
    steps: [
      run("cat contracts.csv"),
      run(
        "awk -F'[,-]' 'NR > 1 { m = $2 * 12 + $3 - 1 - $4; printf \"%04d-%02d,%s\\n\", int(m / 12), m % 12 + 1, $1 }' contracts.csv | sort > body.csv; { echo notice_by_end_of,name; cat body.csv; } > deadlines.csv",
      ),
      run("cat deadlines.csv; rm body.csv"),
      finish("All three notices fall due in December 2026.", "deadlines.csv"),
      step(say("All three are due by the end of December 2026.")),
    ],
  },
  {
    id: "visitor-log-purge",
    department: "Reception",
    request:
      "The visitor log visitors.csv must be cut to what we may keep. Look the period up, keep what is younger on 30 November 2026, and write visitors-kept.csv.",
    files: [{ path: "visitors.csv", content: lines("date,name", "2026-07-14,Weber", "2026-09-02,Rossi", "2026-11-18,Nguyen") }],
    deliverables: ["visitors-kept.csv"],
    steps: [
      search("retention visitor logs days"),
      run("awk -F, 'NR == 1 || $1 >= \"2026-09-01\"' visitors.csv > visitors-kept.csv; cat visitors-kept.csv"),
      finish("Everything before 1 September is gone: 90 days.", "visitors-kept.csv"),
      step(say("One entry was older than 90 days.")),
    ],
  },
];
