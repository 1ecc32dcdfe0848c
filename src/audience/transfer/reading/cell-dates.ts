/**
 * Dates as spreadsheets write them, read by the order of day, month and year.
 *
 * Numbers between points, slashes or hyphens, months by name in the larger languages, years of two or four digits, and a time behind.
 * `2024年3月1日` too. Words may be in any case and without accents. Days that do not exist are no dates. Pure; linear in the cell, which
 * is bounded.
 */
import { fold } from '../../../core/fold.js'

export const DATE_ORDERS = ['YMD', 'DMY', 'MDY'] as const
export type DateOrder = (typeof DATE_ORDERS)[number]

/** Longer cells are text. */
const MAX_CHARACTERS = 48
/** Two-digit years up to this are of this century (POSIX strptime). */
const LAST_OF_CENTURY = 68

/** In each language January to December, names separated by spaces; `|` separates spellings of one month. */
const MONTHS: readonly string[] = [
  'january|jan february|feb march|mar april|apr may june|jun july|jul august|aug september|sep|sept october|oct november|nov december|dec',
  'januar|jänner|jan februar|feber|feb märz|mrz|maerz april|apr mai juni|jun juli|jul august|aug september|sep|sept oktober|okt november|nov dezember|dez',
  'janvier|janv février|févr|fev mars avril|avr mai juin juillet|juil août septembre|sept octobre|oct novembre|nov décembre|déc',
  'enero|ene febrero|feb marzo|mar abril|abr mayo|may junio|jun julio|jul agosto|ago septiembre|setiembre|sep|sept octubre|oct noviembre|nov diciembre|dic',
  'gennaio|gen febbraio|feb marzo|mar aprile|apr maggio|mag giugno|giu luglio|lug agosto|ago settembre|set|sett ottobre|ott novembre|nov dicembre|dic',
  'janeiro|jan fevereiro|fev março|mar abril|abr maio|mai junho|jun julho|jul agosto|ago setembro|set outubro|out novembro|nov dezembro|dez',
  'januari|jan februari|feb maart|mrt april|apr mei juni|jun juli|jul augustus|aug september|sep oktober|okt november|nov december|dec',
  'styczeń|stycznia|sty luty|lutego|lut marzec|marca|mar kwiecień|kwietnia|kwi maj|maja czerwiec|czerwca|cze lipiec|lipca|lip sierpień|sierpnia|sie wrzesień|września|wrz październik|października|paź listopad|listopada|lis grudzień|grudnia|gru',
  'январь|января|янв февраль|февраля|фев|февр март|марта|мар апрель|апреля|апр май|мая июнь|июня|июн июль|июля|июл август|августа|авг сентябрь|сентября|сен|сент октябрь|октября|окт ноябрь|ноября|ноя|нояб декабрь|декабря|дек',
  'ocak|oca şubat|şub mart|mar nisan|nis mayıs|may haziran|haz temmuz|tem ağustos|ağu eylül|eyl ekim|eki kasım|kas aralık|ara',
  'januari|jan februari|feb mars|mar april|apr maj juni|jun juli|jul augusti|aug september|sep oktober|okt november|nov december|dec',
  'januar|jan februar|feb marts|mars|mar april|apr maj|mai juni|jun juli|jul august|aug september|sep oktober|okt november|nov december|desember|dec|des',
]

const MONTH_OF = new Map(
  MONTHS.flatMap(language =>
    language
      .split(' ')
      .flatMap((names, at) => names.split('|').map((name): [string, number] => [fold(name), at + 1])),
  ),
)

/** Between day, month and year, meaning nothing: `1 de marzo de 2024`, `the 1st of March`, `1 марта 2024 г.` */
const FILLING = new Set(['de', 'del', 'of', 'the', 'den', 'г', 'года'])

const NUMBERS = /^(\d{1,4})([./-])(\d{1,2})\2(\d{1,4})\.?$/
const CJK = /^(\d{4})\s?[年년]\s?(\d{1,2})\s?[月월]\s?(\d{1,2})\s?[日일]?$/
const TIME =
  /(?:[T ]|, ?)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d{1,9})?)?\s?([ap]\.?m\.?)?\s?(Z|UTC|GMT|[+-]\d{2}:?\d{2})?$/i

export interface CellDate {
  readonly year: number
  readonly month: number
  readonly day: number
  /** `T14:05:00` with a zone if one is written; '' for a date alone or its midnight. */
  readonly time: string
}

const ISO_DAY = /^(\d{4})-(\d{2})-(\d{2})$/
/** Every month has as many. */
const SHORTEST_MONTH = 28

/** Fast path: whether the cell is what is stored. */
export function isIsoDay(cell: string): boolean {
  if (cell.length !== 10) return false
  const [, year = '', month, day] = ISO_DAY.exec(cell) ?? []
  if (month === undefined) return false
  if (Number(day) < 1 || Number(day) > SHORTEST_MONTH)
    return dateOf(year, Number(month), day, '') !== undefined
  return Number(year) >= 1_000 && Number(month) >= 1 && Number(month) <= 12
}

/** Whether the cell can be a date at all; spares the work for most text. */
function mayBeDate(cell: string): boolean {
  if (cell.length < 6 || cell.length > MAX_CHARACTERS) return false
  return /\d/.test(cell)
}

/** @param cell trimmed @returns the date in each order in which the cell is one */
export function datesIn(cell: string): Partial<Record<DateOrder, CellDate>> {
  if (!mayBeDate(cell)) return {}
  const found = TIME.exec(cell)
  const time = found ? timeOf(found) : ''
  if (time === undefined) return {}
  const text = found ? cell.slice(0, found.index).trimEnd() : cell
  const [, first, separator, second, third] = NUMBERS.exec(text) ?? []
  if (first !== undefined && second !== undefined && third !== undefined)
    return ofNumbers([first, second, third], separator === '.', time)
  const [, year, month, day] = CJK.exec(text) ?? []
  if (year === undefined) return ofWords(text, time)
  const date = dateOf(year, Number(month), day, time)
  return date ? { YMD: date } : {}
}

/** @returns undefined if there is no such time */
function timeOf([, hours = '', minutes = '', seconds = '00', half, zone = '']: RegExpExecArray):
  | string
  | undefined {
  const isAfternoon = half?.toLowerCase().startsWith('p')
  const hour = half === undefined ? Number(hours) : (Number(hours) % 12) + (isAfternoon ? 12 : 0)
  if (hour > 23 || Number(minutes) > 59 || Number(seconds) > 59) return undefined
  const clock = `${String(hour).padStart(2, '0')}:${minutes}:${seconds}`
  if (clock === '00:00:00') return ''
  return `T${clock}${/^(?:utc|gmt|z)$/i.test(zone) ? 'Z' : zone.replace(/^(...)(\d\d)$/, '$1:$2')}`
}

function ofNumbers(
  [first, second, third]: readonly [string, string, string],
  hasPoints: boolean,
  time: string,
): Partial<Record<DateOrder, CellDate>> {
  if (first.length === 4) {
    const date = third.length <= 2 ? dateOf(first, Number(second), third, time) : undefined
    return date ? { YMD: date } : {}
  }
  if (first.length === 3) return {}
  const [DMY, MDY] = [
    dateOf(third, Number(second), first, time),
    // Nobody writes the month first between points.
    hasPoints ? undefined : dateOf(third, Number(first), second, time),
  ]
  return { ...(DMY ? { DMY } : {}), ...(MDY ? { MDY } : {}) }
}

function ofWords(text: string, time: string): Partial<Record<DateOrder, CellDate>> {
  const words = fold(text)
    .split(/[\s.,/-]+/)
    .filter(word => word !== '' && !FILLING.has(word))
  if (words.length !== 3) return {}
  const at = words.findIndex(word => MONTH_OF.has(word))
  const month = MONTH_OF.get(words[at] ?? '')
  if (month === undefined || at === 2) return {}
  const [first = '', last = ''] = words.filter((_, index) => index !== at)
  const isYearFirst = /^\d{4}$/.test(first)
  const [day, year] = isYearFirst ? [last, first] : [first, last]
  const date = /^\d{1,2}(?:st|nd|rd|th|er|o|e|a)?$/.test(day)
    ? dateOf(year, month, parseInt(day), time)
    : undefined
  if (!date) return {}
  // The month's name leaves no doubt, so the date reads alike in all orders.
  return { YMD: date, DMY: date, MDY: date }
}

/** @returns undefined if there is no such day */
function dateOf(
  yearText: string,
  month: number,
  dayText: string | number | undefined,
  time: string,
): CellDate | undefined {
  if (!/^(?:\d{4}|\d{2})$/.test(yearText)) return undefined
  const written = Number(yearText)
  const year = yearText.length === 4 ? written : written + (written <= LAST_OF_CENTURY ? 2_000 : 1_900)
  const day = Number(dayText)
  if (year < 1_000 || month < 1 || month > 12 || day < 1) return undefined
  // Day 0 of the next month.
  if (day > new Date(Date.UTC(year, month, 0)).getUTCDate()) return undefined
  return { year, month, day, time }
}

/** `2024-03-01`, or `2024-03-01T14:05:00` if it has a time. */
export function isoDate({ year, month, day, time }: CellDate): string {
  return `${year}-${String(month).padStart(2, '0')}-${String(day).padStart(2, '0')}${time}`
}
