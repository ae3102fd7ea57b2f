// SPDX-License-Identifier: Apache-2.0

export interface Page {
  url: string;
  title: string;
  text: string;
}

/** The whole web of the office tools: invented pages, always the same. */
const PAGES: readonly Page[] = [
  {
    url: "https://intranet.example/policies/travel",
    title: "Travel policy 2026",
    text: "Hotels: at most 140 EUR a night. Meals: at most 42 EUR a day. Rail travel in second class; flights only over 600 km. Receipts are needed above 25 EUR. Alcohol is not refunded.",
  },
  {
    url: "https://intranet.example/policies/retention",
    title: "Record retention periods",
    text: "Invoices and ledgers: 10 years. Contracts: 6 years after they end. Applications of candidates who were not hired: 6 months. Visitor logs: 90 days. Camera recordings: 72 hours.",
  },
  {
    url: "https://rates.example/ecb/2026-10-30",
    title: "Euro reference rates of 30 October 2026",
    text: "1 EUR = 1.0850 USD, 0.8420 GBP, 0.9310 CHF, 161.20 JPY, 11.4200 SEK.",
  },
  {
    url: "https://tax.example/vat-rates",
    title: "VAT rates in force",
    text: "Standard rate 19 percent. Reduced rate 7 percent for books, food and local passenger transport. Exports outside the union: zero rated.",
  },
  {
    url: "https://labour.example/public-holidays-2027",
    title: "Public holidays 2027",
    text: "1 January, 26 March (Good Friday), 29 March (Easter Monday), 1 May, 6 May (Ascension), 17 May (Whit Monday), 3 October, 25 and 26 December.",
  },
  {
    url: "https://energy.example/conversion-factors",
    title: "Conversion factors for greenhouse gas reports",
    text: "Electricity 0.363 kg CO2e per kWh. Natural gas 0.201 kg CO2e per kWh. Diesel 2.64 kg CO2e per litre. Rail 0.028 kg CO2e per passenger km.",
  },
  {
    url: "https://procurement.example/supplier-scoring",
    title: "How suppliers are scored",
    text: "Price counts 50 percent, delivery reliability 30 percent, quality complaints 20 percent. The lowest price gets 100 points; others get 100 times lowest price divided by their price.",
  },
  {
    url: "https://service.example/sla",
    title: "Service levels of the support desk",
    text: "Priority 1: first answer in 30 minutes. Priority 2: in 4 hours. Priority 3: in 2 working days. A target of 95 percent per month is agreed with customers.",
  },
];

/** At most five pages, those that share most words with the query first; ties in the order of the list. Pure. */
export function searchPages(query: string): Page[] {
  const words = new Set(wordsOf(query));
  const scored = PAGES.map((page) => ({ page, score: wordsOf(`${page.title} ${page.text}`).filter((word) => words.has(word)).length }));
  return scored
    .filter(({ score }) => score > 0)
    .sort((a, b) => b.score - a.score)
    .slice(0, 5)
    .map(({ page }) => page);
}

export function pageAt(url: string): Page | undefined {
  return PAGES.find((page) => page.url === url);
}

function wordsOf(text: string): string[] {
  return text.toLowerCase().match(/[a-z0-9]{3,}/g) ?? [];
}
