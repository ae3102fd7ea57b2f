// SPDX-License-Identifier: Apache-2.0

/** The prompt of GDPVal rows when --prompt-template names no other; it speaks of no harness. docs/rows.md shows it. */
export const DEFAULT_PROMPT = `You are an experienced professional.
Field: {sector}
Role: {occupation}

Below is a piece of work from that role. Do it yourself, from beginning to end, as well as an expert would who is answerable for the outcome.

<task>
{prompt}
</task>

Material that comes with the task, relative to your working directory:
{reference_files_str}

How to work:
- Read all of the material before you begin. Leave it as it is, and write what you make into new files.
- Produce the files that the task asks for, in the file types that it names; where it names none, take the type that people in this role would expect.
- Nobody can answer questions. Where something is left open, make a sensible choice and say in your work which one.
- Open each finished file once more and check it against every point of the task: contents, figures, form.

How to hand in:
When the work is done, call the finish tool exactly once. Its reason is a short summary of what you made, and its paths are the absolute paths of all files that belong to the result. Files that are not among the paths, and text that you only say, do not count.
`;
