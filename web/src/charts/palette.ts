// SPDX-License-Identifier: Apache-2.0
import type { Status } from "../../../src/contract/result.ts";

/** Outcomes, and where those are that have none yet. */
export type Mark = Status | "running" | "waiting";

/**
 * All colours of the pages, in each theme; the one place. Blue against vermilion, with other lightnesses in between, so that the outcomes
 * stay apart for people who do not tell red from green. Text on `paper` has a contrast of at least 4.5.
 */
export interface Palette {
  ground: string;
  paper: string;
  raised: string;
  line: string;
  ink: string;
  dim: string;
  accent: string;
  focus: string;
  marks: Record<Mark, string>;
}

export const LIGHT: Palette = {
  ground: "#f5f6f8",
  paper: "#ffffff",
  raised: "#eef1f4",
  line: "#d9dee4",
  ink: "#1a2028",
  dim: "#596471",
  accent: "#175da3",
  focus: "#b35900",
  marks: {
    completed: "#2a6fb0",
    incomplete: "#946200",
    failed: "#c03d12",
    refused: "#8447a8",
    cancelled: "#66717d",
    running: "#0b7c86",
    waiting: "#a9b3bd",
  },
};

export const DARK: Palette = {
  ground: "#0f1317",
  paper: "#171c22",
  raised: "#212830",
  line: "#313a44",
  ink: "#e4e8ec",
  dim: "#9ba7b3",
  accent: "#82bbf2",
  focus: "#ffb45e",
  marks: {
    completed: "#6aaee8",
    incomplete: "#e0b64a",
    failed: "#ff8a5c",
    refused: "#c79be6",
    cancelled: "#95a1ad",
    running: "#4fc6cf",
    waiting: "#5b6672",
  },
};

/** For legends and texts, in the order in which outcomes are shown. */
export const MARK_NAMES: Record<Mark, string> = {
  completed: "completed",
  incomplete: "incomplete",
  failed: "failed",
  refused: "refused",
  cancelled: "cancelled",
  running: "running",
  waiting: "waiting",
};
export const MARKS = Object.keys(MARK_NAMES) as readonly Mark[];
