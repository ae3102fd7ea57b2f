// SPDX-License-Identifier: Apache-2.0
import { mcp, reasoning, say, shell, step } from "../script.ts";
import { finish, lines, OFFICE_SERVER, readPage, run, search, type OfficeJob } from "./job.ts";

export const FINANCE_JOBS: readonly OfficeJob[] = [
  {
    id: "invoice-reconciliation",
    department: "Accounts payable",
    request:
      "Match our invoices (invoices.csv) with the bank statement (payments.csv) by invoice number. Write reconciliation.csv with invoice, billed, paid and difference for every invoice, and open-items.txt with the numbers that are not fully paid.",
    files: [
      {
        path: "invoices.csv",
        content: lines(
          "invoice,supplier,amount",
          "R-1041,Hansen Papier,412.50",
          "R-1042,Blitz Kurier,89.90",
          "R-1043,Hansen Papier,120.00",
          "R-1044,Nordlicht IT,2310.00",
        ),
      },
      {
        path: "payments.csv",
        content: lines("date,reference,amount", "2026-10-02,R-1041,412.50", "2026-10-06,R-1043,100.00", "2026-10-09,R-1044,2310.00"),
      },
    ],
    deliverables: ["reconciliation.csv", "open-items.txt"],
    steps: [
      step(reasoning("Look at both files before joining them."), shell("head -n 3 invoices.csv payments.csv")),
      run("wc -l invoices.csv payments.csv"),
      run(
        "awk -F, 'NR > 1 { sum[$2] += $3 } END { for (r in sum) printf \"%s,%.2f\\n\", r, sum[r] }' payments.csv | sort > paid.csv; cat paid.csv",
      ),
      run(
        'awk -F, \'NR == FNR { paid[$1] = $2; next } FNR == 1 { print "invoice,billed,paid,difference"; next } { printf "%s,%.2f,%.2f,%.2f\\n", $1, $3, paid[$1], $3 - paid[$1] }\' paid.csv invoices.csv > reconciliation.csv',
      ),
      run("cat reconciliation.csv"),
      run("awk -F, 'NR > 1 && $4 > 0 { print $1 }' reconciliation.csv > open-items.txt; cat open-items.txt"),
      finish("Two invoices are open: R-1042 entirely, R-1043 by 20.00.", "reconciliation.csv", "open-items.txt"),
      step(say("The reconciliation is done: R-1042 is unpaid and R-1043 is short by 20.00 EUR.")),
    ],
  },
  {
    id: "vat-return-draft",
    department: "Tax",
    request:
      "Prepare the VAT draft for October from sales.csv (net amounts and a category: standard, reduced, export). Look the rates in force up, do not guess. Write vat.csv with category, net and tax, and a last line with the totals.",
    files: [
      {
        path: "sales.csv",
        content: lines(
          "document,category,net",
          "A-1,standard,1200.00",
          "A-2,reduced,350.00",
          "A-3,export,5000.00",
          "A-4,standard,80.00",
          "A-5,reduced,50.00",
        ),
      },
    ],
    deliverables: ["vat.csv"],
    steps: [
      run("cat sales.csv"),
      search("VAT rates standard reduced export"),
      readPage("https://tax.example/vat-rates"),
      run("cut -d, -f2 sales.csv | sort | uniq -c"),
      run(
        'awk -F, \'BEGIN { rate["standard"] = 0.19; rate["reduced"] = 0.07 } NR > 1 { net[$2] += $3 } END { for (c in net) printf "%s,%.2f,%.2f\\n", c, net[c], net[c] * rate[c] }\' sales.csv | sort > body.csv',
      ),
      run(
        "{ echo category,net,tax; cat body.csv; awk -F, '{ n += $2; t += $3 } END { printf \"total,%.2f,%.2f\\n\", n, t }' body.csv; } > vat.csv",
      ),
      run("cat vat.csv && rm body.csv"),
      finish("VAT draft for October with 19 and 7 percent; exports zero rated.", "vat.csv"),
      step(say("vat.csv holds the draft; the rates come from the tax office's page.")),
    ],
  },
  {
    id: "expense-report-check",
    department: "Accounts payable",
    request:
      "Check the travel expenses in expenses.csv against our travel policy, which is on the intranet. Write findings.md: one line for each expense that breaks a limit, naming the limit.",
    files: [
      {
        path: "expenses.csv",
        content: lines(
          "employee,kind,amount,unit",
          "Okafor,hotel,128.00,night",
          "Okafor,meals,51.00,day",
          "Lindqvist,hotel,189.00,night",
          "Lindqvist,meals,38.50,day",
        ),
      },
    ],
    deliverables: ["findings.md"],
    steps: [
      run("cat expenses.csv"),
      search("travel policy hotel meals limit"),
      // The model remembers an old address; the tool answers with an error, and it takes the address of the search.
      readPage("https://intranet.example/travel-policy-2025"),
      readPage("https://intranet.example/policies/travel"),
      run(
        'awk -F, \'BEGIN { max["hotel"] = 140; max["meals"] = 42; print "# Findings\\n" } NR > 1 && $3 > max[$2] { printf "- %s: %s of %.2f EUR a %s, the limit is %d EUR\\n", $1, $2, $3, $4, max[$2] }\' expenses.csv > findings.md',
      ),
      run("cat findings.md; grep -c '^- ' findings.md"),
      finish("Two expenses are over the limits of the 2026 policy.", "findings.md"),
      step(
        say(
          "Okafor's meals and Lindqvist's hotel are over the limit. The first address I tried was out of date; the policy is at intranet.example/policies/travel.",
        ),
      ),
    ],
  },
  {
    id: "currency-conversion",
    department: "Treasury",
    request:
      "Convert the balances in balances.csv to EUR at the reference rates of 30 October 2026 and write balances-eur.csv with a total.",
    files: [
      { path: "balances.csv", content: lines("account,currency,amount", "Zurich,CHF,9310.00", "Leeds,GBP,842.00", "Boston,USD,21700.00") },
    ],
    deliverables: ["balances-eur.csv"],
    steps: [
      step(shell("cat balances.csv"), mcp(OFFICE_SERVER, "web_search", { query: "euro reference rates October 2026" })),
      readPage("https://rates.example/ecb/2026-10-30"),
      run(
        'awk -F, \'BEGIN { OFS = ","; r["CHF"] = 0.931; r["GBP"] = 0.842; r["USD"] = 1.085 } NR == 1 { print $0, "eur"; next } { e = $3 / r[$2]; t += e; printf "%s,%.2f\\n", $0, e } END { printf "total,EUR,,%.2f\\n", t }\' balances.csv > balances-eur.csv; cat balances-eur.csv',
      ),
      finish("Balances in EUR at the rates of 30 October.", "balances-eur.csv"),
      step(say("The three accounts hold 31,000.00 EUR together.")),
    ],
  },
  {
    id: "budget-variance",
    department: "Controlling",
    request:
      "Compare budget.csv (department, budget, actual). Write variance.csv with the deviation in percent, the largest overspending first.",
    files: [
      {
        path: "budget.csv",
        content: lines(
          "department,budget,actual",
          "Facilities,40000,43800",
          "IT,120000,118200",
          "Marketing,65000,78000",
          "Legal,30000,29100",
        ),
      },
    ],
    deliverables: ["variance.csv"],
    steps: [
      run("cat budget.csv"),
      run(
        "{ echo department,percent; awk -F, 'NR > 1 { printf \"%s,%.1f\\n\", $1, ($3 - $2) * 100 / $2 }' budget.csv | sort -t, -k2 -rn; } > variance.csv; cat variance.csv",
      ),
      finish("Marketing is 20 percent over its budget, Facilities 9.5.", "variance.csv"),
      step(say("Marketing and Facilities overspent; IT and Legal are under budget.")),
    ],
  },
];
