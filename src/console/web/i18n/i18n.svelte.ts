/** The language of the console, and numbers and times in its manner and the viewer's time zone. */
import { en, type Texts } from './en'

export const LANGUAGES = { en: 'English', de: 'Deutsch', fr: 'Français', es: 'Español' } as const
export type Language = keyof typeof LANGUAGES

const KEY = 'postroad-language'
const LOADERS: Readonly<Record<Language, () => Promise<Texts>>> = {
  en: async () => en,
  de: async () => (await import('./de')).de,
  fr: async () => (await import('./fr')).fr,
  es: async () => (await import('./es')).es,
}

const state = $state<{ language: Language; texts: Texts }>({ language: 'en', texts: en })

/** The texts of the chosen language; reading them in a template keeps it up to date. */
export function tr(): Texts {
  return state.texts
}

export function language(): Language {
  return state.language
}

/** The kept choice, else the first language of the browser that there is. */
export async function startLanguage(): Promise<void> {
  const wanted = [localStorage.getItem(KEY), ...navigator.languages.map(tag => tag.slice(0, 2))]
  await apply(wanted.find(isLanguage) ?? 'en')
}

export async function setLanguage(language: Language): Promise<void> {
  localStorage.setItem(KEY, language)
  await apply(language)
}

async function apply(language: Language): Promise<void> {
  state.texts = await LOADERS[language]()
  state.language = language
  document.documentElement.lang = language
}

function isLanguage(value: string | null): value is Language {
  return value !== null && value in LANGUAGES
}

/** Making a formatter takes longer than a row of a list may. */
function kept<O, F>(make: (language: Language, options: O) => F): (options: O) => F {
  const made = new Map<string, F>()
  return options => {
    const key = `${state.language} ${JSON.stringify(options)}`
    const formatter = made.get(key) ?? make(state.language, options)
    made.set(key, formatter)
    return formatter
  }
}

const numbers = kept(
  (language, options: Intl.NumberFormatOptions) => new Intl.NumberFormat(language, options),
)
const dates = kept(
  (language, options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat(language, options),
)
const ages = kept(
  (language, options: Intl.RelativeTimeFormatOptions) => new Intl.RelativeTimeFormat(language, options),
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
  const step = value < 1 ? 0 : Math.min(Math.floor(Math.log10(value) / 3), units.length - 1)
  return numbers({
    style: 'unit',
    unit: units[step] ?? 'byte',
    unitDisplay: 'short',
    maximumFractionDigits: value / 1_000 ** step < 10 && step > 0 ? 1 : 0,
  }).format(value / 1_000 ** step)
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
  const seconds = (new Date(iso).getTime() - now) / 1_000
  const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? (['second', 1] as const)
  return ages({ numeric: 'auto' }).format(Math.round(seconds / size), unit)
}

const UNITS: readonly (readonly [Intl.RelativeTimeFormatUnit, number])[] = [
  ['year', 31_536_000],
  ['month', 2_592_000],
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
]

/** E.g. “2 h 5 min”. */
export function duration(ms: number): string {
  const format = (value: number, unit: string) =>
    numbers({
      style: 'unit',
      unit,
      unitDisplay: 'narrow',
      maximumFractionDigits: 1,
    }).format(value)
  if (ms < 1_000) return format(Math.round(ms), 'millisecond')
  if (ms < 60_000) return format(ms / 1_000, 'second')
  if (ms < 3_600_000) return format(Math.round(ms / 60_000), 'minute')
  if (ms < 172_800_000) return format(ms / 3_600_000, 'hour')
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
