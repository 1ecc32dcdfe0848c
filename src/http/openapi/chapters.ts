/** Chapters of the API description (OpenAPI tags). Resources declare them in display order; each route names one. */

/** One-sentence summaries, by name. */
export type Chapters = Readonly<Record<string, string>>
