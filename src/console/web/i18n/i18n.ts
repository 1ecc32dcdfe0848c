/** Texts, numbers and times in the chosen language and the viewer's time zone. */
import { en, type Texts } from './en'

export const LANGUAGES = { en: 'English', de: 'Deutsch', fr: 'Français', es: 'Español' } as const
export type Language = keyof typeof LANGUAGES

interface Chosen {
  language: Language
  /** BCP 47, for numbers and times: the language as it is written in the viewer's region. */
  locale: string
  texts: Texts
}

let chosen: Chosen = { language: 'en', locale: 'en', texts: en }

/** The console keeps its language in state that components follow. Until then it is English. */
export function keepLanguageIn(state: Chosen): void {
  chosen = state
}

/** The texts of the chosen language; reading them in a template keeps it up to date. */
export function tr(): Texts {
  return chosen.texts
}

export function language(): Language {
  return chosen.language
}

/** BCP 47, for what `Intl` formats beside the functions below. */
export function locale(): string {
  return chosen.locale
}

/**
 * How the language is written where the viewer lives, e.g. `en-GB`: the first of the browser's tags that is of this language. A browser that
 * names only other languages tells no region.
 *
 * @param tags BCP 47, the preferred first
 */
export function localeOf(language: Language, tags: readonly string[]): string {
  return tags.find(tag => tag === language || tag.startsWith(`${language}-`)) ?? language
}

/** Making a formatter takes longer than a row of a list may. */
function kept<O, F>(make: (locale: string, options: O) => F): (options: O) => F {
  const made = new Map<string, F>()
  return options => {
    const key = `${chosen.locale} ${JSON.stringify(options)}`
    const formatter = made.get(key) ?? make(chosen.locale, options)
    made.set(key, formatter)
    return formatter
  }
}

const numbers = kept((locale, options: Intl.NumberFormatOptions) => new Intl.NumberFormat(locale, options))
const dates = kept((locale, options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(locale, options))
const ages = kept(
  (locale, options: Intl.RelativeTimeFormatOptions) => new Intl.RelativeTimeFormat(locale, options),
)

export function number(value: number): string {
  return numbers({}).format(value)
}

/** @param share 0.042 is 4.2 % */
export function percent(share: number): string {
  const digits = share !== 0 && share < 0.01 ? 2 : 1
  return numbers({ style: 'percent', maximumFractionDigits: digits }).format(share)
}

export function octets(value: number): string {
  const units = ['byte', 'kilobyte', 'megabyte', 'gigabyte', 'terabyte']
  const digitsOf = (amount: number, step: number) => (step > 0 && amount < 9.95 ? 1 : 0)
  let step = value < 1 ? 0 : Math.min(Math.floor(Math.log10(value) / 3), units.length - 1)
  // 999 999 are a megabyte, not 1000 kilobytes.
  if (step < units.length - 1 && Math.round(value / 1_000 ** step) >= 1_000) step += 1
  const amount = value / 1_000 ** step
  return numbers({
    style: 'unit',
    unit: units[step] ?? 'byte',
    unitDisplay: 'short',
    maximumFractionDigits: digitsOf(amount, step),
  }).format(amount)
}

/** In full, e.g. for a tooltip. @param iso RFC 3339 */
export function fullTime(iso: string): string {
  return dates({ dateStyle: 'full', timeStyle: 'long' }).format(new Date(iso))
}

/** Time of today, else day and time. @param iso RFC 3339 */
export function shortTime(iso: string, now = new Date()): string {
  const time = new Date(iso)
  const isToday = time.toDateString() === now.toDateString()
  const isThisYear = time.getFullYear() === now.getFullYear()
  return dates({
    ...(isToday ? { second: '2-digit' } : { day: 'numeric', month: 'short' }),
    ...(isThisYear ? {} : { year: 'numeric' }),
    hour: '2-digit',
    minute: '2-digit',
  }).format(time)
}

/** Day and month. @param date `YYYY-MM-DD` */
export function dayName(date: string): string {
  return dates({ day: 'numeric', month: 'short', timeZone: 'UTC' }).format(new Date(`${date}T00:00:00Z`))
}

/** @param day 1 = Monday to 7 = Sunday */
export function weekdayName(day: number, weekday: 'long' | 'short' = 'long'): string {
  // 1 January 2024 was a Monday.
  return dates({ weekday, timeZone: 'UTC' }).format(Date.UTC(2024, 0, day))
}

/** E.g. “3 minutes ago”. @param iso RFC 3339 */
export function relativeTime(iso: string, now = Date.now()): string {
  const seconds = Math.round((new Date(iso).getTime() - now) / 1_000)
  // Rounded before it is compared: 59 minutes and 50 seconds are an hour.
  const [unit, size] =
    UNITS.find(([, size, most]) => Math.round(Math.abs(seconds) / size) < most) ??
    (['year', 31_536_000] as const)
  return ages({ numeric: 'auto' }).format(Math.round(seconds / size), unit)
}

/** Seconds of each unit, and from how many of them on the next one is used. */
const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, size: number, most: number])[] = [
  ['second', 1, 60],
  ['minute', 60, 60],
  ['hour', 3_600, 24],
  ['day', 86_400, 30],
  ['month', 2_592_000, 12],
]

/** E.g. “2.5h” or “45m”, with as many digits as matter. */
export function duration(ms: number): string {
  const format = (value: number, unit: string) =>
    numbers({
      style: 'unit',
      unit,
      unitDisplay: 'narrow',
      maximumFractionDigits: 1,
    }).format(value)
  // The bounds are where rounding would reach the next unit.
  if (Math.round(ms) < 1_000) return format(Math.round(ms), 'millisecond')
  if (ms < 59_950) return format(ms / 1_000, 'second')
  if (ms < 3_570_000) return format(Math.round(ms / 60_000), 'minute')
  if (ms < 172_620_000) return format(ms / 3_600_000, 'hour')
  return format(ms / 86_400_000, 'day')
}

/** @param currency ISO 4217 */
export function money(value: number, currency: string): string {
  return numbers({ style: 'currency', currency }).format(value)
}

/** A difference, e.g. “+1.2”. */
export function signed(value: number): string {
  return numbers({ signDisplay: 'exceptZero', maximumFractionDigits: 1 }).format(value)
}
