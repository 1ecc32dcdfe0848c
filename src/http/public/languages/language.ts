/**
 * The languages of public pages, and the choice for a visitor.
 *
 * Called by `public-app.ts` for each request. To add a language, add a file here and a line below. Pure.
 * Standard: RFC 9110 §12.5.4 (Accept-Language), RFC 4647 §3.4 (lookup). Fails: never throws.
 */
import { de } from './de.js'
import { en } from './en.js'
import { es } from './es.js'
import { fr } from './fr.js'
import type { PageTexts } from './page-texts.js'

export const LANGUAGES = { en, de, fr, es } as const satisfies Readonly<Record<string, PageTexts>>
export type Language = keyof typeof LANGUAGES

const DEFAULT_LANGUAGE: Language = 'en'
/** Ranges considered; browsers send a handful. */
const MAX_RANGES = 20

export function isLanguage(text: string): text is Language {
  return Object.hasOwn(LANGUAGES, text)
}

/** @param header value of Accept-Language, e.g. `fr-CH, fr;q=0.9, en;q=0.8, *;q=0.5` */
export function chooseLanguage(header = ''): Language {
  let chosen: Language = DEFAULT_LANGUAGE
  let best = 0
  for (const range of header.split(',', MAX_RANGES)) {
    const [tag = '', ...parameters] = range.trim().toLowerCase().split(';')
    const language = tag.trim().split('-', 1)[0] ?? ''
    const weight = weightOf(parameters)
    if (!isLanguage(language) || weight <= best) continue
    chosen = language
    best = weight
  }
  return chosen
}

/** 1 if absent, 0 if invalid. */
function weightOf(parameters: readonly string[]): number {
  const written = parameters.map(one => /^\s*q\s*=\s*([01](?:\.\d{0,3})?)\s*$/.exec(one)?.[1])
  if (parameters.length === 0) return 1
  return Math.min(1, Number(written.find(one => one !== undefined) ?? 0))
}
