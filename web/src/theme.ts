// SPDX-License-Identifier: Apache-2.0
import { useEffect, useState } from "preact/hooks";
import { DARK, LIGHT, type Palette } from "./charts/palette.ts";

export type Theme = "light" | "dark";

const STORED = "rollcall-theme";
const system = matchMedia("(prefers-color-scheme: dark)");

function stored(): Theme | null {
  const value = localStorage.getItem(STORED);
  return value === "light" || value === "dark" ? value : null;
}

export function themeNow(): Theme {
  return stored() ?? (system.matches ? "dark" : "light");
}

export function paletteOf(theme: Theme): Palette {
  return theme === "dark" ? DARK : LIGHT;
}

/** Gives the colours to the style sheet. */
export function applyTheme(theme: Theme): void {
  const { marks, ...plain } = paletteOf(theme);
  const { style, dataset } = document.documentElement;
  for (const [name, value] of [...Object.entries(plain), ...Object.entries(marks)]) style.setProperty(`--${name}`, value);
  style.colorScheme = theme;
  dataset["theme"] = theme;
}

/** The theme, as the system has it until somebody chooses; a choice is kept in this browser. */
export function useTheme(): { theme: Theme; toggle: () => void } {
  const [theme, setTheme] = useState(themeNow);
  useEffect(() => {
    const follow = (): void => setTheme(themeNow());
    system.addEventListener("change", follow);
    return () => system.removeEventListener("change", follow);
  }, []);
  useEffect(() => applyTheme(theme), [theme]);
  return {
    theme,
    toggle() {
      const other = theme === "dark" ? "light" : "dark";
      localStorage.setItem(STORED, other);
      setTheme(other);
    },
  };
}
